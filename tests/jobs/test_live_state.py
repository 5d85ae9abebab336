"""State that other threads read: a reader's map never changes, and nothing grows for ever."""

from __future__ import annotations

from legion.jobs.live_state import LiveState, SharedMap


def test_a_reader_keeps_the_map_that_it_got():
    notes: SharedMap[int, str] = SharedMap()
    notes.update({1: "a", 2: "b"})
    seen = notes.current
    for number, _ in seen.items():
        notes.remove([number])
        notes.update({number + 10: "new"})
    assert dict(seen) == {1: "a", 2: "b"}
    assert dict(notes.current) == {11: "new", 12: "new"}
    notes.replace({})
    assert (notes.get(11), dict(notes.current)) == (None, {})


def test_sizes_of_changes_are_forgotten_at_last():
    sizes = LiveState().queue.change_sizes
    for number in range(3000):
        sizes.update({number: number})  # type: ignore[dict-item]
    assert len(sizes.current) == 1000
    assert max(sizes.current.values()) == 2999
