"""When agents may begin: governors before, at and behind a limit, budgets, quiet hours, stagger, full hands."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from legion.config.sections.limits import QuietHours
from legion.domain.rules import Rule
from legion.domain.runs import agent_seat
from legion.domain.scheduling.admission import AdmissionRound, AdmissionState, HoldReason, StartCandidate
from legion.domain.scheduling.budgets import Budgets, EpicSpending, balance
from legion.domain.scheduling.decide import AgentView, BoardSnapshot, JobKind, ProjectView, decide
from legion.domain.scheduling.job_places import StartJob
from legion.domain.scheduling.throttle import (
    AFTER_RESET,
    APART,
    CAREFUL,
    OPEN,
    Throttle,
    ThrottleSettings,
    ThrottleState,
    read,
)
from legion.domain.scheduling.usage import ProviderLimit
from legion.domain.tickets.spec import TicketSpec
from legion.domain.tickets.ticket import State, Ticket

NOW = 1000.0
ON = ThrottleSettings(on=True, slow_from=0.6, stop_at=0.9)


def limit(used: float | None, resets_at: float | None = 5000.0, status: int = 200) -> ProviderLimit:
    return ProviderLimit(provider="p", at=NOW, status=status, span="5h", utilization=used, resets_at=resets_at)


class TestGovernor:
    def test_below_the_soft_share_nothing_is_held(self):
        assert read(limit(0.59), ON, 10, NOW) == OPEN
        assert read(None, ON, 10, NOW) == OPEN
        assert read(limit(None), ON, 10, NOW) == OPEN

    def test_from_the_soft_share_on_fewer_and_fewer_work_at_once_and_at_least_one(self):
        shares = [0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.89]
        found = [read(limit(used), ON, 10, NOW) for used in shares]
        assert {reading.stance for reading in found} == {ThrottleState.SLOW}
        most = [reading.most or 0 for reading in found]
        assert most == sorted(most, reverse=True)
        assert (most[0], most[-1]) == (10, 1)
        assert {reading.apart for reading in found} == {APART}

    @pytest.mark.parametrize(("used", "status"), [(0.9, 200), (1.0, 200), (0.1, 429), (None, 429)])
    def test_at_the_wall_nothing_begins_before_the_reset(self, used: float | None, status: int):
        found = read(limit(used, status=status), ON, 10, NOW)
        assert (found.stance, found.most, found.until) == (ThrottleState.CLOSED, 0, 5000.0 + AFTER_RESET)

    def test_a_wall_without_a_known_end_only_slows_down(self):
        assert read(limit(0.95, None), ON, 10, NOW).stance is ThrottleState.SLOW
        assert read(limit(None, None, 429), ON, 10, NOW) == OPEN

    def test_behind_the_reset_work_begins_one_after_the_other_for_a_while(self):
        assert read(limit(1.0, status=429), ON, 10, 5000.0).stance is ThrottleState.CLOSED
        behind = read(limit(1.0, status=429), ON, 10, 5000.0 + AFTER_RESET)
        assert (behind.stance, behind.most, behind.apart) == (ThrottleState.OPEN, None, APART)
        assert read(limit(1.0, status=429), ON, 10, 5000.0 + CAREFUL) == OPEN

    @pytest.mark.parametrize(("used", "status"), list(product((0.1, 0.7, 1.0), (200, 429))))
    def test_switched_off_it_holds_nobody(self, used: float, status: int):
        assert read(limit(used, status=status), ThrottleSettings(on=False), 10, NOW) == OPEN

    @given(
        st.floats(0, 1), st.floats(0.05, 1), st.floats(0.05, 1), st.integers(0, 64), st.sampled_from([200, 429]),
        st.one_of(st.none(), st.floats(0, 3000)),
    )  # fmt: skip
    def test_whatever_the_settings_the_answer_makes_sense(
        self, used: float, slow: float, stop: float, room: int, status: int, resets_at: float | None
    ):
        found = read(limit(used, resets_at, status), ThrottleSettings(slow_from=slow, stop_at=stop), room, NOW)
        if found.stance is ThrottleState.SLOW:
            assert 1 <= (found.most or 0) <= max(room, 1)
        if found.stance is ThrottleState.CLOSED:
            assert found.until is not None
            assert found.until > NOW


def rhythm(reading: Throttle = OPEN, **more: object) -> AdmissionState:
    facts = {"accounts": dict.fromkeys(range(1, 10), ("p",)), "throttles": {"p": reading}}
    return AdmissionState(**{**facts, **more})  # type: ignore[arg-type]


@dataclass(frozen=True)
class Admitted:
    begun: tuple[StartCandidate, ...]
    held: dict[StartCandidate, HoldReason] = field(default_factory=dict)

    @property
    def wake_at(self) -> float | None:
        return min((hold.until for hold in self.held.values() if hold.until is not None), default=None)


def admit(
    state: AdmissionState, wanted: Sequence[StartCandidate], now: float, *, started: Collection[StartCandidate] = ()
) -> Admitted:
    """Ask for all of them, in this order."""
    one = AdmissionRound(state, now)
    found = {candidate: one.admit(candidate, started=candidate in started) for candidate in wanted}
    begun = tuple(candidate for candidate, hold in found.items() if hold is None)
    return Admitted(begun, {candidate: hold for candidate, hold in found.items() if hold is not None})


class TestAdmission:
    def test_without_any_rhythm_all_begin(self):
        assert admit(AdmissionState(), [3, 1, 2], NOW).begun == (3, 1, 2)

    def test_a_closed_account_holds_its_own_and_nobody_else(self):
        closed = Throttle(stance=ThrottleState.CLOSED, most=0, until=2000.0, why="p: used")
        found = admit(rhythm(closed, accounts={1: ("p",), 3: ("q",)}), [1, 2, 3], NOW)
        assert found.begun == (2, 3)
        assert (found.held[1].rule, found.wake_at) == (Rule.GOVERNOR, 2000.0)

    def test_who_may_ask_elsewhere_is_held_only_where_all_of_them_are_closed(self):
        closed, later = (
            Throttle(stance=ThrottleState.CLOSED, most=0, until=until, why="used") for until in (2000.0, 3000.0)
        )
        both = {1: ("p", "q"), 2: ("q", "p"), 3: ("p",)}
        found = admit(rhythm(closed, accounts=both), [1, 2, 3], NOW)
        assert (found.begun, set(found.held)) == ((1, 2), {3})
        shut = rhythm(accounts=both, throttles={"p": later, "q": closed})
        assert admit(shut, [1, 2, 3], NOW).wake_at == 2000.0
        slow = Throttle(stance=ThrottleState.SLOW, most=1)
        moved = rhythm(accounts=both, throttles={"p": closed, "q": slow}, at_work=frozenset({1}))
        assert admit(moved, [2], NOW).begun == (), "who is at work counts where it is served"

    def test_what_is_in_hand_waits_for_money_and_limits_and_for_nothing_else(self):
        quiet = rhythm(quiet_until=2000.0, stagger=5.0, last_start=NOW, waiting=1, most_waiting=1)
        assert admit(quiet, [1], NOW, started={1}).begun == (1,)
        closed = Throttle(stance=ThrottleState.CLOSED, most=0, until=2000.0, why="used")
        assert admit(rhythm(closed), [1], NOW, started={1}).begun == ()
        assert (
            admit(rhythm(over_budget={1: HoldReason(rule=Rule.BUDGET, why="spent")}), [1], NOW, started={1}).begun == ()
        )

    @pytest.mark.parametrize(("running", "most"), list(product(range(4), range(1, 5))))
    def test_near_the_limit_no_more_work_at_once_than_it_says(self, running: int, most: int):
        slow = Throttle(stance=ThrottleState.SLOW, most=most)
        found = admit(rhythm(slow, at_work=frozenset(range(1, running + 1))), [5, 6, 7, 8], NOW)
        assert len(found.begun) == max(0, min(4, most - running))

    def test_apart_means_one_now_and_the_next_later(self):
        found = admit(rhythm(Throttle(apart=3.0)), [1, 2], NOW)
        assert (found.begun, found.held[2].rule, found.wake_at) == ((1,), Rule.ONE_BY_ONE, NOW + 3.0)
        later = rhythm(Throttle(apart=3.0), last_starts={"p": NOW})
        assert admit(later, [2], NOW + 2.9).begun == ()
        assert admit(later, [2], NOW + 3.0).begun == (2,)

    def test_stagger_is_between_all_of_them_models_or_not(self):
        found = admit(AdmissionState(stagger=5.0), [1, 2], NOW)
        assert (found.begun, found.wake_at) == ((1,), NOW + 5.0)
        assert admit(AdmissionState(stagger=5.0, last_start=NOW + 100), [1], NOW).begun == (1,)

    def test_in_quiet_hours_nobody_begins(self):
        found = admit(AdmissionState(quiet_until=2000.0), [1], NOW)
        assert (found.begun, found.held[1].rule, found.wake_at) == ((), Rule.QUIET_HOURS, 2000.0)
        assert admit(AdmissionState(quiet_until=2000.0), [1], 2000.0).begun == (1,)

    @pytest.mark.parametrize(("waiting", "most"), list(product(range(4), range(4))))
    def test_a_person_with_full_hands_gets_nothing_new(self, waiting: int, most: int):
        found = admit(AdmissionState(waiting=waiting, most_waiting=most), [1], NOW)
        assert bool(found.begun) is (most == 0 or waiting < most)

    def test_a_turn_of_a_standing_agent_begins_like_a_ticket(self):
        seat = agent_seat(1)
        assert admit(AdmissionState(quiet_until=2000.0), [seat], NOW).held[seat].rule is Rule.QUIET_HOURS
        assert admit(AdmissionState(stagger=5.0), [1, seat], NOW).begun == (1,)
        slow = Throttle(stance=ThrottleState.SLOW, most=1)
        assert admit(rhythm(slow, accounts={1: ("p",), seat: ("p",)}, at_work=frozenset({seat})), [1], NOW).begun == ()

    def test_a_person_with_full_hands_is_still_answered(self):
        seat = agent_seat(1)
        assert admit(AdmissionState(waiting=1, most_waiting=1), [1, seat], NOW).begun == (seat,)

    def test_a_spent_budget_holds_its_ticket(self):
        hold = HoldReason(rule=Rule.BUDGET, why="spent")
        assert admit(AdmissionState(over_budget={1: hold}), [1, 2], NOW).begun == (2,)


@pytest.mark.parametrize("in_a_turn", [True, False])
def test_a_turn_that_has_begun_goes_on_and_another_is_held(in_a_turn: bool):
    view = ProjectView(
        id=1, parallel=9, paused=False, trusted=True, baseline_known=True, baseline_red=False, upstream_pending=False
    )
    agent = AgentView(number=1, project=1, wanted=True, in_a_turn=in_a_turn)
    quiet = AdmissionState(quiet_until=NOW + 1)
    facts = BoardSnapshot(
        projects=(view,), tickets=(), ended={}, jobs=frozenset(), slots=9, agents=(agent,), admission=quiet
    )  # fmt: skip
    found = decide(facts, NOW)
    assert found.commands == ((StartJob(JobKind.SERVE, 1),) if in_a_turn else ())
    assert set(found.held) == (set() if in_a_turn else {agent_seat(1)})


@pytest.mark.parametrize("state", [state for state in State if state not in (State.DONE, State.FAILED, State.STOPPED)])
def test_what_was_begun_goes_on_and_checks_and_landing_never_wait(state: State):
    view = ProjectView(
        id=1, parallel=9, paused=False, trusted=True, baseline_known=False, baseline_red=False, upstream_pending=False
    )
    ticket = Ticket(id=1, project=1, spec=TicketSpec(title="t", text=""), state=state)
    facts = BoardSnapshot(projects=(view,), tickets=(ticket,), ended={}, jobs=frozenset(), slots=9)
    quiet = replace(facts, admission=AdmissionState(quiet_until=NOW + 1))
    free, held = decide(facts, NOW), decide(quiet, NOW)
    begins = StartJob(JobKind.RUN, 1, 0)
    if state is State.QUEUED:
        assert begins in free.commands
        assert begins not in held.commands
        assert held.wake_at == NOW + 1
    else:
        assert set(free.commands) <= set(held.commands)
    assert StartJob(JobKind.BASELINE, 1) in held.commands
    # A run that only needs its end is not a beginning.
    ending = decide(replace(quiet, open_runs=frozenset({1})), NOW)
    assert state is State.WORKING or StartJob(JobKind.RUN, 1) in ending.commands


@pytest.mark.parametrize("begun", [True, False])
def test_a_reading_that_nobody_can_pay_for_is_held_and_one_that_has_begun_goes_on(begun: bool):
    view = ProjectView(
        id=1, parallel=9, paused=False, trusted=True, baseline_known=True, baseline_red=False, upstream_pending=False
    )
    ticket = Ticket(id=1, project=1, spec=TicketSpec(title="t", text=""), state=State.REVIEWING)
    spent = AdmissionState(over_budget={1: HoldReason(rule=Rule.BUDGET, why="spent")})
    facts = BoardSnapshot(
        projects=(view,), tickets=(ticket,), ended={}, jobs=frozenset(), slots=9, admission=spent,
        open_reviews=frozenset({1} if begun else ()),
    )  # fmt: skip
    found = decide(facts, NOW)
    assert (StartJob(JobKind.REVIEW, 1, 0) in found.commands, set(found.held)) == (begun, set() if begun else {1})


class TestBudgets:
    SPENT = (
        EpicSpending(project=1, epic="a", day="d1", usd=3.0),
        EpicSpending(project=1, epic="b", day="d2", usd=2.0),
        EpicSpending(project=2, epic="a", day="d2", usd=4.0),
    )

    @pytest.mark.parametrize(
        ("budgets", "project", "epic", "empty"),
        [
            (Budgets(), 1, "a", ""),
            (Budgets(day=6.0), 1, "a", "today's budget of $6.00"),
            (Budgets(day=6.01), 1, "a", ""),
            (Budgets(project=5.0), 1, "c", "the project's budget of $5.00"),
            (Budgets(project=5.0), 2, "a", ""),
            (Budgets(epic=3.0), 1, "a", "the budget of epic a, of $3.00"),
            (Budgets(epic=3.0), 1, "b", ""),
            (Budgets(epic=0.01), 1, "", ""),
            (Budgets(epic=4.0), 2, "a", "the budget of epic a, of $4.00"),
            (Budgets(epics={(1, "a"): 3.0}), 1, "a", "the budget of epic a, of $3.00"),
            (Budgets(epics={(2, "a"): 3.0}), 1, "a", ""),
            (Budgets(epic=0.01, epics={(1, "a"): 99.0}), 1, "a", ""),
        ],
    )
    def test_a_budget_counts_what_belongs_to_it_and_is_spent_at_its_figure(
        self, budgets: Budgets, project: int, epic: str, empty: str
    ):
        found = balance(budgets, self.SPENT, "d2").empty(project, epic)
        assert (found is not None) is bool(empty)
        assert found is None or (found.words.startswith(empty) and found.daily is ("today" in empty))


@pytest.mark.parametrize(
    ("start", "end", "minute", "left"),
    [(60, 120, 60, 60), (60, 120, 119.5, 0.5), (60, 120, 120, None), (60, 120, 59, None),
     (1320, 420, 1320, 540), (1320, 420, 0, 420), (1320, 420, 419, 1), (1320, 420, 420, None), (1320, 420, 900, None)],
)  # fmt: skip
def test_quiet_hours_may_lead_over_midnight(start: int, end: int, minute: float, left: float | None):
    assert QuietHours(start, end).left(minute) == left
