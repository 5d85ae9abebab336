"""Races: which lanes wait, and which of the finished ones wins."""

from __future__ import annotations

import itertools

import pytest

from legion.domain.errors import BadInput
from legion.domain.landing.conflicts import Overlap, ordered
from legion.domain.scheduling.races import (
    MOST_LANES,
    FinishedLane,
    LaneChoice,
    LaneStanding,
    choices,
    combination,
    decide,
    is_open,
    share,
    standing,
)
from legion.domain.tickets.spec import TicketSpec
from legion.domain.tickets.ticket import ENDED, Parked, ParkReason, State, Ticket


def lane(ticket: int, lines: int, findings: int | None = None) -> FinishedLane:
    return FinishedLane(ticket=ticket, lines=lines, findings=findings)


@pytest.mark.parametrize("state", State)
def test_a_lane_has_finished_when_it_waits_for_landing_and_is_out_when_it_has_ended(state: State):
    expected = LaneStanding.OUT if state in ENDED else LaneStanding.RUNNING
    assert standing(state, None) is (LaneStanding.FINISHED if state is State.LANDING else expected)


def test_a_dropped_lane_is_out():
    assert standing(None, None) is LaneStanding.OUT


@pytest.mark.parametrize("reason", ParkReason)
def test_a_parked_lane_is_worth_waiting_for_only_where_it_continues_by_itself_and_soon(reason: ParkReason):
    parked = Parked(reason=reason, detail="", back_to=State.QUEUED)
    soon = reason in (ParkReason.RESTING, ParkReason.RED_BASELINE)
    assert standing(State.PARKED, parked) is (LaneStanding.RUNNING if soon else LaneStanding.OUT)


def test_finished_lanes_wait_exactly_while_another_may_finish():
    for count in range(1, 4):
        for lanes in itertools.product(LaneStanding, repeat=count):
            assert is_open(lanes) == (LaneStanding.RUNNING in lanes)


def test_a_winner_does_not_claim_that_readers_preferred_it_where_none_did():
    result = decide([lane(7, 10, 0), lane(8, 10, 0)])
    assert result.why is not None
    assert result.why[7].endswith("and the smallest or the first of those")
    told = decide([lane(7, 10, 0), lane(8, 10, 2)]).why
    assert told is not None
    assert told[7].endswith("and readers found least in it")


def test_a_clearly_smaller_change_wins_without_a_reader():
    result = decide([lane(7, 400), lane(8, 10), lane(9, 40)])
    assert (result.winner, result.read_first) == (8, None)
    assert result.why is not None
    assert result.why[8] == "proven, and the smallest change (10 lines)"
    assert result.why[7] == "proven, and larger (400 lines) than the change of ticket 8 (10 lines)"


def test_one_reader_compares_changes_of_about_one_size():
    assert decide([lane(8, 110), lane(7, 100), lane(9, 500)]).read_first == 7
    assert decide([lane(7, 100, 3), lane(8, 110)]).read_first == 8


def test_its_ranking_decides_where_it_holds_all_of_them():
    lanes = [lane(7, 100, 0), lane(8, 110), lane(9, 500)]
    result = decide(lanes, [{7: 0}, {7: 1, 8: 0}, {7: 0, 8: 1}])
    assert (result.winner, result.read_first) == (8, None)
    assert result.why is not None
    assert result.why[8] == "proven, of the smallest changes (110 lines), and an independent reader ranks it first"
    assert decide(lanes, [{7: 0}]).read_first == 8
    assert decide([lane(7, 10), lane(9, 500)], [{7: 1, 9: 0}]).winner == 7, "size comes first"


def test_without_a_ranking_the_findings_decide_then_the_size_then_the_first():
    assert decide([lane(7, 100, 3), lane(8, 110, 1), lane(9, 500)]).winner == 8
    assert decide([lane(7, 100, 1), lane(8, 90, 1)]).winner == 8
    assert decide([lane(8, 100, 0), lane(7, 100, 0)]).winner == 7


