"""`legion note` over the real service."""

from __future__ import annotations

import json

from tests.support.board import Board


def test_notes_are_recorded_listed_and_closed(legion, board: Board):
    assert legion("notes").out == "No note is open: legion note add TEXT\n"
    assert legion("notes", "add", "We stay on Python 3.11.").out == "Note ID: 1\n"
    board.put(1)
    assert legion("notes", "add", "--kind", "promise", "Doors on Sunday.", "--ticket", "1").out == "Note ID: 2\n"
    assert legion("notes", "list", "--kind", "promise").out.rstrip().endswith("#1 Doors on Sunday.")
    assert legion("notes", "close", "2", "They did.").out == "Note 2 is closed.\n"
    assert [one["id"] for one in json.loads(legion("notes", "--json").out)["notes"]] == [1]
    assert "(closed: They did.)" in legion("notes", "--all").out
    refused = legion("notes", "burn", "2")
    assert (refused.code, "legion note close N" in refused.err) == (2, True)
