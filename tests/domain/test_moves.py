"""A ticket's legal moves: every state and every step against a table written out a second time, then whole lives."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from legion.domain.errors import StateConflict
from legion.domain.tickets import ticket as rules
from legion.domain.tickets.ladder import next_try, rest
from legion.domain.tickets.spec import StartPoint, TicketSpec
from legion.domain.tickets.ticket import (
    AlreadyThere,
    Approve,
    AskReview,
    Cause,
    Change,
    Confirm,
    Fail,
    Inspect,
    Land,
    Park,
    Parked,
    ParkReason,
    Propose,
    Prove,
    Recheck,
    Resume,
    Retry,
    Rewind,
    Start,
    StartPointUsed,
    State,
    Step,
    Stop,
    Submit,
    Ticket,
    TryAgain,
    Unpark,
    allowed,
    move,
)

# Written from the design, not from the code: who may go where, by which step.
WITH_AGENT = {
    "draft": "Submit>queued Stop>stopped",
    "queued": "Start>working AlreadyThere>landing Recheck>checking Park>parked Fail>failed Stop>stopped Rewind>queued",
    "working": "StartPointUsed>working Propose>checking TryAgain>queued Resume>queued Park>parked Fail>failed "
    "Stop>stopped "
    "Rewind>queued",
    "checking": "Prove>landing AlreadyThere>landing AskReview>reviewing "
    "TryAgain>queued Park>parked Fail>failed Stop>stopped Rewind>queued",
    "reviewing": "Approve>landing TryAgain>queued Park>parked Fail>failed Stop>stopped Rewind>queued",
    "landing": "Land>done Recheck>checking AskReview>reviewing "
    "TryAgain>queued Park>parked Fail>failed Stop>stopped Rewind>queued",
    "parked": "Unpark>reviewing Fail>failed Stop>stopped Rewind>queued",
    "done": "",
    "failed": "Retry>queued Rewind>queued",
    "stopped": "Retry>queued Rewind>queued",
}
CHECKPOINT = {
    "draft": "Submit>queued Stop>stopped",
    "queued": "Inspect>checking Park>parked Fail>failed Stop>stopped",
    "checking": "Confirm>done TryAgain>queued Park>parked Fail>failed Stop>stopped",
    "parked": "Unpark>checking Fail>failed Stop>stopped",
    "done": "",
    "failed": "Retry>queued",
    "stopped": "Retry>queued",
}

CHANGE = Change(base="b" * 40, commit="c" * 40)
STEPS: tuple[Step, ...] = (
    Submit(),
    Start("t" * 40),
    Inspect(),
    StartPointUsed(),
    Propose(CHANGE),
    Prove(),
    AlreadyThere(CHANGE, "ticket 6 brought it"),
    Recheck(),
    AskReview(),
    Approve(),
    Land("l" * 40),
    Confirm("l" * 40, unchecked=True),
    TryAgain("red", "the check says no"),
    Resume("lost"),
    Park(ParkReason.QUESTION, "which one?", until=7.0),
    Unpark(),
    Fail("impossible"),
    Stop(),
    Retry("more"),
    Rewind(StartPoint(base="b" * 40, tree="e" * 40), "a person took it back"),
)


def table(checkpoint: bool) -> dict[str, str]:
    return CHECKPOINT if checkpoint else WITH_AGENT


def ticket_in(state: State, *, checkpoint: bool) -> Ticket:
    """A ticket as it might be found in this state."""
    back_to = State.CHECKING if checkpoint else State.REVIEWING
    return Ticket(
        id=7,
        project=1,
        spec=TicketSpec(title="t", text="t", checkpoint=checkpoint),
        state=state,
        attempt=2,
        version=5,
        reason="something",
        change=CHANGE,
        parked=Parked(reason=ParkReason.BUDGET, detail="d", back_to=back_to) if state is State.PARKED else None,
    )


def test_the_second_table_names_every_state_and_every_step():
    assert set(WITH_AGENT) == {state.value for state in State}
    assert {type(step) for step in STEPS} == set(rules.Step.__args__)


@pytest.mark.parametrize("step", STEPS, ids=lambda step: type(step).__name__)
@pytest.mark.parametrize("state", State, ids=lambda state: state.value)
@pytest.mark.parametrize("checkpoint", [False, True], ids=["agent", "checkpoint"])
def test_every_state_and_step_is_legal_exactly_as_the_design_says(checkpoint, state, step):
    if state.value not in table(checkpoint):
        return  # no checkpoint gets there
    ticket = ticket_in(state, checkpoint=checkpoint)
    goals = dict(word.split(">") for word in table(checkpoint)[state.value].split())
    goal = goals.get(type(step).__name__)
    if goal is None:
        with pytest.raises(StateConflict, match=f"Ticket 7 is {state.value}, so it cannot"):
            move(ticket, step, 9.0)
        assert ticket == ticket_in(state, checkpoint=checkpoint)
        return
    moved = move(ticket, step, 9.0)
    assert moved.state is State(goal)
    assert moved.version == ticket.version + 1
    assert moved.moved_at == 9.0
    assert (moved.id, moved.project, moved.spec, moved.created_at) == (7, 1, ticket.spec, 0.0)
    assert type(step) in allowed(state)


def test_what_is_allowed_is_what_some_ticket_can_do():
    for state in State:
        told = {word.split(">")[0] for which in (WITH_AGENT, CHECKPOINT) for word in which.get(state.value, "").split()}
        assert {step.__name__ for step in allowed(state)} == told


def queued(**different) -> Ticket:
    return replace(ticket_in(State.QUEUED, checkpoint=False), attempt=0, change=None, **different)


def go(ticket: Ticket, *steps: Step) -> Ticket:
    for step in steps:
        ticket = move(ticket, step, 9.0)
    return ticket


def test_an_attempt_has_a_new_number_unless_it_was_cut_off():
    working = go(queued(), Start("t1"))
    assert (working.attempt, working.base) == (1, "t1")
    assert go(working, Resume("lost"), Start("t2")).attempt == 1
    assert go(working, Park(ParkReason.LIMIT, "noon"), Unpark(), Start("t2")).attempt == 1
    for cut in (Park(ParkReason.LIMIT, "noon"), Resume("lost")):
        twice = go(working, cut, *([Unpark()] if isinstance(cut, Park) else []))
        twice = go(twice, Park(ParkReason.PAUSED, "p"), Unpark(), Start("t2"))
        assert (twice.attempt, twice.interrupted) == (1, False), "parked twice it is still the same attempt"
    assert go(working, TryAgain("red", "f"), Start("t2")).attempt == 2
    assert (
        go(working, Propose(CHANGE), Park(ParkReason.PAUSED, "p"), Unpark(), TryAgain("r", "f"), Start("t")).attempt
        == 2
    )
    assert go(working, Resume("lost"), Fail("lost too often"), Retry(), Start("t2")).attempt == 2


def test_a_worktree_keeps_its_ground_until_it_is_given_new_ground():
    first = go(queued(), Start("t1"), TryAgain("red", "f"), Start("t2"))
    assert (first.base, first.plant) == ("t1", None)
    moved = go(first, TryAgain("conflict", "f", StartPoint(base="t2", tree="merged")))
    assert (moved.base, moved.plant) == ("t2", "merged")
    started = go(moved, Start("t3"))
    assert (started.base, started.plant) == ("t2", "merged")
    assert go(started, Resume("lost"), Start("t4")).plant == "merged", "a lost run may not have planted it"
    planted = go(started, StartPointUsed())
    assert (planted.state, planted.base, planted.plant) == (State.WORKING, "t2", None)


def test_parking_remembers_where_to_go_on():
    park = Park(ParkReason.LIMIT, "till noon", until=12.0)
    goes_on = {}
    for state in (State.QUEUED, State.WORKING, State.CHECKING, State.REVIEWING, State.LANDING):
        parked = go(ticket_in(state, checkpoint=False), park)
        assert parked.parked == Parked(
            reason=ParkReason.LIMIT, detail="till noon", back_to=go(parked, Unpark()).state, until=12.0
        )
        assert parked.reason == "till noon"
        back = go(parked, Unpark())
        assert (back.parked, back.reason) == (None, "")
        goes_on[state.value] = back.state.value
    assert goes_on == {
        "queued": "queued",
        "working": "queued",
        "checking": "checking",
        "reviewing": "reviewing",
        "landing": "landing",
    }


def test_a_rewind_is_the_next_attempt_on_its_own_ground_with_a_fresh_count():
    ground = StartPoint(base="b" * 40, tree="e" * 40)
    for state in State:
        if state not in (State.DRAFT, State.DONE):
            back = move(ticket_in(state, checkpoint=False), Rewind(ground, "why", "words"), 9.0)
            assert (back.state, back.base, back.plant) == (State.QUEUED, ground.base, ground.tree)
            assert (back.feedback, back.reason, back.change, back.parked) == ("words", "why", None, None)
            begun = move(back, Start("t" * 40), 10.0)
            assert (begun.attempt, begun.attempt - begun.spared, begun.base) == (3, 1, ground.base)


def test_steps_leave_their_evidence():
    landed = go(ticket_in(State.LANDING, checkpoint=False), Land("l1", unchecked=True))
    assert (landed.landed, landed.unchecked, landed.feedback) == ("l1", True, "")
    confirmed = go(ticket_in(State.CHECKING, checkpoint=True), Confirm("l2"))
    assert (confirmed.landed, confirmed.unchecked) == ("l2", False)
    proposed = go(queued(), Start("t"), Propose(CHANGE))
    assert proposed.change == CHANGE
    again = go(proposed, TryAgain("red", "look here"))
    assert (again.reason, again.feedback) == ("red", "look here")
    assert go(again, Start("t")).change is None, "a new attempt has proposed nothing yet"
    assert go(again, Start("t")).feedback == "look here"
    assert go(again, Fail("no")).reason == "no"
    assert go(again, Stop()).reason == "stopped by a person"
    assert go(again, Stop(), Retry()).feedback == "look here"
    assert go(again, Stop(), Retry("try harder")).feedback == "try harder\n\nlook here"


def test_attempts_are_counted_from_the_last_retry():
    ticket = replace(queued(), spec=TicketSpec(title="t", text="t", max_attempts=2))
    first = go(ticket, Start("t"))
    ground = StartPoint(base="b", tree="t")
    assert next_try(first, "red", "f", ground) == TryAgain("red", "f", ground)
    second = go(first, TryAgain("red", "f"), Start("t"))
    assert next_try(second, "red", "f") == Fail("gave up after 2 attempts: red", "f", why="red")
    third = go(second, Fail("gave up"), Retry(), Start("t"))
    assert (third.attempt, third.spared) == (3, 2)
    assert next_try(third, "red", "f") == TryAgain("red", "f")
    once = go(replace(ticket, spec=TicketSpec(title="t", text="t", max_attempts=1)), Start("t"))
    assert next_try(once, "red", "f") == Fail("gave up after 1 attempt: red", "f", why="red")


@pytest.mark.parametrize("cause", Cause)
def test_the_cause_goes_along_to_the_next_attempt_and_to_the_end(cause):
    first = go(queued(spec=TicketSpec(title="t", text="t", max_attempts=2)), Start("t"))
    assert next_try(first, "r", "f", cause=cause) == TryAgain("r", "f", cause=cause)
    second = go(first, TryAgain("r", "f"), Start("t"))
    assert next_try(second, "r", "f", cause=cause) == Fail("gave up after 2 attempts: r", "f", cause=cause, why="r")


def test_the_rest_after_an_attempt_that_ended_at_once_doubles_up_to_a_minute_and_starts_anew_after_a_retry():
    ticket, rests = go(queued(), Start("t")), []
    for _ in range(8):
        stopped = rest(ticket, "it failed", now=100.0)
        assert (stopped.reason, "it failed" in stopped.detail) == (ParkReason.RESTING, True)
        rests.append((stopped.until or 0.0) - 100.0)
        resting = go(ticket, TryAgain("it failed", "f"), stopped)
        assert (resting.state, resting.feedback, resting.reason) == (State.PARKED, "f", stopped.detail)
        ticket = go(resting, Unpark(), Start("t"))
    assert rests == [1, 2, 4, 8, 16, 32, 60, 60]
    assert ticket.attempt == 9
    anew = go(ticket, Fail("no"), Retry(), Start("t"))
    assert rest(anew, "it failed", now=0.0).until == 1.0


texts = st.text(max_size=3)


class Life(RuleBasedStateMachine):
    """Any steps in any order, legal or not, as jobs and people take them."""

    def __init__(self) -> None:
        super().__init__()
        self.ticket = Ticket(id=1, project=1, spec=TicketSpec(title="t", text="t", max_attempts=3))
        self.now = 0.0
        self.ever_retried = False

    @precondition(lambda self: self.ticket.version == 0)
    @rule(checkpoint=st.booleans(), attempts=st.integers(1, 4))
    def dispatch(self, checkpoint, attempts):
        spec = TicketSpec(title="t", text="t", checkpoint=checkpoint, max_attempts=attempts)
        self.take(Submit(), replace(self.ticket, spec=spec))

    @rule(step=st.sampled_from([step for step in STEPS if not isinstance(step, TryAgain)]))
    def step(self, step):
        self.take(step)

    @precondition(lambda self: self.ticket.state in (State.WORKING, State.CHECKING, State.REVIEWING, State.LANDING))
    @rule(ground=st.none() | st.builds(StartPoint, base=texts, tree=texts), feedback=texts)
    def go_wrong(self, ground, feedback):
        assume(not self.ticket.spec.checkpoint)
        self.take(next_try(self.ticket, "red", feedback, ground))

    @precondition(lambda self: self.ticket.state not in (State.DONE, State.FAILED, State.STOPPED, State.DRAFT))
    @rule()
    def go_well(self):
        """The way to done, so that long lives are common."""
        checkpoint = self.ticket.spec.checkpoint
        onward: dict[State, Step] = {
            State.QUEUED: Inspect() if checkpoint else Start("t"),
            State.WORKING: Propose(CHANGE),
            State.CHECKING: Confirm("l") if checkpoint else Prove(),
            State.REVIEWING: Approve(),
            State.LANDING: Land("l"),
            State.PARKED: Unpark(),
        }
        before = self.ticket
        self.take(onward[self.ticket.state])
        assert self.ticket is not before, "the way to done is always open"

    def take(self, step: Step, ticket: Ticket | None = None) -> None:
        before = ticket or self.ticket
        self.now += 1
        try:
            after = move(before, step, self.now)
        except StateConflict:
            return
        assert after.version == before.version + 1
        assert after.moved_at == self.now
        assert after.attempt - before.attempt in (0, 1)
        assert (after.attempt > before.attempt) <= isinstance(step, Start)
        assert before.state not in (State.DONE,), "done is for ever"
        self.ever_retried |= isinstance(step, Retry | Rewind)
        self.ticket = after

    @invariant()
    def a_state_carries_its_evidence(self):
        ticket = self.ticket
        if ticket.state is State.WORKING:
            assert ticket.attempt >= 1
            assert ticket.base is not None
            assert not ticket.interrupted
        if ticket.state in (State.CHECKING, State.REVIEWING, State.LANDING) and not ticket.spec.checkpoint:
            assert ticket.change is not None
        assert (ticket.landed is not None) == (ticket.state is State.DONE)
        assert (ticket.parked is not None) == (ticket.state is State.PARKED)
        if ticket.state in (State.FAILED, State.STOPPED, State.PARKED):
            assert ticket.reason
        if ticket.spec.checkpoint:
            assert (ticket.attempt, ticket.change) == (0, None)
            assert ticket.state not in (State.WORKING, State.REVIEWING, State.LANDING)
        if ticket.plant is not None:
            assert ticket.base is not None

    @invariant()
    def attempts_are_bounded(self):
        assert self.ticket.attempt - self.ticket.spared <= self.ticket.spec.max_attempts
        if not self.ever_retried:
            assert self.ticket.spared == 0


TestLife = Life.TestCase
TestLife.settings = settings(stateful_step_count=40)
