"""Routines over the real service and store; the clock is looked at by hand."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from legion.domain.events import EventKind
from legion.domain.routines import Routine
from legion.domain.tickets.ticket import Cause, Fail, Start, Stop, TryAgain
from legion.jobs.background.routine_clock import RoutineClock
from legion.service.leader import routines as cases
from legion.store.board import routines, tickets
from legion.wire.errors import BadInput, NotAllowed, NotFound, StateConflict
from legion.wire.projects import Where
from legion.wire.templates import AddRoutine, RoutineLine
from tests.support.office import Office, office
from tests.support.repository import CHECK, Repository


class Clock:
    """A desk whose time is set by the test, and its routines."""

    def __init__(self, desk: Office) -> None:
        self.desk = desk
        self.context = replace(desk.context, clock=lambda: self.now)
        self.now = desk.context.clock()
        self.clock = RoutineClock(self.context, partial(cases.start, self.context))

    def add(self, starts: str, what: str = "Look around twice.", **fields: object) -> int:
        wanted = AddRoutine(cwd=self.desk.cwd, starts=starts, what=what, **fields)  # type: ignore[arg-type]
        return self.desk.person.add_routine(wanted).routines[0].id

    def line(self, number: int) -> RoutineLine:
        return next(one for one in self.desk.person.routines(self.desk.cwd).routines if one.id == number)

    def stored(self, number: int) -> Routine:
        with self.context.store.read() as tx:
            return routines.get(tx, 1, number)

    def look(self, later: float = 0.0) -> None:
        self.now += later
        self.clock.look()

    def end(self, number: int) -> None:
        with self.context.store.write() as tx:
            for ticket in self.line(number).last_tickets:
                tickets.move(tx, ticket, Stop())


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    with office(tmp_path_factory.mktemp("routines"), config=CHECK) as one:
        yield one


@pytest.fixture
def clock(desk: Office) -> Iterator[Clock]:
    yield Clock(desk)
    for one in desk.person.routines(desk.cwd).routines:
        desk.person.remove_routine(one.id, Where(cwd=desk.cwd))


def test_a_time_starts_one_ticket_and_missed_times_one(clock: Clock):
    number = clock.add("every 2 hours", "Look around.\nThen report.", budget=1.5, team="")
    clock.look()
    assert clock.line(number).runs == 0
    clock.look(later=2 * 3600 + 1)
    line = clock.line(number)
    assert (line.runs, line.last_result) == (1, f"ticket {line.last_tickets[0]}: every 2 hours")
    page = clock.desk.person.ticket(line.last_tickets[0])
    assert (page.ticket.title, page.text, page.budget) == ("Look around.", "Look around.\nThen report.", 1.5)
    clock.look()
    assert clock.line(number).runs == 1
    clock.end(number)
    clock.look(later=3 * 86_400)
    clock.look(later=60)
    assert clock.line(number).runs == 2


def test_no_second_start_while_a_ticket_of_the_first_is_open(clock: Clock):
    number = clock.add("every hour")
    clock.look(later=3601)
    first = clock.line(number).last_tickets
    clock.look(later=3601)
    line = clock.line(number)
    assert (line.runs, line.last_tickets) == (1, first)
    assert line.last_result == f"skipped: ticket {first[0]} of the last start is still open"
    with pytest.raises(StateConflict, match=f"Ticket {first[0]} of the last start is still open"):
        clock.desk.person.run_routine(number, Where(cwd=clock.desk.cwd))
    clock.end(number)
    assert clock.desk.person.run_routine(number, Where(cwd=clock.desk.cwd)).routines[0].runs == 2


def test_events_start_a_routine_once_and_its_own_tickets_never(clock: Clock):
    red, twice = clock.add("on target-red"), clock.add("on failed-twice")
    clock.look()
    with clock.context.store.write() as tx:
        tx.record(EventKind.BASELINE_RED, project=1, data={})
    clock.look()
    clock.look()
    assert (clock.line(red).runs, clock.line(twice).runs) == (1, 0)
    clock.end(red)
    failing = clock.line(red).last_tickets[0]
    clock.desk.person.retry(failing)
    fail(clock, failing)
    clock.look()
    assert (clock.line(twice).runs, clock.line(twice).last_result) == (
        1,
        f"ticket {clock.line(twice).last_tickets[0]}: two attempts of ticket {failing} failed",
    )
    fail(clock, clock.line(twice).last_tickets[0])
    clock.look()
    assert clock.line(twice).runs == 1


def fail(clock: Clock, ticket: int) -> None:
    """Two attempts."""
    with clock.context.store.write() as tx:
        for step in (TryAgain("red", "", None, Cause.CHECKS), Fail("gave up", cause=Cause.CHECKS)):
            tickets.move(tx, ticket, Start("c" * 40))
            tickets.move(tx, ticket, step)


def test_a_new_tag_starts_a_routine_and_an_old_one_does_not(clock: Clock):
    repository = Repository.at(Path(clock.desk.cwd))
    repository.git("tag", "v1")
    number = clock.add("on tag v*")
    clock.look()
    assert clock.line(number).runs == 0
    repository.git("tag", "v2")
    repository.git("tag", "nightly")
    # Tags are read again after a while, or by a new clock.
    Clock(clock.desk).look()
    assert (clock.line(number).runs, clock.line(number).last_result.endswith("new tags: v2")) == (1, True)
    assert set(clock.stored(number).tags) == {"v1", "v2", "nightly"}


def test_a_repository_that_cannot_be_read_for_a_while_has_no_new_tags_afterwards(clock: Clock):
    repository = Repository.at(Path(clock.desk.cwd))
    repository.git("tag", "v10")
    number = clock.add("on tag v*")
    known = set(clock.stored(number).tags)
    away = repository.root / ".git-away"
    (repository.root / ".git").rename(away)
    try:
        Clock(clock.desk).look()
    finally:
        away.rename(repository.root / ".git")
    assert set(clock.stored(number).tags) == known, "not known is not the same as none"
    Clock(clock.desk).look()
    assert clock.line(number).runs == 0


def test_a_template_becomes_an_approved_plan_with_the_budget(clock: Clock):
    number = clock.add("every day 07:00", "docs", values={"topics": "the till"}, budget=2.0)
    line = clock.desk.person.run_routine(number, Where(cwd=clock.desk.cwd)).routines[0]
    assert line.last_tickets, line.last_result
    pages = [clock.desk.person.ticket(ticket) for ticket in line.last_tickets]
    assert {page.budget for page in pages if not page.ticket.checkpoint} == {2.0}
    assert line.last_result.startswith("plan P")


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"starts": "sometimes"}, "is no time"),
        ({"what": " "}, "the name of a template, or a text"),
        ({"what": "nosuch"}, "no template"),
        ({"values": {"a": "b"}}, "--var belongs to a template"),
        ({"budget": -1.0}, "number of dollars"),
    ],
    ids=["time", "empty", "template", "values", "budget"],
)
def test_what_is_no_routine_is_refused(clock: Clock, wanted, message):
    with pytest.raises((BadInput, NotFound), match=message):
        clock.add(**({"starts": "every day 07:00"} | wanted))


def test_a_routine_is_removed_and_no_agent_adds_one(clock: Clock):
    number = clock.add("every 5 minutes")
    assert "its tickets stay" in clock.desk.person.remove_routine(number, Where(cwd=clock.desk.cwd)).message
    clock.look(later=86_400)
    assert clock.desk.person.routines(clock.desk.cwd).routines == []
    with pytest.raises(NotFound, match="There is no routine"):
        clock.desk.person.run_routine(number, Where(cwd=clock.desk.cwd))
    leader = clock.desk.hire("ada", role="leader")
    with pytest.raises(NotAllowed):
        leader.legion.add_routine(AddRoutine(cwd=clock.desk.cwd, starts="every day 07:00", what="Rule the world."))
