"""The merge queue's policy: for every batch the first culprit is found, nobody else is blamed, by few checks."""

from __future__ import annotations

from collections.abc import Collection
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from legion.domain.checks import Check, Receipt, Verdict, missing
from legion.domain.landing import Search, learn, order, probes
from legion.domain.tickets import Ticket, Wish


def search_through(size: int, bad: Collection[int], slots: int) -> tuple[Search, int]:
    """Until it is settled; with the number of rounds. A prefix is green when it holds no bad change."""
    first_bad = min(bad, default=size)
    search = Search(size=size)
    rounds = 0
    while not search.settled:
        tried = probes(search, slots)
        assert 1 <= len(tried) <= slots
        assert len(set(tried)) == len(tried)
        low, high = search.green, search.size + 1 if search.red is None else search.red
        assert all(low < prefix < high for prefix in tried), "only what is not known yet"
        search = learn(search, {prefix: prefix <= first_bad for prefix in tried})
        rounds += 1
    assert probes(search, slots) == ()
    return search, rounds


def rounds_bound(size: int, slots: int) -> int:
    """The whole batch first; then every round leaves at most one part of slots + 1."""
    rounds, left = 1, size
    while left > 1:
        left = -(-left // (slots + 1))
        rounds += 1
    return rounds


@pytest.mark.parametrize("slots", range(1, 9))
def test_the_first_culprit_is_found_whoever_it_is(slots):
    for size in range(1, 41):
        most = rounds_bound(size, slots)
        for bad in ({one} for one in range(size)):
            search, rounds = search_through(size, bad, slots)
            assert search.culprit == search.green == min(bad)
            assert rounds <= most, (size, bad)


@pytest.mark.parametrize("slots", range(1, 9))
def test_of_two_culprits_the_first_is_found_first(slots):
    for size in range(2, 41):
        for bad in combinations(range(size), 2):
            search, _ = search_through(size, bad, slots)
            assert search.culprit == search.green == bad[0]


@pytest.mark.parametrize("slots", range(1, 9))
def test_a_good_batch_is_tested_once_and_lands_whole(slots):
    for size in range(1, 41):
        search, rounds = search_through(size, (), slots)
        assert (search.green, search.culprit, rounds) == (size, None, 1)


def land_everything(size: int, bad: Collection[int], slots: int) -> tuple[list[int], list[int], int]:
    """As the queue does it: what is green lands, the culprit goes back, the rest is the next batch."""
    waiting = list(range(size))
    landed: list[int] = []
    blamed: list[int] = []
    rounds = 0
    while waiting:
        search, took = search_through(len(waiting), [waiting.index(one) for one in bad if one in waiting], slots)
        rounds += took
        landed += waiting[: search.green]
        if search.culprit is not None:
            blamed.append(waiting[search.culprit])
        waiting = waiting[search.green + (search.culprit is not None) :]
    return landed, blamed, rounds


@pytest.mark.parametrize(("slots", "most"), [(1, 7), (4, 4)])
def test_twenty_changes_with_one_bad_take_few_checks(slots, most):
    for bad in range(20):
        landed, blamed, rounds = land_everything(20, {bad}, slots)
        assert landed == [one for one in range(20) if one != bad]
        assert blamed == [bad]
        assert rounds <= most, bad


@given(size=st.integers(1, 30), slots=st.integers(1, 8), data=st.data())
def test_all_good_changes_land_in_order_and_only_bad_ones_go_back(size, slots, data):
    bad = data.draw(st.sets(st.integers(0, size - 1)))
    landed, blamed, _ = land_everything(size, bad, slots)
    assert landed == [one for one in range(size) if one not in bad]
    assert blamed == sorted(bad)


@given(size=st.integers(1, 30), slots=st.integers(1, 8), data=st.data())
def test_whatever_the_checks_say_the_search_ends_and_lands_only_what_was_green(size, slots, data):
    """Checks may contradict each other: a flaky one, or a later change that hides an earlier fault."""
    search = Search(size=size)
    told: dict[int, bool] = {}
    for _ in range(size + 1):
        if search.settled:
            break
        results = {prefix: data.draw(st.booleans()) for prefix in probes(search, slots)}
        told |= results
        search = learn(search, results)
    assert search.settled
    assert search.green == 0 or told[search.green]
    if search.culprit is not None:
        assert told[search.culprit + 1] is False


def test_an_earlier_red_outweighs_a_later_green():
    assert learn(Search(size=9, red=9), {3: False, 6: True}) == Search(size=9, green=0, red=3)
    assert learn(Search(size=9, red=9), {3: True, 6: True}) == Search(size=9, green=6, red=9)
    assert learn(Search(size=9, green=2, red=9), {3: False, 6: False}) == Search(size=9, green=2, red=3)
    assert learn(Search(size=9), {9: True}) == Search(size=9, green=9)


def test_the_batch_goes_by_priority_then_by_waiting_then_by_number():
    def ticket(number: int, priority: int, moved_at: float) -> Ticket:
        return Ticket(id=number, project=1, wish=Wish(title="", text="", priority=priority), moved_at=moved_at)

    waiting = [ticket(1, 0, 5.0), ticket(2, 0, 4.0), ticket(3, 1, 9.0), ticket(5, 0, 4.0), ticket(4, -1, 1.0)]
    assert [one.id for one in order(waiting, 9)] == [3, 2, 5, 1, 4]
    assert [one.id for one in order(reversed(waiting), 3)] == [3, 2, 5]
    assert order([], 3) == ()


def receipt(command: str, tree: str, verdict: Verdict) -> Receipt:
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


@pytest.mark.parametrize("verdict", Verdict)
def test_only_a_green_receipt_for_this_command_on_this_tree_saves_a_check(verdict):
    lint, test = Check(name="lint", command="make lint"), Check(name="test", command="make test")
    have = [receipt("make test", "t1", verdict), receipt("make lint", "t2", Verdict.GREEN)]
    assert missing((lint, test), "t1", have) == ((lint,) if verdict is Verdict.GREEN else (lint, test))
    assert missing((lint, test), "t3", have) == (lint, test)
    assert missing((), "t1", have) == ()
