"""What is remembered between two looks: since when processes do nothing, and how files were."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from legion.domain.watchdog.activity import NO_PROCESSES, Observation, ProcessLoad, felt, looked, worth_keeping


def load(cpu: float = 1.0, bytes: int = 10, processes: str = "p") -> ProcessLoad:
    return ProcessLoad(cpu=cpu, bytes=bytes, processes=processes, count=1)


def test_processes_are_idle_from_the_second_look_at_which_nothing_has_moved():
    first = felt(Observation(run=1), load(), 100.0)
    assert first.idle_since is None
    second = felt(first, load(), 105.0)
    assert second.idle_since == 105.0
    assert felt(second, load(), 900.0).idle_since == 105.0


def test_any_byte_any_process_and_more_than_noise_of_a_processor_is_work():
    idle = felt(felt(Observation(run=1), load(), 100.0), load(), 105.0)
    for busy in (load(bytes=11), load(processes="q"), load(cpu=1.2), load(cpu=0.5)):
        assert felt(idle, busy, 110.0).idle_since is None
    assert felt(idle, load(cpu=1.04), 110.0).idle_since == 105.0


def test_who_wakes_up_now_and_then_to_do_nothing_stays_idle_for_as_long_as_it_takes():
    watch = felt(felt(Observation(run=1), load(cpu=0.0), 0.0), load(cpu=0.0), 5.0)
    for minute in range(1, 60):
        watch = felt(watch, load(cpu=0.001 * 60 * minute), 5.0 + 60 * minute)
        assert watch.idle_since == 5.0


def test_where_nobody_can_tell_nothing_is_idle():
    idle = felt(felt(Observation(run=1), load(), 100.0), load(), 105.0)
    for unknown in (None, NO_PROCESSES):
        assert felt(idle, unknown, 110.0).idle_since is None


def test_files_are_the_same_since_they_were_first_seen_so():
    seen = looked(Observation(run=1), "aaa", 7, 100.0)
    assert (seen.known_tree_since, seen.tree_at) == (7, 0.0)
    assert looked(seen, "aaa", 9, 110.0) == seen
    other = looked(seen, "bbb", 9, 110.0)
    assert (other.known_tree_since, other.tree_at) == (9, 110.0)
    assert Observation(run=1).known_tree_since is None


LOADS = st.none() | st.builds(load, st.floats(0, 5), st.integers(0, 3), st.sampled_from("pq"))


@given(st.lists(LOADS, max_size=20), st.integers(0, 20))
def test_a_new_daemon_never_thinks_that_it_is_idle_for_longer_than_the_last_one_did(loads, killed_at):
    """It knows only what was worth keeping."""
    watch, kept = Observation(run=1), None
    told = None
    for at, one in enumerate(loads):
        watch = felt(watch, one, float(at))
        if worth_keeping(kept, watch):
            kept = watch
        if at == killed_at:
            told = kept or Observation(run=1)
        elif told is not None:
            told = felt(told, one, float(at))
            if told.idle_since is not None and watch.idle_since is not None:
                assert told.idle_since >= watch.idle_since
