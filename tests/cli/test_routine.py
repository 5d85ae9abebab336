"""`legion plan routine` and `legion note lessons` over the real service."""

from __future__ import annotations

import json

from legion.store.board import notes
from tests.support.board import Board


def test_routines_are_added_listed_run_and_removed(legion, board: Board):
    assert legion("routine", "list").out == "There is no routine: legion plan routine add WHEN TEMPLATE|TEXT\n"
    added = legion("routine", "add", "every weekday 07:00", "Look for flaky tests.", "--budget", "2")
    assert added.out.startswith("Routine ID: 1, next ")
    legion("routine", "add", "on failed-twice", "bug", "--var", "bug=It fails.")
    assert legion("routine", "run", "1").out == "ticket 1: the person started it\n"
    first, second = json.loads(legion("routine", "list", "--json").out)["routines"]
    assert (first["last_tickets"], first["runs"], second["template"]) == ([1], 1, "bug")
    assert "Look for flaky tests." in legion("routine", "list").out
    refused = legion("routine", "add", "at noon", "Eat something.")
    assert (refused.code, "every weekday 07:00" in refused.err) == (2, True)
    assert legion("routine", "add", "every day 07:00", "bug", "--var", "bug").code == 2
    assert "is removed" in legion("routine", "remove", "2").out


def test_lessons_are_shown_accepted_rejected_and_measured(legion, board: Board):
    assert legion("lessons").out.startswith("No lesson is known")
    assert legion("usage", "--lessons").out == "No lesson is accepted: legion note lessons\n"
    with board.store.write() as tx:
        for text in ("Mind the till.", "Mind the gap."):
            notes.propose(tx, 1, text, files=["till/**"], labels=[], ticket=7)
    assert "proposed" in legion("lessons").out
    assert legion("lessons", "accept", "1").out == "Lesson 1 is accepted: briefings carry it where it fits.\n"
    assert "is forgotten: Mind the gap." in legion("lessons", "reject", "2").out
    (one,) = json.loads(legion("lessons", "--json").out)["lessons"]
    assert (one["proposed"], one["accepted_by"], one["ticket"]) == (False, "you", 7)
    assert "no ticket yet" in legion("usage", "--lessons").out
    assert "lesson of ticket 7" in legion("memories").out
    assert legion("lessons", "burn", "1").code == 2
