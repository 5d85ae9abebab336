"""The search in a red batch: for every batch the first culprit is found, nobody else is blamed, by few checks."""

from __future__ import annotations

import random
from collections.abc import Collection
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from legion.domain.checks import Check, CheckResult, Receipt, missing
from legion.domain.landing.queue import BisectProbe, BisectState, probes, room_after, with_results
from tests.support.sampling import sampled


def holds(probe: BisectProbe) -> set[int]:
    return set(range(probe.prefix)) - {probe.without}


Fault = frozenset[int]
"""Changes that are red together: one that is bad by itself, or a pair that does not get along."""


def alone(bad: Collection[int]) -> list[Fault]:
    return [frozenset({one}) for one in bad]


def search_through(
    size: int, faults: Collection[Fault], slots: int, unbuildable: Collection[int] = ()
) -> tuple[BisectState, int]:
    """Until it is settled; with the number of rounds. `unbuildable` cannot be left out: the others would conflict."""
    search = BisectState(size=size)
    tested: dict[BisectProbe, bool | None] = {}
    rounds = 0
    while not search.settled:
        tried = probes(search, slots)
        assert 1 <= len(tried) <= slots
        assert len(set(tried)) == len(tried)
        assert not tested.keys() & set(tried), "only what is not known yet"
        assert all(one.without is None or one.prefix == size for one in tried)
        results = {one: None if one.without in unbuildable else is_green(one, faults) for one in tried}
        tested |= results
        search = with_results(search, results)
        rounds += 1
        assert rounds <= size + 2
    assert probes(search, slots) == ()
    assert search.lands is None or tested[search.lands] is True, "only what was tested green lands"
    if search.culprit is not None:
        assert tested[search.convicted_by] is False
        assert search.culprit in holds(search.convicted_by)
        assert search.lands is None or search.culprit not in holds(search.lands)
    return search, rounds


def is_green(probe: BisectProbe, faults: Collection[Fault]) -> bool:
    return not any(fault <= holds(probe) for fault in faults)


