"""When standing agents get their turns, and what becomes of tickets that they have claimed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from legion.domain.agents.agent import STANDING, may_command, may_see, may_tell
from legion.domain.scheduling.decide import AgentView, BoardSnapshot, JobKind, ProjectView, decide
from legion.domain.scheduling.job_places import HandBack, StartJob
from legion.domain.tickets.spec import TicketSpec
from legion.domain.tickets.ticket import State, Ticket

PROJECT = ProjectView(
    id=1, parallel=1, paused=False, trusted=True, baseline_known=True, baseline_red=False, upstream_pending=False
)


def agent(number: int, *, wanted: bool = True, **facts) -> AgentView:
    return AgentView(number=number, project=1, wanted=wanted, **facts)


def ticket(number: int, state: State = State.QUEUED, driver: str = "") -> Ticket:
    return Ticket(
        id=number, project=1, spec=TicketSpec(title="", text="", driver=driver), state=state, version=10 + number
    )


def look(
    *agents: AgentView, project: ProjectView = PROJECT, slots: int = 9, tickets: tuple[Ticket, ...] = (), **more
) -> BoardSnapshot:
    values = {"ended": {}, "jobs": frozenset()} | more
    return BoardSnapshot(projects=(project,), tickets=tickets, slots=slots, agents=agents, **values)


def serve(number: int) -> StartJob:
    return StartJob(JobKind.SERVE, number)


def test_whoever_has_mail_gets_a_turn_as_far_as_there_are_slots():
    staff = (agent(1), agent(2, wanted=False), agent(3), agent(4))
    assert decide(look(*staff), 0.0).commands == (serve(1), serve(3), serve(4))
    assert decide(look(*staff, slots=2), 0.0).commands == (serve(1), serve(3))
    busy = frozenset({(JobKind.SERVE, 1), (JobKind.RUN, 7)})
    assert decide(look(*staff, jobs=busy, slots=3), 0.0).commands == (serve(3),)


def test_turns_take_slots_and_none_of_the_projects_own_limit():
    commands = decide(look(agent(1), agent(2), tickets=(ticket(5),)), 0.0).commands
    assert commands == (StartJob(JobKind.RUN, 5, 15), serve(1), serve(2))
    at_work = frozenset({(JobKind.SERVE, 1)})
    working = look(agent(1, in_a_turn=True), tickets=(ticket(5),), jobs=at_work, slots=1)
    assert decide(working, 0.0).commands == ()


@pytest.mark.parametrize("project", [replace(PROJECT, paused=True), replace(PROJECT, trusted=False)])
def test_no_turn_begins_where_nothing_may_but_one_that_has_begun_comes_to_its_end(project):
    assert decide(look(agent(1), project=project), 0.0).commands == ()
    assert decide(look(agent(1, in_a_turn=True), project=project), 0.0).commands == (serve(1),)


def test_who_waits_for_a_provider_is_woken_in_time():
    held = look(agent(1, held_until=50.0), agent(2, wanted=False, held_until=20.0))
    assert decide(held, 10.0).commands == ()
    assert decide(held, 10.0).wake_at == 50.0
    assert decide(held, 50.0).commands == (serve(1),)


def test_a_turn_that_broke_rests_first():
    resting = {(JobKind.SERVE, 1): 30.0}
    assert decide(look(agent(1), resting=resting), 10.0).commands == ()
    assert decide(look(agent(1), resting=resting), 30.0).commands == (serve(1),)


def test_tickets_for_standing_agents_wait_for_a_claim():
    assert decide(look(tickets=(ticket(1, driver=STANDING),)), 0.0).commands == ()


def test_a_claimed_ticket_has_no_run_of_its_own_and_comes_back_to_who_claimed_it():
    held = frozenset({1})
    assert decide(look(tickets=(ticket(1, State.WORKING),), held=held), 0.0).commands == ()
    assert decide(look(tickets=(ticket(1),), held=held), 0.0).commands == (HandBack(1, 11),)
    paused = replace(PROJECT, paused=True)
    assert decide(look(tickets=(ticket(1),), held=held, project=paused), 0.0).commands == ()
    checking = decide(look(tickets=(ticket(1, State.CHECKING),), held=held), 0.0).commands
    assert checking == (StartJob(JobKind.CHECK, 1, 11),)


PARENTS = {"boss": "root", "ann": "boss", "bob": "boss", "kid": "ann", "other": "root", "far": "other"}


@pytest.mark.parametrize(
    ("caller", "tells", "commands"),
    [
        ("root", {"boss", "ann", "bob", "kid", "other", "far"}, {"boss", "ann", "bob", "kid", "other", "far"}),
        ("boss", {"root", "ann", "bob", "kid", "other"}, {"ann", "bob", "kid"}),
        ("ann", {"root", "boss", "bob", "kid"}, {"kid"}),
        ("kid", {"root", "boss", "ann"}, set()),
        ("far", {"root", "other"}, set()),
        ("stranger", set(), set()),
    ],
)
def test_who_may_tell_and_command_whom(caller, tells, commands):
    everybody = {"root", *PARENTS}
    assert {one for one in everybody if may_tell(PARENTS, caller, one)} == tells
    assert {one for one in everybody if may_command(PARENTS, caller, one)} == commands
    assert {one for one in everybody if may_see(PARENTS, caller, one)} == commands | ({caller} & everybody)
