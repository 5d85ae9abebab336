"""What was made in one session stays there, whichever session the person's commands act on by now."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from legion.store.board import tickets
from legion.wire.dispatch import Dispatch, NewTicket
from legion.wire.projects import Where
from legion.wire.sessions import NewSession
from legion.wire.templates import AddRoutine
from tests.support.office import Office, office
from tests.support.planner import TWO, Planner


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Office]:
    with office(tmp_path) as one:
        yield one


def act_on_another(desk: Office) -> None:
    desk.person.new_session(NewSession(cwd=desk.cwd, branch="other", base="main"))


def home_of(desk: Office, *numbers: int) -> set[str]:
    """The sessions of tickets."""
    with desk.context.store.read() as tx:
        found = {one.project for one in tickets.get_many(tx, numbers)}
    return {desk.context.project(project).record.session_name for project in found}


def test_a_plan_is_approved_in_its_session_and_a_repeated_approval_has_the_first_answer(desk: Office):
    planner = Planner(desk)
    page = planner.plan(TWO)
    act_on_another(desk)
    made = planner.approve(page, request="once")
    assert planner.approve(page, request="once").tickets == made.tickets
    assert home_of(desk, *made.tickets.values()) == {"default"}


def test_an_agent_dispatches_and_reads_in_its_session(desk: Office):
    ada = desk.hire("ada")
    act_on_another(desk)
    made = ada.legion.dispatch(Dispatch(cwd=desk.cwd, tickets=[NewTicket(title="Doors", text="Shut them.")]))
    assert home_of(desk, *made.ids) == {"default"}
    assert [one.id for one in ada.legion.status(desk.cwd).tickets] == made.ids
    assert [one.id for one in ada.legion.graph(desk.cwd).tickets] == made.ids


def test_a_routine_starts_in_its_session(desk: Office):
    starts = AddRoutine(cwd=desk.cwd, starts="every 2 hours", what="Tidy the doors up.")
    (routine,) = desk.person.add_routine(starts).routines
    act_on_another(desk)
    folder = next(one.folder for one in desk.person.sessions(desk.cwd).sessions if one.name == "default")
    (ran,) = desk.person.run_routine(routine.id, Where(cwd=folder)).routines
    assert home_of(desk, *ran.last_tickets) == {"default"}
