"""The example of docs/rehearsal.md is played by the real Claude Code, and its table names every key."""

from __future__ import annotations

import re

from legion.rehearsal.script import parser
from tests.support.codebase import ROOT

PAGE = (ROOT / "docs" / "rehearsal.md").read_text()


def block(kind: str) -> str:
    found = re.search(rf"^```{kind}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert found is not None
    return found[1]


def test_the_example_does_what_it_says(stage, scripts, claude):
    (scripts / "greeting.toml").write_text(block("toml"))
    with claude.talk() as talk:
        outcome = talk.say(block("text"))
        again = talk.say("This is attempt 2; please go on.")
    assert outcome.result["result"] == "I greeted Ada."
    assert (claude.work / "greeting.txt").read_text() == "Hello Ada!\n"
    assert [retry["error_status"] for retry in outcome.retries] == [529, 529]
    assert again.result["result"] == "Nothing is left to do in attempt 2."
    assert [(line.step, line.status) for line in stage.lines()] == [
        (1, 200), (2, 529), (2, 529), (2, 200), (3, 200), (1, 200),
    ]  # fmt: skip


def test_the_table_names_every_key_of_a_step():
    rows = re.findall(r"^\| (`.*?) \|", PAGE, re.MULTILINE)
    assert {key for row in rows for key in re.findall(r"`(\w+)`", row)} == parser.STEP_KEYS
