"""Feeds and store against a real server: events drive them, a lost daemon shows and is found again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from legion.client.http import NotRunning
from legion.tui.link.connection import Phase
from legion.tui.link.requests import Requests
from legion.tui.store import BoardStore
from legion.wire.errors import NotFound
from tests.api.serving import serving
from tests.support.board import Board

PATIENCE = 20.0


async def until(seen: Callable[[], object]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not seen():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


def test_events_make_what_is_watched_fetch_again_and_nothing_else(board: Board):
    async def work() -> None:
        store = BoardStore(board.data.root, board.cwd, start=False)
        running = asyncio.ensure_future(store.run())
        changes: list[int] = []
        store.status.watch(lambda: changes.append(len(store.status.value.tickets if store.status.value else [])))
        await until(lambda: store.status.value)
        board.put(1, "First")
        await until(lambda: changes[-1] == 1)
        assert store.inbox.value is None
        asked = list(board.callers.asked)
        board.put(2, "Second")
        await until(lambda: changes[-1] == 2)
        assert board.callers.asked == [*asked, "status"], "one event, one request, and nothing in between"
        assert set(asked) == {"status"}
        running.cancel()

    asyncio.run(work())


def test_a_refusal_is_kept_as_a_sentence_and_the_connection_stays_live(board: Board):
    async def work() -> None:
        store = BoardStore(board.data.root, board.cwd, start=False)
        feed = store.feed(lambda legion: legion.ticket(99), lambda event: True)
        feed.watch(lambda: None)
        await until(lambda: feed.trouble)
        assert "99" in feed.trouble
        assert store.requests.phase is Phase.LIVE
        store.drop([feed])

    asyncio.run(work())


def test_what_agents_print_arrives_while_it_is_watched(board: Board):
    board.put(1, state="working")
    run = board.run(1, "one\n", ended=False)

    async def work() -> None:
        store = BoardStore(board.data.root, board.cwd, start=False)
        end = store.output.watch(lambda: None)
        await until(lambda: run in store.output.tails)
        board.print(run, "two\n\x1b[2J")
        await until(lambda: store.output.tails[run].lines[-1] == "two")
        board.end_run(run)
        await until(lambda: not store.output.running)
        end()
        assert store.output.tails == {}

    asyncio.run(work())


def test_a_daemon_that_ends_is_gone_at_once_and_one_that_returns_is_found(tmp_path: Path):
    async def work() -> None:
        phases: list[Phase] = []
        with serving(tmp_path) as served:
            served.board.put(1, "First")
            root, cwd = served.board.data.root, served.board.cwd
            store = BoardStore(root, cwd, start=False)
            store.watch_connection(lambda: phases.append(store.requests.phase))
            running = asyncio.ensure_future(store.run())
            store.status.watch(lambda: None)
            await until(lambda: store.status.value)
            await asyncio.to_thread(served.board.news.close)
            ending = asyncio.get_running_loop().time()
        await until(lambda: store.requests.phase is Phase.GONE)
        assert asyncio.get_running_loop().time() - ending < PATIENCE
        assert store.status.value is not None, "what was known stays"
        with serving(tmp_path) as served:
            served.board.put(2, "Second")
            await until(lambda: store.status.value and len(store.status.value.tickets) == 2)
            assert Phase.BACK in phases
            running.cancel()

    asyncio.run(work())


def test_without_a_daemon_requests_fail_and_none_is_started(tmp_path: Path):
    async def work() -> None:
        changes: list[Phase] = []
        requests = Requests(tmp_path / "nothing", lambda: changes.append(requests.phase), start=False)
        for _ in range(2):
            with pytest.raises(NotRunning, match="legion up"):
                await requests.ask(lambda legion: legion.healthy())
        assert requests.phase is Phase.CONNECTING

    asyncio.run(work())


def test_an_error_of_the_daemon_reaches_the_caller(board: Board):
    async def work() -> None:
        requests = Requests(board.data.root, lambda: None, start=False)
        with pytest.raises(NotFound, match="77"):
            await requests.ask(lambda legion: legion.ticket(77))
        assert requests.phase is Phase.LIVE

    asyncio.run(work())
