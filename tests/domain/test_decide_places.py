"""Which machine each job goes to, and what happens to a ticket that fits on none."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from legion.domain.machines.placement import PlaceState, RunPlace
from legion.domain.rules import Rule
from legion.domain.scheduling.decide import (
    MOST_COMMANDS,
    AgentView,
    BoardSnapshot,
    JobKind,
    PlanView,
    ProjectView,
    decide,
)
from legion.domain.scheduling.job_places import ParkTicket, StartJob, Wake
from legion.domain.tickets.spec import TicketSpec
from legion.domain.tickets.ticket import Parked, ParkReason, State, Ticket

HEAD = RunPlace(name="head", head=True, slots=2)
DESK = RunPlace(name="desk", slots=2, mirrors=frozenset({1, 2}))
GPU = RunPlace(name="gpu1", slots=2, labels=frozenset({"gpu"}), mirrors=frozenset({1, 2}))
TRAVELS = frozenset({JobKind.RUN, JobKind.REVIEW})


def project(number: int = 1) -> ProjectView:
    return ProjectView(
        id=number, parallel=99, paused=False, trusted=True, baseline_known=True, baseline_red=False,
        upstream_pending=False,
    )  # fmt: skip


def ticket(number: int, state: State = State.QUEUED, *, project: int = 1, **spec) -> Ticket:
    asked = TicketSpec(title="", text="", **spec)
    return Ticket(id=number, project=project, spec=asked, state=state, version=10 + number)


def parked(number: int, reason: ParkReason = ParkReason.NO_MACHINE, **spec) -> Ticket:
    why = Parked(reason=reason, detail="no machine has gpu", back_to=State.QUEUED)
    return replace(ticket(number, State.PARKED, **spec), parked=why)


def look(*tickets: Ticket, places: tuple[RunPlace, ...] = (HEAD, DESK, GPU), **more) -> BoardSnapshot:
    values = {"projects": (project(1), project(2)), "ended": {}, "jobs": frozenset(), "travels": TRAVELS} | more
    return BoardSnapshot(tickets=tickets, places=places, slots=2, **values)


def placed(snapshot: BoardSnapshot) -> dict[tuple[JobKind, int], str]:
    return {(one.kind, one.subject): one.place for one in decide(snapshot, 0.0).commands if isinstance(one, StartJob)}


def test_runs_are_spread_over_head_and_machines_and_a_label_decides():
    waiting = (ticket(1), ticket(2), ticket(3, on=("gpu",)), ticket(4, on=("desk",)))
    assert placed(look(*waiting)) == {
        (JobKind.RUN, 1): "head",
        (JobKind.RUN, 2): "desk",
        (JobKind.RUN, 3): "gpu1",
        (JobKind.RUN, 4): "desk",
    }
    (first, *_) = decide(look(*waiting), 0.0).commands
    assert isinstance(first, StartJob)
    assert first.why == "2 of 2 slots were free"


def test_all_slots_of_all_places_are_filled_and_no_more():
    found = Counter(placed(look(*(ticket(number) for number in range(1, 20)))).values())
    assert found == {"head": 2, "desk": 2, "gpu1": 2}


def test_a_large_fleet_is_filled_by_one_decision_after_the_other():
    fleet = (HEAD, *(RunPlace(name=f"m{number}", slots=8) for number in range(100)))
    waiting = [ticket(number) for number in range(1, 1000)]
    many = replace(project(), parallel=9999)
    first = placed(look(*waiting, places=fleet, projects=(many,)))
    assert len(first) == MOST_COMMANDS
    at = Counter(first.values())
    fuller = tuple(replace(one, builders=at[one.name]) for one in fleet)
    rest = [one if (JobKind.RUN, one.id) not in first else replace(one, state=State.WORKING) for one in waiting]
    second = placed(look(*rest, places=fuller, projects=(many,), jobs=frozenset(first)))
    assert len(second) == MOST_COMMANDS
    assert not first.keys() & second.keys()


def test_projects_share_the_places_however_long_one_queue_is():
    many = [ticket(number) for number in range(1, 20)]
    few = [ticket(number, project=2) for number in range(20, 23)]
    started = placed(look(*many, *few))
    assert Counter(1 if number < 20 else 2 for _, number in started) == {1: 3, 2: 3}


def test_a_ticket_that_fits_on_no_machine_is_parked_with_the_reason():
    (command,) = decide(look(ticket(1, on=("macos",))), 0.0).commands
    assert command == ParkTicket(1, 11, "no machine has macos: `legion machine invite NAME --labels macos`")


@pytest.mark.parametrize("state", [PlaceState.PAUSED, PlaceState.DRAINING, PlaceState.SILENT, PlaceState.OUTDATED])
def test_a_machine_that_takes_no_work_is_no_machine(state: PlaceState):
    places = (HEAD, replace(GPU, state=state))
    (command,) = decide(look(ticket(1, on=("gpu",)), places=places), 0.0).commands
    assert isinstance(command, ParkTicket)


def test_a_full_machine_or_its_quiet_hours_only_hold_a_ticket():
    full = look(ticket(1, on=("gpu",)), places=(HEAD, replace(GPU, builders=2)))
    assert decide(full, 0.0).commands == ()
    quiet = look(ticket(1, on=("gpu",)), places=(HEAD, replace(GPU, state=PlaceState.QUIET, quiet_until=70.0)))
    decision = decide(quiet, 0.0)
    assert (decision.commands, decision.wake_at, decision.held[1].rule) == ((), 70.0, Rule.QUIET_HOURS)


def test_a_parked_ticket_wakes_when_a_machine_could_take_it_even_a_full_one():
    assert decide(look(parked(1, on=("gpu",))), 0.0).commands == (Wake(1, 11),)
    assert decide(look(parked(1, on=("gpu",)), places=(HEAD, replace(GPU, builders=2))), 0.0).commands == (Wake(1, 11),)
    assert decide(look(parked(1, on=("gpu",)), places=(HEAD, DESK)), 0.0).commands == ()
    assert decide(look(parked(1, ParkReason.PAUSED, on=("gpu",))), 0.0).commands == ()


def test_what_cannot_travel_stays_on_the_head_whatever_its_ticket_asks_for():
    agent = AgentView(number=5, project=1, wanted=True)
    plan = PlanView(number=6, project=1, wanted=True)
    assert placed(look(agents=(agent,), plans=(plan,))) == {(JobKind.SERVE, 5): "head", (JobKind.PLAN, 6): "head"}
    revert = ticket(1, undoes=7, on=("gpu",))
    assert placed(look(revert)) == {(JobKind.RUN, 1): "head"}
    only_runs = look(ticket(1, State.REVIEWING, on=("gpu",)), travels=frozenset({JobKind.RUN}))
    assert placed(only_runs) == {(JobKind.REVIEW, 1): "head"}
    crowded = look(agents=(agent,), places=(replace(HEAD, builders=2), DESK))
    assert placed(crowded) == {}


def test_a_reviewer_keeps_away_from_builders_and_follows_the_labels_of_its_role():
    busy = (replace(HEAD, builders=1), replace(DESK, builders=1), replace(DESK, name="quiet", readers=1))
    assert placed(look(ticket(1, State.REVIEWING), places=busy)) == {(JobKind.REVIEW, 1): "quiet"}
    wish = {(JobKind.REVIEW, 1): frozenset({"gpu"})}
    assert placed(look(ticket(1, State.REVIEWING), labels=wish)) == {(JobKind.REVIEW, 1): "gpu1"}


def test_a_run_that_has_not_ended_is_followed_where_it_is():
    there = {(JobKind.RUN, 1): "gpu1", (JobKind.RUN, 2): "removed", (JobKind.RUN, 3): "desk"}
    lost = look(
        ticket(1, State.WORKING),
        ticket(2, State.WORKING),
        open_runs=frozenset({1, 2, 3}),
        open_at=there,
        jobs=frozenset(),
    )
    assert placed(lost) == there


def test_the_head_alone_decides_as_if_there_were_no_places():
    chance = Random(7)
    for _ in range(300):
        tickets = [
            ticket(number, chance.choice([State.QUEUED, State.QUEUED, State.WORKING, State.REVIEWING, State.CHECKING]))
            for number in range(1, chance.randint(2, 9))
        ]
        jobs = frozenset(
            (JobKind.RUN, one.id) for one in tickets if one.state is State.WORKING and chance.random() < 0.7
        )
        slots = chance.randint(1, 5)
        agents = (AgentView(number=1, project=1, wanted=chance.random() < 0.5),)
        bare = replace(look(*tickets, places=(), jobs=jobs, agents=agents), slots=slots)
        head = RunPlace(name="head", head=True, slots=slots, builders=len(jobs))
        here = decide(replace(bare, places=(head,)), 0.0)
        assert all(one.why == "" for one in here.commands if isinstance(one, StartJob))
        plain = tuple(replace(one, place="") if isinstance(one, StartJob) else one for one in here.commands)
        assert plain == decide(bare, 0.0).commands
        assert here.held == decide(bare, 0.0).held
