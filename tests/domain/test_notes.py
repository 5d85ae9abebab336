"""Which notes a ticket's briefing carries."""

from __future__ import annotations

from typing import Any

import pytest

from legion.domain.notes import Note, NoteKind, fitting


def memory(id: int, text: str = "x", **scope: Any) -> Note:
    return Note(id=id, project=1, kind=NoteKind.MEMORY, text=text, **scope)


@pytest.mark.parametrize(
    ("scope", "files", "labels", "fits"),
    [
        ({}, (), (), True),
        ({"files": ("db/**",)}, ("db/users.sql",), (), True),
        ({"files": ("db/**",)}, ("app/**",), (), False),
        ({"files": ("db/**",)}, (), (), False),
        ({"labels": ("ui",)}, (), ("ui", "big"), True),
        ({"labels": ("ui",)}, (), ("big",), False),
        ({"files": ("db/**",), "labels": ("ui",)}, (), ("ui",), True),
    ],
)
def test_a_memory_fits_by_files_by_label_or_always(scope, files, labels, fits):
    assert bool(fitting([memory(1, **scope)], files, labels)) is fits


def test_the_share_goes_to_the_specific_and_the_new_and_is_never_exceeded():
    known = [memory(1, "a" * 4), memory(2, "b" * 4), memory(3, "c" * 4, files=("db",)), memory(4, "d" * 99)]
    assert [one.id for one in fitting(known, ("db",), (), share=8)] == [2, 3]
    assert [one.id for one in fitting(known, (), (), share=9)] == [1, 2]
    assert fitting(known, ("db",), (), share=3) == ()


def test_a_pinned_one_comes_first_and_words_of_the_ticket_before_age():
    known = [memory(1, "The till rings."), memory(2, "A door opens."), memory(3, "All of them."), memory(4, "x" * 15)]
    assert [one.id for one in fitting(known, (), (), "Mend the TILL", share=16)] == [1]
    assert [one.id for one in fitting(known, (), (), "Nothing of these", share=16)] == [4]
    pinned = [memory(0, "p" * 13, pinned=True), *known]
    assert [one.id for one in fitting(pinned, (), (), "Mend the till", share=16)] == [0]
