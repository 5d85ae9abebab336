"""Reports about usage: every cut has the same sum, waste is what did not land, and a ticket lands once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import product
from random import Random

import pytest

from legion.domain.scheduling import usage
from legion.domain.scheduling.usage import (
    AttemptFate,
    RunUsage,
    Spending,
    Usage,
    UsageBy,
    UsageSlice,
    fate,
    since,
    summed,
)

NOON = 1_700_049_600.0
"""A day's noon in UTC, 2023-11-15."""
HOUR = 3600.0


def work(
    run: int, ticket: int = 1, fate: AttemptFate = AttemptFate.LANDED, *, at: float = NOON, hours: float = 1.0
) -> RunUsage:
    return RunUsage(
        run=run,
        ticket=ticket,
        title=f"ticket {ticket}",
        epic=f"epic {ticket % 2}",
        agent=f"agent {ticket}",
        started_at=at,
        ended_at=at + hours * HOUR,
        fate=fate,
    )


def spent(run: int, usd: float, model: str = "small", day: str = "2023-11-15") -> Spending:
    return Spending(run=run, provider="p", model=model, day=day, usage=Usage(requests=1, input=10, usd=usd))


def day_of(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).date().isoformat()


def report(by: UsageBy, runs: Sequence[RunUsage], costs: Sequence[Spending], now: float) -> tuple[UsageSlice, ...]:
    return usage.report(by, runs, costs, now=now, day_of=day_of)


def by_key(shares: tuple[UsageSlice, ...]) -> dict[str, UsageSlice]:
    return {share.key: share for share in shares}


@pytest.mark.parametrize(("latest", "done", "live"), list(product((1, 2, 3), (True, False), (True, False))))
def test_only_the_latest_attempt_can_have_landed_or_be_open(latest: int, done: bool, live: bool):
    found = fate(attempt=2, latest=latest, done=done, live=live)
    if latest == 2 and done:
        assert found is AttemptFate.LANDED
    elif latest == 2 and live:
        assert found is AttemptFate.OPEN
    else:
        assert found is AttemptFate.WASTED


def test_an_attempt_that_did_not_land_is_waste_and_part_of_the_price_of_what_did():
    runs = [work(1, fate=AttemptFate.WASTED), work(2)]
    (share,) = report(UsageBy.TICKET, runs, [spent(1, 3.0), spent(2, 1.0)], NOON)
    assert (share.key, share.usage.usd, share.wasted.usd) == ("1", 4.0, 3.0)
    assert (share.runs, share.wasted_runs, share.landed) == (2, 1, 1)
    assert (share.seconds, share.wasted_seconds) == (2 * HOUR, HOUR)
    assert share.usd_per_landed == 4.0


def test_a_ticket_lands_once_though_its_last_attempt_took_three_runs():
    (share,) = report(UsageBy.TICKET, [work(1), work(2), work(3)], [], NOON)
    assert (share.landed, share.runs, share.wasted_runs) == (1, 3, 0)


def test_nothing_landed_has_no_price():
    (share,) = report(UsageBy.TICKET, [work(1, fate=AttemptFate.OPEN)], [spent(1, 2.0)], NOON)
    assert (share.usd_per_landed, share.wasted.usd) == (None, 0.0)


def test_a_run_over_midnight_is_split_at_midnight():
    over = work(1, at=NOON + 11 * HOUR, hours=3)
    found = by_key(report(UsageBy.DAY, [over], [spent(1, 1.0), spent(1, 2.0, day="2023-11-16")], NOON))
    assert {day: (share.seconds, share.usage.usd) for day, share in found.items()} == {
        "2023-11-15": (HOUR, 1.0),
        "2023-11-16": (2 * HOUR, 2.0),
    }
    assert (found["2023-11-16"].landed, found["2023-11-16"].runs, found["2023-11-15"].runs) == (1, 1, 0)


def test_the_clock_of_a_run_is_its_main_models_and_a_run_without_any_has_a_place_of_its_own():
    runs = [work(1), work(2, ticket=2)]
    found = by_key(report(UsageBy.MODEL, runs, [spent(1, 3.0, "big"), spent(1, 1.0, "small")], NOON))
    assert {name: (share.seconds, share.usage.usd) for name, share in found.items()} == {
        "big": (HOUR, 3.0),
        "small": (0.0, 1.0),
        "": (HOUR, 0.0),
    }


def test_a_run_that_goes_on_counts_up_to_now():
    running = RunUsage(
        run=1, ticket=1, title="", epic="", agent="", started_at=NOON, ended_at=None, fate=AttemptFate.OPEN
    )
    (share,) = report(UsageBy.EPIC, [running], [], NOON + 5)
    assert (share.key, share.seconds) == ("", 5.0)


@pytest.mark.parametrize("seed", range(50))
def test_whatever_it_is_cut_by_the_sum_is_the_same(seed: int):
    chance = Random(seed)
    runs = [
        work(n, chance.randint(1, 5), chance.choice(list(AttemptFate)), at=NOON + chance.randint(0, 99) * HOUR)
        for n in range(1, chance.randint(2, 30))
    ]
    costs = [
        spent(chance.choice(runs).run, chance.randint(1, 9), chance.choice("abc"), f"2023-11-{chance.randint(15, 19)}")
        for _ in range(40)
    ]
    sums = [summed(report(by, runs, [*costs, spent(999, 1.0)], NOON)) for by in UsageBy]
    for one in sums[1:]:
        assert one == sums[0]
    assert sums[0].usage.usd == sum(cost.usage.usd for cost in costs)
    assert sums[0].runs == len(runs)
    assert sums[0].landed == len({one.ticket for one in runs if one.fate is AttemptFate.LANDED})


def test_what_a_program_counts_on_from_run_to_run_counts_once():
    first = Usage(requests=2, input=100, output=10, cache_read=5, usd=0.5)
    second = Usage(requests=1, input=150, output=10, cache_read=5, cache_write=7, usd=0.75)
    assert since(first, Usage()) == first
    assert since(second, first) == Usage(requests=1, input=50, cache_write=7, usd=0.25)
    assert since(second, first) + first == Usage(
        requests=3, input=150, output=10, cache_read=5, cache_write=7, usd=0.75
    )
    anew = Usage(requests=1, input=20, output=3, usd=0.1)
    assert since(anew, second) == anew


def test_each_program_has_its_cost_its_runs_and_what_it_landed():
    runs = [
        replace(work(1, ticket=9, fate=AttemptFate.WASTED), driver="codex"),
        replace(work(2), driver="claude"),
        replace(work(3, ticket=9), driver="codex"),
    ]
    found = by_key(report(UsageBy.DRIVER, runs, [spent(1, 1.0), spent(2, 3.0), spent(3, 2.0)], NOON))
    assert [(key, one.usage.usd, one.runs, one.landed, one.wasted_runs) for key, one in found.items()] == [
        ("codex", 3.0, 2, 1, 1),
        ("claude", 3.0, 1, 1, 0),
    ]


def test_a_window_counts_the_time_of_runs_within_it():
    late = usage.clipped([work(2, at=NOON - 13 * HOUR, hours=3), work(3)], NOON - 12 * HOUR)
    (share,) = report(UsageBy.ROLE, late, [spent(2, 4.0), spent(3, 8.0)], NOON + HOUR)
    assert (share.usage.usd, share.seconds, share.runs) == (12.0, 3 * HOUR, 2)