def test_of_any_lanes_there_is_one_winner_of_the_smallest_size_or_something_to_read():
    facts = [(lines, findings) for lines in (0, 1, 6, 7, 100) for findings in (None, 0, 2)]
    for many in (1, 2, 3):
        for drawn in itertools.product(facts, repeat=many):
            lanes = [lane(number, *one) for number, one in enumerate(drawn, 1)]
            result = decide(lanes)
            smallest = min(one.lines for one in lanes)
            if result.winner is None:
                assert result.read_first is not None
                assert lanes[result.read_first - 1].findings is None
                continue
            best = lanes[result.winner - 1]
            assert best.lines <= smallest * 1.25 + 5
            near = [one for one in lanes if one.lines <= smallest * 1.25 + 5]
            assert (best.findings or 0) == min(one.findings or 0 for one in near)
            assert result.why is not None
            assert set(result.why) == {one.ticket for one in lanes}
            assert decide(lanes[::-1]).winner == result.winner, "the order does not matter"


def test_lanes_are_a_number_or_programs_and_models():
    assert choices(3, [], []) == (LaneChoice(),) * 3
    assert [one.label for one in choices(0, ["claude", "codex"], [])] == ["claude", "codex"]
    assert [one.label for one in choices(0, ["a", "b"], ["x", "y"])] == ["a x", "a y", "b x", "b y"]


@pytest.mark.parametrize(
    ("count", "drivers", "models"),
    [
        (0, (), ()),
        (1, (), ()),
        (MOST_LANES + 1, (), ()),
        (2, ("a",), ()),
        (0, ("a",), ()),
        (0, ("a", "a"), ()),
        (0, ("a", "b", "c"), ("x", "y", "z")),
        (10**12, (), ()),
        (-1, (), ()),
        (0, tuple(map(str, range(100_000))), tuple(map(str, range(100_000)))),
    ],
)
def test_other_races_are_refused(count: int, drivers: tuple[str, ...], models: tuple[str, ...]):
    with pytest.raises(BadInput):
        choices(count, drivers, models)


def test_each_lane_has_its_share_of_the_budget():
    assert share(None, 3) is None
    assert share(6.0, 3) == 2.0


def test_lanes_of_one_race_may_work_on_the_same_files():
    def ticket(id: int, state: State = State.QUEUED) -> Ticket:
        return Ticket(id=id, project=1, state=state, spec=TicketSpec(title="t", text="", files=("a/**",)))

    one, two, other = ticket(1, State.LANDING), ticket(2), ticket(3)
    assert ordered([two, other], [one], Overlap.RULE, {1: 9, 2: 9}) == [two]
    assert ordered([two], [one], Overlap.RULE) == []


@pytest.mark.parametrize(
    "diffs", [some for n in range(4) for some in itertools.product(("+one", "+" * 20_000), repeat=n)]
)
@pytest.mark.parametrize("proofs", [(), ("own", "other")])
def test_one_attempt_more_combines_two_or_more_and_has_one_try(diffs: tuple[str, ...], proofs: tuple[str, ...]):
    spec = TicketSpec(title="t", text="text", context="known", proofs=proofs, max_attempts=5, climbs=True)
    made = combination(spec, dict(enumerate(diffs, 7)))
    if len(diffs) < 2:
        assert made is None
        return
    assert made is not None
    assert (made.text, made.proofs, made.max_attempts, made.climbs) == ("text", proofs, 1, False)
    assert made.context.startswith("known\n\nSeveral agents")
    assert all(f"The attempt of ticket {number}" in made.context for number, _ in enumerate(diffs, 7))
    assert all(f"- `{command}`" in made.context for command in proofs)
    assert len(made.context) < 40_000


@pytest.mark.parametrize("finished", [[*some] for n in (1, 2, 3) for some in itertools.combinations((1, 2, 3), n)])
@pytest.mark.parametrize("combined", [None, 3])
def test_the_lane_that_combines_wins_if_it_finishes_whatever_its_size(finished: list[int], combined: int | None):
    result = decide([lane(number, number * 100) for number in finished], (), combined)
    assert result.winner == (3 if combined in finished else finished[0])
    assert result.why is not None
    assert set(result.why) == set(finished)
