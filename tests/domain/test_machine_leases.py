"""Leases: a machine stops before the head gives its runs away, for every delay and every pair of clocks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from legion.domain.errors import BadInput
from legion.domain.machines.machine import (
    HeadLeases,
    LeasePhase,
    LeaseTimes,
    ProtocolFit,
    label_fault,
    name_fault,
    phase,
    protocol_fit,
)

TIMES = LeaseTimes()


@pytest.mark.parametrize(
    ("silent", "expected"),
    [
        (0.0, LeasePhase.FRESH),
        (44.9, LeasePhase.FRESH),
        (45.0, LeasePhase.QUIET),
        (59.9, LeasePhase.QUIET),
        (60.0, LeasePhase.OVER),
        (9e9, LeasePhase.OVER),
        (-0.1, LeasePhase.OVER),
    ],
    ids=lambda value: str(getattr(value, "value", value)),
)
def test_a_machine_starts_nothing_after_a_while_and_stops_after_another(silent, expected):
    assert phase(sent=1000.0, now=1000.0 + silent, times=TIMES) is expected


@given(machine=st.floats(0, 1e6), head=st.floats(0, 1e6), travel=st.floats(0, 300), later=st.floats(0, 300))
def test_a_machine_has_stopped_before_the_head_gives_its_runs_away(machine, head, travel, later):
    """The clocks start anywhere; a beat that was sent at 0 arrives after `travel`, and is the last one."""
    leases = HeadLeases(TIMES)
    leases.observe({1: 1}, head)
    leases.observe({1: 2}, head + travel)
    if 1 in leases.lapsed(head + travel + later):
        # A margin for rounding: the sums are of clocks that show up to a million seconds.
        assert phase(sent=machine, now=machine + travel + later + 1e-6, times=TIMES) is LeasePhase.OVER


def test_a_head_that_sees_a_machine_for_the_first_time_counts_from_then():
    leases = HeadLeases(TIMES)
    leases.observe({1: 17}, 588.0)
    assert leases.lapsed(677.9) == frozenset()
    assert leases.lapsed(678.0) == {1}


def test_every_beat_renews_the_lease_and_a_repeated_look_does_not():
    leases = HeadLeases(TIMES)
    leases.observe({1: 1, 2: 1}, 0.0)
    leases.observe({1: 2, 2: 1}, 80.0)
    leases.observe({1: 2, 2: 1}, 89.0)
    assert leases.lapsed(90.0) == {2}
    assert leases.lapsed(170.0) == {1, 2}
    leases.observe({1: 2}, 171.0)
    assert leases.lapsed(172.0) == {1}


def test_a_machine_that_joins_later_counts_from_then():
    leases = HeadLeases(TIMES)
    leases.observe({}, 1.0)
    leases.observe({3: 1}, 500.0)
    assert leases.lapsed(589.9) == frozenset()
    assert leases.lapsed(590.0) == {3}


def test_times_in_another_order_are_refused():
    with pytest.raises(BadInput, match="beat < quiet < stop < reap"):
        LeaseTimes(stop=90.0)
    assert LeaseTimes.scaled(9.0) == LeaseTimes(beat=1.5, quiet=4.5, stop=6.0, reap=9.0)


@pytest.mark.parametrize(
    ("protocol", "expected"),
    [
        (3, ProtocolFit.OLD),
        (4, ProtocolFit.SERVED),
        (5, ProtocolFit.SERVED),
        (6, ProtocolFit.SERVED),
        (7, ProtocolFit.NEW),
    ],
    ids=["two-older", "one-older", "same", "one-newer", "two-newer"],
)
def test_one_release_apart_is_served(protocol, expected):
    assert protocol_fit(protocol, own=5) is expected


def test_names_and_labels_are_plain():
    assert name_fault("desk-2") == ""
    assert label_fault("macos-14.2") == ""
    for bad in ("", "Desk", "a b", "../x", "a" * 41, "-a"):
        assert name_fault(bad)
        assert label_fault(bad)
