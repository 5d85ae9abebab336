"""What should be running: one decision at a time, then whole boards played to their end by a world of dice."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from legion.domain.landing.conflicts import Overlap
from legion.domain.rules import Rule
from legion.domain.runs import agent_seat
from legion.domain.scheduling.admission import AdmissionState, HoldReason
from legion.domain.scheduling.decide import AgentView, BoardSnapshot, JobKind, ProjectView, decide
from legion.domain.scheduling.job_places import StartJob, Wake
from legion.domain.scheduling.throttle import Throttle, ThrottleState
from legion.domain.tickets import board
from legion.domain.tickets.spec import TicketSpec
from legion.domain.tickets.ticket import ENDED, Change, Parked, ParkReason, State, Ticket
from tests.domain.boards import World

CHANGE = Change(base="b", commit="c")
PROJECT = ProjectView(
    id=1, parallel=5, paused=False, trusted=True, baseline_known=True, baseline_red=False, upstream_pending=False
)


def ticket(number: int, state: State = State.QUEUED, *, project: int = 1, attempt: int = 0, **spec) -> Ticket:
    asked = TicketSpec(title="", text="", **spec)
    return Ticket(id=number, project=project, spec=asked, state=state, attempt=attempt, version=10 + number)


def look(*tickets: Ticket, project: ProjectView = PROJECT, slots: int = 9, **more) -> BoardSnapshot:
    values = {"ended": {}, "jobs": frozenset()} | more
    return BoardSnapshot(projects=(project,), tickets=tickets, slots=slots, **values)


def run(number: int) -> StartJob:
    return StartJob(JobKind.RUN, number, 10 + number)


def check(number: int) -> StartJob:
    return StartJob(JobKind.CHECK, number, 10 + number)


EVERY = (
    ticket(1),
    ticket(2, State.WORKING),
    ticket(3, State.CHECKING),
    ticket(4, State.LANDING),
    ticket(5, checkpoint=True),
)

LAND = StartJob(JobKind.LAND, 1)
BASELINE = StartJob(JobKind.BASELINE, 1)


def test_ready_tickets_start_attempts_that_go_on_first_then_by_priority_then_by_age():
    waiting = (ticket(1), ticket(2, priority=1), ticket(3, attempt=1, priority=-1), ticket(4, attempt=2), ticket(5))
    assert decide(look(*waiting), 0.0).commands == (run(4), run(3), run(2), run(1), run(5))
    assert decide(look(*waiting, slots=2), 0.0).commands == (run(4), run(3))


def test_no_more_run_than_there_are_slots_or_than_the_project_may():
    waiting = [ticket(n) for n in range(1, 9)]
    running = frozenset({(JobKind.RUN, 1), (JobKind.RUN, 2)})
    two_work = (ticket(1, State.WORKING), ticket(2, State.WORKING), *waiting[2:])
    assert decide(look(*two_work, jobs=running, slots=3), 0.0).commands == (run(3),)
    assert decide(look(*two_work, jobs=running, slots=2), 0.0).commands == ()
    assert decide(look(*two_work, jobs=running, slots=1), 0.0).commands == ()
    few = replace(PROJECT, parallel=3)
    assert decide(look(*two_work, jobs=running, project=few), 0.0).commands == (run(3),)


def test_an_agent_on_its_way_out_still_takes_its_place():
    """Its ticket was stopped a moment ago and is not among the live ones any more."""
    leaving = frozenset({(JobKind.RUN, 1)})
    assert decide(look(ticket(2), jobs=leaving, slots=1), 0.0).commands == ()
    assert decide(look(ticket(2), jobs=leaving, project=replace(PROJECT, parallel=1)), 0.0).commands == ()
    two = replace(PROJECT, parallel=2)
    assert decide(look(ticket(2), ticket(3), jobs=leaving, project=two), 0.0).commands == (run(2),)


def read(number: int, *, aside: bool = False) -> StartJob:
    return StartJob(JobKind.REVIEW, number, None if aside else 10 + number)


def test_what_a_person_works_on_needs_no_slot_and_takes_none_from_the_squad():
    mine, theirs = [ticket(id) for id in (1, 2, 3)], [ticket(4), ticket(5)]
    attended = frozenset({1, 2, 3})
    found = decide(look(*mine, *theirs, slots=1, attended=attended), 0.0).commands
    assert set(found) == {run(1), run(2), run(3), run(4)}
    full = frozenset({(JobKind.RUN, 4)})
    assert decide(
        look(*mine, ticket(4, State.WORKING), ticket(5), jobs=full, slots=1, attended=attended), 0.0
    ).commands == (run(1), run(2), run(3))
    sitting = frozenset({(JobKind.RUN, id) for id in attended})
    at_work = [ticket(id, State.WORKING) for id in attended]
    assert decide(look(*at_work, *theirs, jobs=sitting, slots=1, attended=attended), 0.0).commands == (run(4),)


def test_readers_take_slots_and_come_before_new_work():
    in_review = ticket(1, State.REVIEWING)
    assert decide(look(in_review, ticket(2)), 0.0).commands == (read(1), run(2))
    assert decide(look(in_review, ticket(2), slots=1), 0.0).commands == (read(1),)
    busy = frozenset({(JobKind.REVIEW, 1)})
    assert decide(look(in_review, ticket(2), jobs=busy, slots=1), 0.0).commands == ()
    assert decide(look(in_review, ticket(2), jobs=busy, project=replace(PROJECT, parallel=1)), 0.0).commands == ()


def test_a_claimed_ticket_is_read_by_others_than_its_holder():
    held = look(ticket(1, State.REVIEWING), held=frozenset({1}))
    assert decide(held, 0.0).commands == (read(1),)


def test_what_nobody_waits_for_is_read_last_and_not_in_a_paused_project():
    aside = look(ticket(2), optional_reviews={7: 1, 8: 2}, slots=2)
    assert decide(aside, 0.0).commands == (run(2), read(7, aside=True))
    assert decide(look(ticket(2), optional_reviews={7: 1}, slots=1), 0.0).commands == (run(2),)
    assert decide(look(optional_reviews={7: 1}, project=replace(PROJECT, paused=True)), 0.0).commands == ()


def test_a_reader_whose_ticket_went_away_is_brought_to_its_end():
    assert decide(look(ticket(1, State.PARKED), open_reviews=frozenset({1})), 0.0).commands == (read(1, aside=True),)
    assert decide(look(open_reviews=frozenset({1})), 0.0).commands == (read(1, aside=True),)
    assert decide(look(ticket(1, State.REVIEWING), open_reviews=frozenset({1})), 0.0).commands == (read(1),)
    assert decide(look(optional_reviews={1: 1}, open_reviews=frozenset({1})), 0.0).commands == (read(1, aside=True),)


CLOSED = Throttle(stance=ThrottleState.CLOSED, most=0, until=50.0, why="used")
SPENT = HoldReason(rule=Rule.BUDGET, why="spent")


@pytest.mark.parametrize(
    "admission",
    [
        AdmissionState(accounts={1: ("a",), 2: ("a",), 3: ("b",)}, throttles={"a": CLOSED}),
        AdmissionState(accounts={1: ("a",), 2: ("a",)}, throttles={"a": CLOSED}),
        AdmissionState(over_budget={1: SPENT, 2: SPENT}),
    ],
)
@pytest.mark.parametrize(("slots", "parallel"), [(9, 1), (1, 9)])
def test_a_held_ticket_takes_no_room_from_one_that_may_start(admission: AdmissionState, slots: int, parallel: int):
    waiting = tuple(ticket(n) for n in (1, 2, 3, 4))
    limited = look(*waiting, project=replace(PROJECT, parallel=parallel), slots=slots, admission=admission)
    found = decide(limited, 0.0)
    assert (found.commands, set(found.held)) == ((run(3),), {1, 2})


def test_a_ticket_without_room_does_not_count_as_started_for_the_stagger():
    full, free = replace(PROJECT, parallel=0), replace(PROJECT, id=2)
    snapshot = look(ticket(1), ticket(2, project=2), admission=AdmissionState(stagger=5.0))
    assert decide(replace(snapshot, projects=(full, free)), 0.0).commands == (run(2),)


def agent(number: int, *, since: float = 0.0, **facts) -> AgentView:
    return AgentView(number=number, project=1, wanted=True, waiting_since=since, **facts)


def serve(number: int) -> StartJob:
    return StartJob(JobKind.SERVE, number)


def test_a_standing_agent_gets_its_share_of_the_slots_while_tickets_wait():
    waiting = tuple(ticket(n) for n in (1, 2, 3))
    assert decide(look(*waiting, slots=2, agents=(agent(1), agent(2))), 0.0).commands == (run(1), serve(1))
    one_works = frozenset({(JobKind.RUN, 1)})
    working = (ticket(1, State.WORKING), *waiting[1:])
    assert decide(look(*working, slots=2, jobs=one_works, agents=(agent(1),)), 0.0).commands == (serve(1),)
    one_serves = frozenset({(JobKind.SERVE, 1)})
    staff = (agent(1, in_a_turn=True), agent(2))
    assert decide(look(*waiting, slots=2, jobs=one_serves, agents=staff), 0.0).commands == (run(1),)


@pytest.mark.parametrize(("since", "first"), [(4.0, serve(1)), (6.0, run(1))])
def test_the_only_slot_goes_to_what_has_waited_longest(since: float, first: StartJob):
    queued = replace(ticket(1), moved_at=5.0)
    assert decide(look(queued, slots=1, agents=(agent(1, since=since),)), 9.0).commands == (first,)


def test_a_project_with_many_tickets_leaves_slots_to_another():
    other = replace(PROJECT, id=2)
    tickets = (*(ticket(n) for n in (1, 2, 3)), *(ticket(n, project=2) for n in (4, 5)))
    assert decide(replace(look(*tickets, slots=2), projects=(PROJECT, other)), 0.0).commands == (run(1), run(4))


def test_a_project_whose_settings_cannot_be_read_starts_nothing_and_the_others_go_on():
    broken, other = replace(PROJECT, readable=False, baseline_known=False), replace(PROJECT, id=2)
    snapshot = replace(look(*EVERY, ticket(7, project=2)), projects=(broken, other))
    assert decide(snapshot, 0.0).commands == (run(7),)
    assert decide(replace(snapshot, agents=(agent(1),)), 0.0).held.get(agent_seat(1)) is None


def test_the_slots_are_shared_by_all_projects():
    snapshot = BoardSnapshot(
        projects=(replace(PROJECT, parallel=2), replace(PROJECT, id=2)),
        tickets=(*(ticket(n) for n in (1, 2, 3)), *(ticket(n, project=2) for n in (4, 5, 6))),
        ended={},
        jobs=frozenset(),
        slots=3,
    )
    assert decide(snapshot, 0.0).commands == (run(1), run(4), run(2))


def test_checks_need_no_slot():
    tickets = (ticket(1, State.CHECKING), ticket(2, checkpoint=True), ticket(3))
    assert decide(look(*tickets, slots=0), 0.0).commands == (check(1), check(2))


def test_what_was_begun_goes_on_after_a_restart_without_its_job():
    tickets = (ticket(1, State.WORKING), ticket(2, State.CHECKING), ticket(3, State.LANDING), ticket(4))
    assert decide(look(*tickets, slots=1), 0.0).commands == (LAND, run(1), check(2)), "the begun one has the only slot"


@pytest.mark.parametrize("state", State)
def test_nothing_starts_before_what_it_comes_after_has_landed(state):
    first = ticket(1, state)
    snapshot = look(first, ticket(2, after=(1,)), jobs=frozenset((kind, 1) for kind in JobKind))
    if state in ENDED:
        snapshot = look(ticket(2, after=(1,)), ended={1: state})
    assert decide(snapshot, 0.0).commands == ((run(2),) if state is State.DONE else ())


def test_a_ticket_whose_job_runs_is_not_started_again():
    jobs = frozenset({(JobKind.RUN, 1), (JobKind.CHECK, 2), (JobKind.LAND, 1), (JobKind.BASELINE, 1)})
    tickets = (ticket(1, State.WORKING), ticket(2, State.CHECKING), ticket(3, State.LANDING))
    assert decide(look(*tickets, jobs=jobs, project=replace(PROJECT, baseline_known=False)), 0.0).commands == ()


def test_an_untrusted_project_starts_nothing_at_all():
    asked = replace(PROJECT, trusted=False, baseline_known=False, upstream_pending=True)
    assert decide(look(*EVERY, project=asked), 0.0).commands == ()


def test_a_paused_project_begins_nothing_and_goes_on_with_what_it_began():
    assert decide(look(*EVERY, project=replace(PROJECT, paused=True)), 0.0).commands == (LAND, run(2), check(3))


def test_nothing_begins_while_the_persons_commits_are_on_their_way():
    waiting = replace(PROJECT, upstream_pending=True)
    assert decide(look(ticket(1), ticket(2, checkpoint=True), project=waiting), 0.0).commands == (LAND,)
    assert decide(look(project=waiting), 0.0).commands == (LAND,), "they are absorbed also when there is no ticket"


def test_an_unknown_baseline_is_looked_at_when_there_is_work():
    unknown = replace(PROJECT, baseline_known=False)
    assert decide(look(ticket(1), project=unknown), 0.0).commands == (BASELINE, run(1))
    assert decide(look(project=unknown), 0.0).commands == ()


def parked(number: int, reason: ParkReason, until: float | None) -> Ticket:
    held = Parked(reason=reason, detail="", back_to=State.QUEUED, until=until)
    return replace(ticket(number, State.PARKED), parked=held)


def test_a_parked_ticket_wakes_when_its_time_has_come_and_not_before():
    tickets = (parked(1, ParkReason.LIMIT, 5.0), parked(2, ParkReason.LIMIT, 9.0), parked(3, ParkReason.PAUSED, None))
    early, on_time, late = (decide(look(*tickets), now) for now in (4.0, 5.0, 20.0))
    assert (early.commands, early.wake_at) == ((), 5.0)
    assert (on_time.commands, on_time.wake_at) == ((Wake(1, 11),), 9.0)
    assert (late.commands, late.wake_at) == ((Wake(1, 11), Wake(2, 12)), None)


def test_a_ticket_held_up_by_a_red_target_wakes_when_the_target_is_green():
    held = parked(1, ParkReason.RED_BASELINE, None)
    assert decide(look(held), 0.0).commands == (Wake(1, 11),)
    assert decide(look(held, project=replace(PROJECT, baseline_red=True)), 0.0).commands == ()
    unknown = replace(PROJECT, baseline_known=False)
    assert decide(look(held, project=unknown), 0.0).commands == (BASELINE,)
    assert decide(look(parked(1, ParkReason.QUESTION, None)), 0.0).commands == ()


def test_a_job_that_broke_rests_until_its_time():
    resting = {(JobKind.RUN, 1): 5.0, (JobKind.LAND, 1): 7.0}
    snapshot = look(ticket(1), ticket(2), ticket(3, State.LANDING), slots=1, resting=resting)
    before, after = decide(snapshot, 4.0), decide(snapshot, 5.0)
    assert (before.commands, before.wake_at) == ((run(2),), 5.0), "a resting job holds no slot"
    assert (after.commands, after.wake_at) == ((run(1),), 7.0)
    assert decide(snapshot, 7.0).commands == (LAND, run(1))


def test_a_run_that_nobody_looks_after_is_brought_to_its_end_before_anything_else():
    """A person stopped or paused the ticket while the daemon was away: the agent may still be there."""
    bring = StartJob(JobKind.RUN, 1)
    gone, waits = look(ticket(2), open_runs=frozenset({1})), look(ticket(1), ticket(2), open_runs=frozenset({1}))
    assert decide(gone, 0.0).commands == (bring, run(2))
    assert decide(waits, 0.0).commands == (bring, run(2)), "its own next attempt waits for that"
    for crowded in (replace(gone, slots=1), replace(gone, projects=(replace(PROJECT, parallel=1),))):
        assert decide(crowded, 0.0).commands == (bring,), "it has its place until it is gone"
    assert decide(replace(gone, projects=(replace(PROJECT, trusted=False),)), 0.0).commands == (bring,)
    assert decide(replace(gone, jobs=frozenset({(JobKind.RUN, 1)})), 0.0).commands == (run(2),)
    assert decide(replace(gone, resting={(JobKind.RUN, 1): 5.0}), 1.0).commands == (run(2),)
    working = look(ticket(1, State.WORKING), open_runs=frozenset({1}))
    assert decide(working, 0.0).commands == (run(1),), "a ticket at work simply goes on"


def test_a_landing_that_was_cut_off_is_finished_even_when_no_ticket_waits_for_it():
    assert decide(look(project=replace(PROJECT, landing_open=True)), 0.0).commands == (LAND,)
    busy = look(project=replace(PROJECT, landing_open=True), jobs=frozenset({(JobKind.LAND, 1)}))
    assert decide(busy, 0.0).commands == ()


@given(st.integers(0, 2**32))
def test_any_board_is_played_to_its_end(dice):
    """Agents fail, get lost and hit limits, checks go red, jobs break, the daemon restarts: it ends all the same."""
    context = World(Random(dice))
    for _ in range(2000):
        context.settle()
        if context.over():
            break
        context.something_happens()
    assert context.over()
    for one in context.tickets.values():
        before = [context.tickets[other].state for other in one.spec.after]
        if one.state is State.DONE:
            assert all(state is State.DONE for state in before)
        elif not one.ended:
            assert one.id in board.hopeless(context.edges(), context.states())


@pytest.mark.parametrize("overlap", Overlap)
@pytest.mark.parametrize("between", [(), (2,)], ids=["directly", "over a third"])
def test_a_ticket_that_was_sent_back_never_waits_for_one_that_lands_after_it(
    overlap: Overlap, between: tuple[int, ...]
):
    """Else both would wait for each other, for ever."""
    change, claims = Change(base="a", commit="b"), frozenset({"a.py::f"})
    first = replace(ticket(1, attempt=1, files=("a.py",)), base="a", claims=tuple(claims), lost=True)
    chain = [
        replace(
            ticket(id, State.CHECKING, attempt=1, files=("a.py",)), change=change, claims=tuple(claims), behind=id - 1
        )
        for id in (*between, 2 + len(between))
    ]
    board = look(first, *chain, project=replace(PROJECT, overlap=overlap), guesses={1: claims})
    assert run(1) in decide(board, 0.0).commands


def test_a_ticket_whose_proofs_run_first_starts_after_that_and_keeps_its_place():
    names = {1: frozenset({"a.py::f"}), 2: frozenset({"a.py::f"})}
    trying = look(ticket(1), ticket(2), ticket(3), guesses=names, jobs=frozenset({(JobKind.CHECK, 1)}))
    decision = decide(trying, 0.0)
    assert decision.commands == (run(3),), "the second one waits for the first"
    assert decision.held[1].why == "its proofs run first: another ticket may have brought it"
    assert decide(replace(trying, jobs=frozenset()), 0.0).commands == (run(1), run(3))
