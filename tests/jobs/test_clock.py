"""A clock that jumps an hour, forwards or back: nothing waits an hour for it, and nothing is decided too early."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from legion.domain.questions import QuestionKind
from legion.domain.tickets.ladder import rest
from legion.domain.tickets.ticket import Park, ParkReason, Start, State, Ticket
from legion.jobs.background.watchdog import ClockWatch
from legion.jobs.live_state import Backoff
from legion.jobs.scheduling.scheduler import Scheduler
from legion.store.board import questions, tickets
from tests.jobs.office import Office
from tests.store.making import COMMIT, add_ticket

HOUR = 3600.0


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    one = Office(tmp_path)
    yield one
    one.close()


def parked(office: Office, reason: ParkReason, seconds: float) -> Ticket:
    now = office.context.clock()
    with office.context.store.write() as tx:
        ticket = add_ticket(tx, office.project)
        tickets.move(tx, ticket.id, Start(COMMIT))
        return tickets.move(tx, ticket.id, Park(reason, "for a test", until=now + seconds))


def woken(office: Office, ticket: Ticket, jump: float) -> bool:
    """Whether the ticket continues when the scheduler decides with a clock that has jumped."""
    context = replace(office.context, clock=lambda: office.context.clock() + jump)
    Scheduler(context).decide_once()
    with office.context.store.read() as tx:
        return tickets.get(tx, ticket.id).state is not State.PARKED


@pytest.mark.parametrize(
    ("reason", "seconds", "jump", "continues"),
    [
        (ParkReason.RESTING, 30.0, 0.0, False),
        (ParkReason.RESTING, 30.0, HOUR, True),
        (ParkReason.RESTING, 30.0, -HOUR, True),
        (ParkReason.LIMIT, 1800.0, 0.0, False),
        (ParkReason.LIMIT, 1800.0, HOUR, True),
        (ParkReason.LIMIT, 1800.0, -HOUR, False),
        (ParkReason.QUESTION, 1800.0, -HOUR, False),
    ],
)
def test_a_parked_ticket_continues_at_its_moment_and_a_short_rest_never_takes_an_hour(
    office: Office, reason: ParkReason, seconds: float, jump: float, continues: bool
):
    assert woken(office, parked(office, reason, seconds), jump) is continues


def test_every_rest_is_over_where_the_clock_was_set_back():
    for attempt in range(1, 12):
        ticket = Ticket(id=1, project=1, spec=None, attempt=attempt)  # type: ignore[arg-type]
        until = rest(ticket, "it ended at once", 1000.0).until
        assert until is not None
        assert until - 1000.0 <= 60.0


@pytest.mark.parametrize(("jump", "over"), [(0.0, False), (299.0, False), (300.0, True), (HOUR, True), (-HOUR, True)])
def test_a_backoff_never_lasts_longer_than_it_was_meant_to(jump: float, over: bool):
    backoff = Backoff(length=300.0, until=10_300.0, why="")
    now = 10_000.0 + jump
    assert (backoff.ends_at(now) <= now) is over


class WatchedEvent(threading.Event):
    """Says when a thread waits for it the second time: then the first decision is made."""

    def __init__(self) -> None:
        super().__init__()
        self.second = threading.Event()
        self._waits = 0

    def wait(self, timeout: float | None = None) -> bool:
        self._waits += 1
        if self._waits == 2:
            self.second.set()
        return super().wait(timeout)


def test_a_deadline_that_a_jump_has_passed_is_seen_without_any_event(office: Office):
    jump = threading.Event()
    real = office.context.clock
    context = replace(office.context, clock=lambda: real() + (HOUR if jump.is_set() else 0.0))
    with context.store.write() as tx:
        asked = questions.ask(
            tx, key="a", kind=QuestionKind.ASK, project=office.project, words="Which?", fallback="this",
            deadline=tx.now + HOUR / 2,
        )  # fmt: skip
    settled = threading.Event()

    def look() -> None:
        with context.store.read() as tx:
            if questions.get(tx, asked.id).settled_at is not None:
                settled.set()

    context.store.on_commit(look)
    deciding = Scheduler(context, longest_sleep=0.05)
    deciding._wake = asleep = WatchedEvent()
    deciding.start()
    try:
        assert asleep.second.wait(20)
        jump.set()
        assert settled.wait(20)
    finally:
        deciding.stop()


@pytest.mark.parametrize(("jump", "seen"), [(0.0, False), (10.0, False), (HOUR, True), (-HOUR, True)])
def test_the_watchdog_sees_a_clock_that_was_set_and_a_machine_that_slept(jump: float, seen: bool):
    times = iter([1000.0, 1015.0 + jump, 1030.0 + jump])
    watch = ClockWatch(lambda: next(times))
    for steady in (0.0, 15.0, 30.0):
        watch.look(steady)
    assert watch.set_at == (1015.0 + jump if seen else 0.0)