def narrowing(size: int, slots: int, down_to: int) -> int:
    """Rounds until at most so many suspects are left, if every round leaves at most one part of slots + 1."""
    rounds, left = 0, size
    while left > down_to:
        left = -(-left // (slots + 1))
        rounds += 1
    return rounds


SLOTS = range(1, 7)


def is_alone(slots: int) -> bool:
    """One check at a time is halving; with more, a round tries several parts. A sample has both."""
    return slots == 1


@pytest.mark.parametrize("slots", SLOTS)
def test_the_only_culprit_is_found_whoever_it_is(slots):
    for size in range(1, 41):
        most = 1 + narrowing(size, slots, down_to=1)
        for bad in range(size):
            search, rounds = search_through(size, alone({bad}), slots)
            assert search.culprit == bad
            assert rounds <= most, (size, bad)


@pytest.mark.parametrize("slots", sampled(SLOTS, 2, is_alone))
def test_of_two_culprits_the_first_is_found_first(slots):
    for size in range(2, 21):
        most = 2 + narrowing(size, slots, down_to=1)
        for bad in combinations(range(size), 2):
            search, rounds = search_through(size, alone(bad), slots)
            assert search.culprit == bad[0]
            assert search.lands == (BisectProbe(bad[0]) if bad[0] else None)
            assert rounds <= most, (size, bad)


@pytest.mark.parametrize("slots", sampled(SLOTS, 2, is_alone))
def test_of_two_that_do_not_get_along_the_later_goes_back(slots):
    for size in range(2, 21):
        for pair in combinations(range(size), 2):
            search, _ = search_through(size, [frozenset(pair)], slots)
            assert search.culprit == pair[1]


@pytest.mark.parametrize("slots", SLOTS)
def test_a_culprit_that_cannot_be_left_out_is_found_by_prefixes(slots):
    for size in range(1, 21):
        for bad in range(size):
            search, rounds = search_through(size, alone({bad}), slots, unbuildable=range(size))
            assert search.culprit == bad
            assert search.lands == (BisectProbe(bad) if bad else None)
            assert rounds <= 2 + narrowing(size, slots, down_to=1)


@pytest.mark.parametrize("slots", SLOTS)
def test_a_good_batch_is_tested_once_and_lands_whole(slots):
    for size in range(1, 41):
        search, rounds = search_through(size, (), slots)
        assert (search.lands, search.culprit, rounds) == (BisectProbe(size), None, 1)


def land_everything(
    size: int, faults: Collection[Fault], slots: int, *, learns: bool = False
) -> tuple[list[int], list[int], int]:
    """As the queue does it: what is green lands, the culprit goes back, the rest is in the next batches."""
    waiting = list(range(size))
    landed: list[int] = []
    blamed: list[int] = []
    rounds, room, reds = 0, size, 0
    while waiting:
        batch = waiting[:room]
        inside = [fault - set(landed) for fault in faults if fault <= {*landed, *batch}]
        left = [frozenset(batch.index(one) for one in fault) for fault in inside]
        search, took = search_through(len(batch), left, slots)
        rounds += took
        lands = [] if search.lands is None else [batch[position] for position in sorted(holds(search.lands))]
        landed += lands
        blamed += [] if search.culprit is None else [batch[search.culprit]]
        waiting = [one for one in waiting if one not in landed and one not in blamed]
        if learns:
            reds = 0 if search.red is None else reds + 1
            room = room_after(reds=reds, tried=len(batch), room=room, most=size)
    return landed, blamed, rounds


@pytest.mark.parametrize("slots", SLOTS)
def test_with_one_culprit_all_others_land_and_few_rounds_are_needed(slots):
    """The whole batch, then narrowing until each suspect has a slot, then all without one of them. Where a slot is too
    few for that, what stood behind the culprit is a batch of its own."""
    for size in range(1, 21):
        most = 2 + narrowing(size, slots, down_to=slots)
        for bad in range(size):
            landed, blamed, rounds = land_everything(size, alone({bad}), slots)
            assert landed == [one for one in range(size) if one != bad]
            assert blamed == [bad]
            assert rounds <= most, (size, bad)


@pytest.mark.parametrize("slots", sampled(SLOTS, 2, is_alone))
def test_with_two_culprits_all_others_land_in_order_and_only_those_two_go_back(slots):
    for size in range(2, 21):
        most = 5 + 2 * narrowing(size, slots, down_to=1)
        for bad in combinations(range(size), 2):
            landed, blamed, rounds = land_everything(size, alone(bad), slots)
            assert landed == [one for one in range(size) if one not in bad]
            assert blamed == list(bad)
            assert rounds <= most, (size, bad)


@pytest.mark.parametrize("slots", sampled(SLOTS, 2, is_alone))
def test_of_two_that_do_not_get_along_only_the_later_stays_behind(slots):
    for size in range(2, 21):
        for pair in combinations(range(size), 2):
            landed, blamed, _ = land_everything(size, [frozenset(pair)], slots)
            assert (landed, blamed) == ([one for one in range(size) if one != pair[1]], [pair[1]])


@pytest.mark.parametrize(("slots", "most"), [(1, 7), (2, 5), (4, 3)])
def test_twenty_changes_with_one_bad_take_few_rounds(slots, most):
    assert max(land_everything(20, alone({bad}), slots)[2] for bad in range(20)) == most


@pytest.mark.parametrize(("slots", "part"), [(1, 0.85), (2, 0.85), (4, 0.97)])
def test_batches_that_learn_take_fewer_rounds_where_one_change_in_five_is_bad(slots, part):
    """Sixty changes, in twenty orders: a batch of all of them is always red."""
    orders = [alone(random.Random(seed).sample(range(60), 12)) for seed in range(20)]
    fixed = sum(land_everything(60, faults, slots)[2] for faults in orders)
    assert sum(land_everything(60, faults, slots, learns=True)[2] for faults in orders) <= part * fixed


@pytest.mark.parametrize("slots", SLOTS)
def test_batches_that_learn_cost_nothing_where_a_single_change_is_bad(slots):
    for bad in range(20):
        rounds = [land_everything(20, alone({bad}), slots, learns=learns)[2] for learns in (False, True)]
        assert rounds[1] == rounds[0], bad


@given(size=st.integers(1, 30), slots=st.integers(1, 8), learns=st.booleans(), data=st.data())
def test_all_good_changes_land_in_order_and_only_bad_ones_go_back(size, slots, learns, data):
    bad = data.draw(st.sets(st.integers(0, size - 1)))
    landed, blamed, _ = land_everything(size, alone(bad), slots, learns=learns)
    assert landed == [one for one in range(size) if one not in bad]
    assert blamed == sorted(bad)


@given(size=st.integers(1, 30), slots=st.integers(1, 8), data=st.data())
def test_whatever_the_checks_say_the_search_ends_and_lands_only_what_was_green(size, slots, data):
    """Checks may contradict each other: a flaky one, or a later change that hides an earlier fault."""
    search = BisectState(size=size)
    told: dict[BisectProbe, bool | None] = {}
    for _ in range(size + 2):
        if search.settled:
            break
        # Only what leaves a change out may turn out to be impossible to put together.
        results = {
            probe: data.draw(st.booleans() if probe.without is None else st.none() | st.booleans())
            for probe in probes(search, slots)
        }
        told |= results
        search = with_results(search, results)
    assert search.settled
    assert search.lands is None or told[search.lands] is True
    if search.culprit is not None:
        assert told[search.convicted_by] is False
        assert search.culprit in holds(search.convicted_by)


def test_an_earlier_red_outweighs_a_later_green():
    assert with_results(BisectState(size=9, red=9), {BisectProbe(3): False, BisectProbe(6): True}) == BisectState(
        size=9, green=0, red=3
    )
    assert with_results(BisectState(size=9, red=9), {BisectProbe(3): True, BisectProbe(6): True}) == BisectState(
        size=9, green=6, red=9
    )
    assert with_results(
        BisectState(size=9, green=2, red=9), {BisectProbe(3): False, BisectProbe(6): False}
    ) == BisectState(size=9, green=2, red=3)
    assert with_results(BisectState(size=9), {BisectProbe(9): True}) == BisectState(size=9, green=9)


def test_as_soon_as_each_suspect_has_a_slot_all_but_one_are_tested_together():
    twenty = with_results(BisectState(size=20), {BisectProbe(20): False})
    assert probes(twenty, 4) == (BisectProbe(4), BisectProbe(8), BisectProbe(12), BisectProbe(16))
    narrowed = with_results(
        twenty, {BisectProbe(4): True, BisectProbe(8): True, BisectProbe(12): False, BisectProbe(16): False}
    )
    assert probes(narrowed, 4) == tuple(BisectProbe(20, without=suspect) for suspect in (8, 9, 10, 11))
    found = with_results(narrowed, {one: one.without == 10 for one in probes(narrowed, 4)})
    assert (found.culprit, found.lands, found.convicted_by) == (10, BisectProbe(20, without=10), BisectProbe(20))


def test_slots_that_are_left_over_test_prefixes_in_case_there_are_two_culprits():
    two = BisectState(size=9, green=3, red=5)
    assert probes(two, 2) == (BisectProbe(9, without=3), BisectProbe(9, without=4))
    assert probes(two, 3) == (BisectProbe(9, without=3), BisectProbe(9, without=4), BisectProbe(4))


def receipt(command: str, tree: str, verdict: CheckResult) -> Receipt:
    return Receipt(
        id=1,
        project=1,
        ticket=None,
        name="",
        command=command,
        commit="c",
        tree=tree,
        verdict=verdict,
        exit_code=0,
        duration=1.0,
        made_at=0.0,
        tail="",
        output="",
        digest="",
    )


@pytest.mark.parametrize("verdict", CheckResult)
def test_only_a_green_receipt_for_this_command_on_this_tree_saves_a_check(verdict):
    lint, test = Check(name="lint", command="make lint"), Check(name="test", command="make test")
    have = [receipt("make test", "t1", verdict), receipt("make lint", "t2", CheckResult.GREEN)]
    assert missing((lint, test), "t1", have) == ((lint,) if verdict is CheckResult.GREEN else (lint, test))
    assert missing((lint, test), "t3", have) == (lint, test)
    assert missing((), "t1", have) == ()
