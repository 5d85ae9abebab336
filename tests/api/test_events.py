"""Events as they happen."""

from __future__ import annotations

import http.client
import json
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from legion.api.events import MOST_STREAMS
from legion.client.http import NotRunning
from legion.domain.errors import NotFound
from legion.domain.events import EventKind
from legion.service.shared.commit_signal import CommitSignal
from legion.store.database.transactions import ReadTransaction, Store, sqlite_url
from tests.api.serving import TOKEN, Served, serving


@pytest.fixture
def base(served: Served) -> int:
    """The number of the last event before the test."""
    return served.board.last_event


def some(served: Served, count: int, base: int, after: int = 0, **told) -> list[int]:
    """The numbers of the next events, counted from the base."""
    numbers: list[int] = []
    stream = served.over_socket.events(base + after, **told)
    while len(numbers) < count:
        event = next(stream)
        if event is not None:
            numbers.append(event.n - base)
    stream.close()  # type: ignore[attr-defined]
    return numbers


def test_past_events_come_first_and_in_order(served: Served, base: int):
    served.board.happen(*[None] * 1200)
    assert some(served, 1200, base) == list(range(1, 1201))


def test_a_reader_goes_on_after_the_number_it_names(served: Served, base: int):
    served.board.happen(*[None] * 5)
    assert some(served, 2, base, after=3) == [4, 5]


def test_an_event_reaches_a_reader_that_waits(served: Served, base: int):
    with ThreadPoolExecutor() as pool:
        reading = pool.submit(some, served, 2, base)
        assert served.board.news.waiting.acquire(timeout=20)
        served.board.happen()
        assert served.board.news.waiting.acquire(timeout=20)
        served.board.happen()
        assert reading.result(timeout=20) == [1, 2]


def test_a_browsers_last_event_id_wins_over_the_address(served: Served, base: int):
    served.board.happen(*[None] * 5)
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=20)
    connection.request(
        "GET",
        f"/v1/events?after={base + 1}",
        headers={"Authorization": f"Bearer {TOKEN}", "Last-Event-ID": str(base + 4)},
    )
    answer = connection.getresponse()
    assert str(answer.getheader("Content-Type")).startswith("text/event-stream")
    lines: list[str] = []
    while not (lines and lines[-1].startswith("data:")):
        lines.append(answer.readline().decode().strip())
    connection.close()
    assert lines[-3:-1] == [f"id: {base + 5}", "event: ticket.reported"]
    assert json.loads(lines[-1][5:])["n"] == base + 5


def test_only_the_asked_for_ticket_is_told_and_others_do_not_stop_the_stream(served: Served, base: int):
    served.board.happen(*(7 if n % 100 == 0 else 8 for n in range(1100)))
    assert some(served, 11, base, ticket=7) == list(range(1, 1100, 100))


def test_events_of_others_do_not_make_a_filtered_stream_spin(served: Served, base: int):
    with ThreadPoolExecutor() as pool:
        reading = pool.submit(some, served, 1, base, ticket=7)
        assert served.board.news.waiting.acquire(timeout=20)
        served.board.happen(8)
        assert served.board.news.waiting.acquire(timeout=20), "it waits again, behind the foreign event"
        assert not served.board.news.waiting.acquire(timeout=0.2), "and does not spin"
        served.board.happen(7)
        assert reading.result(timeout=20) == [2]


def test_a_silent_line_shows_signs_of_life():
    with tempfile.TemporaryDirectory(prefix="legion-") as folder, serving(Path(folder), heartbeat=0.05) as served:
        stream = served.over_socket.events(served.board.last_event)
        assert [next(stream) for _ in range(4)] == [None] * 4
        stream.close()  # type: ignore[attr-defined]


def test_a_folder_in_no_project_is_an_error_and_not_a_broken_stream(served: Served, base: int):
    with pytest.raises(NotFound, match="legion init"):
        next(served.over_socket.events(0, cwd="/nowhere"))


def test_the_stream_ends_when_the_service_closes():
    with tempfile.TemporaryDirectory(prefix="legion-") as folder, serving(Path(folder)) as served:
        stream = served.over_socket.events(served.board.last_event)
        assert next(stream) is None
        assert served.board.news.waiting.acquire(timeout=20)
        served.board.news.close()
        with pytest.raises((StopIteration, NotRunning)):
            next(stream)


def test_many_who_wait_do_not_keep_others_from_their_answer(served: Served, base: int):
    served.board.put(1, state="working")
    seen = served.board.last_event
    with ThreadPoolExecutor(max_workers=60) as pool:
        waiting = [pool.submit(served.over_socket.wait, None, [1], after_event=seen, timeout=20) for _ in range(60)]
        for _ in range(60):
            assert served.board.news.waiting.acquire(timeout=20)
        assert served.over_socket.ticket(1).ticket.id == 1
        served.board.put(1, state="done")
        assert all(done.result(timeout=20).settled for done in waiting)


Opened = tuple[int, http.client.HTTPConnection, http.client.HTTPResponse]


def opened(served: Served, path: str) -> Opened:
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=20)
    connection.request("GET", path, headers={"Authorization": f"Bearer {TOKEN}"})
    answer = connection.getresponse()
    return answer.status, connection, answer


def test_a_caller_has_so_many_streams_and_may_open_another_when_one_is_closed(served: Served, base: int):
    streams = [opened(served, f"/v1/events?after={base}") for _ in range(MOST_STREAMS)]
    try:
        refuse_another(served, base, streams)
    finally:
        for _, connection, answer in streams:
            answer.close()
            connection.close()
    assert any(opens(served, base) for _ in range(500)), "the server sees the end of a stream a moment later"


def refuse_another(served: Served, base: int, streams: list[Opened]) -> None:
    assert {status for status, _, _ in streams} == {200}
    for _ in streams:
        assert served.board.news.waiting.acquire(timeout=20)
    status, connection, answer = opened(served, f"/v1/events?after={base}")
    content = json.loads(answer.read())
    connection.close()
    assert (status, content["code"]) == (429, "try_again")
    assert f"has {MOST_STREAMS} streams of events open" in content["message"]
    assert served.over_tcp.status(None).schema == "legion.status/1", "other requests are answered"
    served.board.happen()
    for _, _, one in streams:
        lines = [one.readline() for _ in range(3)]
        assert lines[2].startswith(b"id:")


def opens(served: Served, base: int) -> bool:
    status, connection, answer = opened(served, f"/v1/events?after={base}")
    answer.close()
    connection.close()
    return status == 200


class CountedStore(Store):
    reads = 0

    @contextmanager
    def read(self) -> Iterator[ReadTransaction]:
        self.reads += 1
        with super().read() as tx:
            yield tx


def test_the_last_number_is_read_once_after_a_commit_however_many_ask(served: Served):
    store = CountedStore(sqlite_url(served.board.data.database))
    signal = CommitSignal(store)
    assert {signal.last() for _ in range(50)} == {served.board.last_event}
    assert store.reads == 1
    with store.write() as tx:
        tx.record(EventKind.TICKET_REPORTED, data={})
    assert {signal.last() for _ in range(50)} == {served.board.last_event}
    assert store.reads == 2
    signal.close()
    store.close()
