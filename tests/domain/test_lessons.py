"""Lessons: what is proposed of a failure, what a briefing carries of them, and whether they help."""

from __future__ import annotations

import pytest

from legion.domain.leader.lessons import (
    EndedTicket,
    FailedAttempt,
    LessonEffect,
    effect,
    proposal,
    question,
    read_answer,
    retires,
    scopes,
)
from legion.domain.notes import LESSONS_SHARE, SHARE, Note, NoteKind, fitting, format_for_agent

FAILED = FailedAttempt(attempt=1, reason="checks failed:\n `make test`")


def lesson(id: int, text: str = "x", *, accepted: float | None = 1.0, **facts: object) -> Note:
    return Note(id=id, project=1, kind=NoteKind.LESSON, text=text, accepted_at=accepted, ticket=9, **facts)  # type: ignore[arg-type]


def test_a_proposal_says_what_failed_and_where_the_attempt_that_passed_differs():
    found = proposal("Add\nlogin", [FAILED, FailedAttempt(attempt=2, reason="review")], {"b/c.py", "a.py"}, ())
    assert found is not None
    assert found.text == (
        'Where you change a.py, b/c.py, see to what was found before: "Add login" failed at attempt 2, review.'
    )
    checked = proposal("T", [FailedAttempt(attempt=1, reason="checks failed: `make test`")], {"a.py"}, ())
    assert checked is not None
    assert checked.text.startswith("Where you change a.py, run `make test` before you say that you are done: ")
    assert found.files == ("a.py", "b/**")
    declared = proposal("T", [FAILED], {f"f{n}.py" for n in range(6)}, ["src/**"])
    assert declared is not None
    assert declared.files == ("src/**",)
    assert "failed at attempt 1, checks failed: `make test`." in declared.text
    assert declared.text.startswith("Where you change f0.py, f1.py, f2.py, f3.py and 2 more, ")


def test_without_a_failure_or_a_difference_nothing_is_proposed():
    assert proposal("T", [], {"a.py"}, ()) is None
    assert proposal("T", [FAILED], set(), ()) is None


def test_a_reader_is_asked_with_the_failures_and_its_lesson_stays_with_the_files():
    asked = question("Add\nlogin", [FAILED], {"a/b.py"})
    for part in ('"Add login"', "- attempt 1: checks failed: `make test`", "differs in: a/b.py."):
        assert part in asked

    def answer(text: str) -> tuple[str, tuple[str, ...]] | None:
        found = read_answer(text, [FAILED], {"a/b.py"})
        return None if found is None else (found.text, found.files)

    assert answer('```json\n{"lesson": "Mind\\nthe gap.", "files": ["a/*.py", "z/**"]}\n```') == (
        "Mind the gap.",
        ("a/*.py",),
    )
    assert answer('{"lesson": "Mind it.", "files": ["../x", 3]}') == ("Mind it.", ("a/**",))
    assert answer('{"lesson": " "}') is None
    for wrong in ("I learned a lot.", '{"lesson": 3}', '{"lesson"}', ""):
        with pytest.raises(ValueError, match=r"`lesson`|delimiter"):
            answer(wrong)


def test_scopes_are_folders_and_few():
    assert scopes(["x/y/a.py", "x/y/b.py", "z.py"]) == ("x/y/**", "z.py")
    assert len(scopes(f"d{n}/a.py" for n in range(9))) == 4


def test_lessons_have_a_share_of_their_own_and_proposed_ones_none():
    many = [lesson(n, "y" * 300) for n in range(1, 10)]
    plain = [Note(kind=NoteKind.MEMORY, id=n, project=1, text="z" * 400) for n in range(20, 30)]
    carried = fitting([*many, *plain, lesson(40, accepted=None)], [], [])
    assert sum(len(one.text) for one in carried if one.is_lesson) <= LESSONS_SHARE
    assert sum(len(one.text) for one in carried) <= SHARE
    assert [one.id for one in carried if one.is_lesson] == []
    only = fitting([*many, lesson(40, accepted=None)], [], [])
    assert [one.id for one in only] == [7, 8, 9]
    fits = fitting([lesson(1, files=("db/**",)), lesson(2, files=("ui/**",)), *plain], ["db/a.sql"], [])
    assert 1 in [one.id for one in fits]
    assert 2 not in [one.id for one in fits]
    assert format_for_agent(lesson(7, "Do.")) == "Do. (lesson 7, from ticket 9)"
    assert format_for_agent(Note(kind=NoteKind.MEMORY, id=1, project=1, text="Do.")) == "Do."


def test_an_effect_compares_tickets_with_it_and_those_that_it_fits_without():
    one = lesson(1, files=("db/**",))
    ended = [
        EndedTicket(id=9, files=("db/a",), labels=(), attempts=5),
        EndedTicket(id=1, files=("db/a",), labels=(), attempts=3),
        EndedTicket(id=2, files=("db/b",), labels=(), attempts=2),
        EndedTicket(id=3, files=("ui/b",), labels=(), attempts=9),
        EndedTicket(id=4, files=("db/c",), labels=(), attempts=1),
    ]
    seen = effect(one, {4}, ended)
    assert (seen.carried, seen.attempts, seen.without, seen.attempts_without) == (1, 1.0, 2, 2.5)
    assert effect(one, (), []).attempts is None


@pytest.mark.parametrize(
    ("carried", "attempts", "without", "gone"),
    [
        (9, 3.0, 1.0, False),
        (10, 3.0, 1.0, True),
        (10, 1.5, 1.5, True),
        (10, 1.4, 1.5, False),
        (10, 1.0, None, False),
        (10, 1.1, None, True),
        (10, 1.0, 1.0, True),
        (0, None, 2.0, False),
    ],
)
def test_a_lesson_that_did_not_help_in_ten_tickets_retires(carried, attempts, without, gone):
    seen = LessonEffect(carried=carried, attempts=attempts, without=3 if without else 0, attempts_without=without)
    assert bool(retires(seen)) is gone
