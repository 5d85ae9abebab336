"""Routines: what starts them, over changes of the clock, and what does not."""

from __future__ import annotations

from datetime import datetime, time, timedelta, tzinfo
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from legion.domain.errors import BadInput
from legion.domain.events import Event, EventKind
from legion.domain.routines import (
    AtInterval,
    AtTime,
    FailedCount,
    OnEvent,
    Routine,
    Trigger,
    due,
    is_failed_attempt,
    next_after,
    parse,
    reason,
)

BERLIN = ZoneInfo("Europe/Berlin")
"""The clock goes from 2:00 to 3:00 on 2026-03-29, and from 3:00 back to 2:00 on 2026-10-25."""


def at(text: str, zone: tzinfo = BERLIN) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=zone).timestamp()


def shown(moment: float, zone: tzinfo = BERLIN) -> str:
    return datetime.fromtimestamp(moment, zone).strftime("%a %Y-%m-%d %H:%M")


def starts(text: str, moment: str, count: int = 1) -> list[str]:
    schedule = parse(text)
    assert not isinstance(schedule, OnEvent)
    found, now = [], at(moment)
    for _ in range(count):
        now = next_after(schedule, now, BERLIN)
        found.append(shown(now))
    return found


@pytest.mark.parametrize(
    ("text", "schedule"),
    [
        ("every weekday 07:00", AtTime(days=(0, 1, 2, 3, 4), clock=time(7, 0))),
        (" Every  Day 7:05", AtTime(days=(0, 1, 2, 3, 4, 5, 6), clock=time(7, 5))),
        ("every weekend 23:59", AtTime(days=(5, 6), clock=time(23, 59))),
        ("every thursday,monday,monday 9:30", AtTime(days=(0, 3), clock=time(9, 30))),
        ("every hour", AtInterval(seconds=3600)),
        ("every 30 minutes", AtInterval(seconds=1800)),
        ("every 2 hours", AtInterval(seconds=7200)),
        ("on target-red", OnEvent(trigger=Trigger.TARGET_RED)),
        ("on failed-twice", OnEvent(trigger=Trigger.FAILED_TWICE)),
        ("on tag", OnEvent(trigger=Trigger.TAG)),
        ("on tag V*", OnEvent(trigger=Trigger.TAG, tags="V*")),
    ],
    ids=lambda one: one.strip() if isinstance(one, str) else "",
)
def test_times_are_read(text, schedule):
    assert parse(text) == schedule


@pytest.mark.parametrize(
    "text",
    [
        *("", "weekday 07:00", "every", "every day", "every day 25:00", "every day 7", "every someday 07:00"),
        *("every 1 minutes", "every 0 hours", "every 99999 hours", "every -5 minutes", "on", "on fire", "on tag a b"),
    ],
)
def test_what_is_no_time_is_refused_with_the_forms_there_are(text):
    with pytest.raises(BadInput, match=r"every weekday 07:00|5 minutes to 31 days"):
        parse(text)


def test_weekdays_skip_the_weekend_and_a_time_that_has_passed():
    assert starts("every weekday 07:00", "2026-11-13T06:59", 2) == ["Fri 2026-11-13 07:00", "Mon 2026-11-16 07:00"]
    assert starts("every weekday 07:00", "2026-11-13T07:00") == ["Mon 2026-11-16 07:00"]
    assert starts("every friday 07:00", "2026-11-13T07:00") == ["Fri 2026-11-20 07:00"]


def test_a_time_that_the_clock_skips_comes_later_that_day_and_once():
    found = starts("every day 02:30", "2026-03-28T12:00", 3)
    assert found == ["Sun 2026-03-29 03:30", "Mon 2026-03-30 02:30", "Tue 2026-03-31 02:30"]


def test_a_time_that_the_clock_repeats_counts_once():
    schedule = parse("every day 02:30")
    assert isinstance(schedule, AtTime)
    first = next_after(schedule, at("2026-10-24T12:00"), BERLIN)
    second = next_after(schedule, first, BERLIN)
    assert (shown(first), shown(second)) == ("Sun 2026-10-25 02:30", "Mon 2026-10-26 02:30")
    assert second - first == 25 * 3600


