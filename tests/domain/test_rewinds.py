"""Which moments of a run a ticket can go back to."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from legion.domain.errors import BadInput
from legion.domain.runs import RewindMoment, kept, moment

Line = tuple[int, str, Mapping[str, object]]


def called(line: int, call: str, answer: str | None = None) -> Line:
    return line, "called", {"call": call, "answer": answer}


def shot(line: int, call: str, roll: int = 0) -> Line:
    return line, "kept", {"call": call, "tool": "Write", "tree": f"tree-{line}", "base": "base", "roll": roll}


def test_every_kept_call_is_a_moment():
    found = kept([called(1, "a", "one"), shot(2, "a"), called(3, "b", "two"), shot(4, "b", 1)])
    assert [(one.line, one.tree, one.roll) for one in found] == [(2, "tree-2", 0), (4, "tree-4", 1)]


def test_calls_of_one_answer_are_one_moment_after_the_last_of_them():
    found = kept([called(1, "a", "one"), called(2, "b", "one"), shot(3, "a"), shot(4, "b"), called(5, "c", "two")])
    assert [one.line for one in found] == [4]


def test_an_answer_whose_last_state_could_not_be_kept_is_no_moment():
    missed = (5, "not-kept", {"call": "c", "tool": "Bash"})
    lines = [called(1, "a", "one"), shot(2, "a"), called(3, "b", "two"), shot(4, "b"), called(4, "c", "two"), missed]
    assert [one.line for one in kept(lines)] == [2]


def test_a_program_that_names_no_answers_has_a_moment_per_call():
    assert [one.line for one in kept([called(1, "a"), called(2, "b"), shot(3, "a"), shot(4, "b")])] == [3, 4]


@pytest.mark.parametrize("name", ["12", "12:34"])
def test_a_moment_is_named_as_it_is_shown(name: str):
    assert str(moment(f" {name} ")) == name
    assert moment("12:34") == RewindMoment(run=12, line=34)


@pytest.mark.parametrize("name", ["", "x", "12:", ":3", "1:2:3", "-1", "1" * 10])
def test_anything_else_is_refused(name: str):
    with pytest.raises(BadInput, match="names no moment"):
        moment(name)