def test_the_same_time_of_day_in_summer_and_winter():
    for day in ("2026-03-28T12:00", "2026-03-29T12:00", "2026-10-24T12:00", "2026-10-25T12:00"):
        assert starts("every day 07:00", day)[0].endswith("07:00")


@given(st.integers(1_767_000_000, 1_800_000_000), st.times(), st.sets(st.integers(0, 6), min_size=1))
def test_the_next_start_is_later_and_none_is_skipped(now: int, clock: time, days: set[int]):
    schedule = AtTime(days=tuple(sorted(days)), clock=clock.replace(second=0, microsecond=0, tzinfo=None))
    following = next_after(schedule, now, BERLIN)
    assert now < following <= now + 8.1 * 86400
    assert datetime.fromtimestamp(following, BERLIN).weekday() in days
    if following - now > 60:
        assert next_after(schedule, following - 60, BERLIN) == following


def test_missed_times_are_one_start():
    schedule = parse("every day 07:00")
    assert isinstance(schedule, AtTime)
    planned, now = at("2026-11-10T07:00"), at("2026-11-13T09:00")
    found = due(schedule, planned, now, BERLIN)
    assert (found.starts, shown(found.at)) == (True, "Sat 2026-11-14 07:00")
    again = due(schedule, found.at, now + 60, BERLIN)
    assert (again.starts, again.at) == (False, found.at)


def test_a_clock_that_jumps_forward_starts_once_and_back_starts_at_the_new_time():
    schedule = parse("every day 07:00")
    assert isinstance(schedule, AtTime)
    planned = at("2026-11-14T07:00")
    forward = due(schedule, planned, at("2027-02-01T12:00"), BERLIN)
    assert (forward.starts, shown(forward.at)) == (True, "Tue 2027-02-02 07:00")
    back = due(schedule, forward.at, at("2026-11-13T12:00"), BERLIN)
    assert (back.starts, shown(back.at)) == (False, "Sat 2026-11-14 07:00")
    interval = due(AtInterval(seconds=3600), at("2027-02-01T12:00"), at("2026-11-13T12:00"), BERLIN)
    assert (interval.starts, interval.at) == (False, at("2026-11-13T12:00") + timedelta(hours=1).total_seconds())


def routine(starts: str, **facts: object) -> Routine:
    return Routine(id=1, project=1, starts=starts, text="x", **facts)  # type: ignore[arg-type]


def event(kind: EventKind, ticket: int | None = None, **data: object) -> Event:
    return Event(n=1, at=0.0, kind=kind, project=1, ticket=ticket, data=data)


def test_only_its_own_event_starts_a_routine():
    red, moved = event(EventKind.BASELINE_RED), event(EventKind.TICKET_MOVED, 4, cause="checks")
    twice = [FailedCount(ticket=4, failures=2)]
    assert reason(routine("on target-red"), [moved, red], twice, {"v1"}) == "the target fails its checks"
    assert reason(routine("on target-red"), [moved], twice, {"v1"}) == ""
    assert reason(routine("on failed-twice"), [red], twice, {"v1"}) == "two attempts of ticket 4 failed"
    assert reason(routine("on failed-twice"), [red], [FailedCount(ticket=4, failures=1)], ()) == ""
    assert reason(routine("on tag v*"), [red], twice, {"v2", "nightly", "v1"}) == "new tags: v1, v2"
    assert reason(routine("on tag v*"), [red], twice, {"nightly"}) == ""
    assert reason(routine("every day 07:00"), [red], twice, {"v1"}) == ""


def test_the_tickets_of_a_routine_do_not_start_it():
    mine = routine("on failed-twice", last_tickets=(4,))
    assert reason(mine, [], [FailedCount(ticket=4, failures=2)], ()) == ""


@pytest.mark.parametrize("kind", EventKind, ids=lambda one: one.value)
def test_a_failed_attempt_is_a_move_with_a_cause(kind: EventKind):
    assert is_failed_attempt(event(kind, 4, cause="checks")) == (kind is EventKind.TICKET_MOVED)
    assert not is_failed_attempt(event(kind, 4))
