"""The commands about plans, epics, templates and memories, over the real service."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from tests.support.board import Board

BUG = ("template", "run", "bug", "--var", "bug=It crashes")


@pytest.fixture
def plan(legion, board: Board) -> str:
    """A plan that is ready, made of a template: reproduce, then fix."""
    made = json.loads(legion(*BUG, "--json").out)
    assert (made["schema"], made["plan"]["plan"]["state"]) == ("legion.expanded/1", "ready")
    return str(made["plan"]["plan"]["id"])


def test_a_plan_is_listed_shown_and_approved_by_its_keys(legion, plan: str):
    assert plan == "P1"
    assert "2 tickets to approve" in legion("plans").out
    shown = legion("plan", "show", "p1").out
    for words in ("the longest chain: reproduce > fix", "done when", "expected cost  unknown", "legion approve P1"):
        assert words in shown.replace("→", ">")
    tried = legion("approve", "P1", "--dry-run")
    assert (tried.code, "Approval would dispatch reproduce, fix." in tried.out) == (0, True)
    first = legion("approve", "P1", "reproduce")
    assert first.out.splitlines()[0] == "Ticket ID: 1  reproduce"
    assert legion("approve", "P1", "reproduce").code == 5
    assert legion("approve", "P1", "none").code == 2
    assert json.loads(legion("approve", "P1", "--json").out)["tickets"] == {"fix": 2}
    assert legion("plans").out == "No open plans: legion plan 'GOAL'\n"
    assert legion("epic").out == "P1  0 of 2 landed  2 queued\n"
    assert json.loads(legion("epic", "list", "--json").out)["epics"][0]["total"] == 2
    assert legion("epic", "close", "P1").err.endswith("legion status epic P1 --stop ends what is open.\n")
    epic = legion("epic", "P1").out
    assert ("0 of 2 landed" in epic, "P1 approved" in epic) == (True, True)
    assert "$0.00 of $5.00" in legion("epic", "P1", "--budget", "5").out.replace("nothing counted", "$0.00")
    assert legion("epic", "P1", "--stop").out == "2 tickets are stopped.\n"
    assert legion("epic").out.startswith("No epic has open tickets")
    assert legion("template", "from", "P1").out.startswith('about = "Made of the epic P1."\n')


def test_a_plan_is_edited_from_a_file_and_refused_with_its_line(legion, plan: str, tmp_path: Path):
    file = tmp_path / "plan.toml"
    file.write_text('[[ticket]]\nkey = "only"\ntitle = "T"\nlines = "x"\n')
    wrong = legion("plan", "edit", plan, "--from", str(file))
    assert (wrong.code, wrong.err) == (
        2,
        "P1, line 4: ticket `only`: `lines` must be a whole number from 0 to 1000000.\n",
    )
    more = 'criteria = [{text = "x", why_not = "y"}]\nnew_files = ["tests/test_x.py", "tests/conftest.py"]\n'
    file.write_text(f'[[ticket]]\nkey = "only"\ntitle = "T"\n{more}')
    edited = legion("plan", "edit", plan, "--from", str(file)).out
    assert ("only  T" in edited, "asks you (not to add tests)  tests/conftest.py" in edited) == (True, True)
    assert tomllib.loads(legion("plan", "edit", plan, "--print").out)["ticket"][0]["key"] == "only"
    assert legion("plan", "edit", plan).code == 2, "there is no terminal for an editor"
    assert "P1  dropped" in legion("plan", "drop", plan).out


def test_a_goal_is_taken_from_words_a_file_or_nowhere(legion, board: Board, tmp_path: Path):
    (tmp_path / "goal.md").write_text("Users can\nlog in.\n")
    assert legion("plan", "--from", str(tmp_path / "goal.md"), "--questions").out == "Plan ID: P1\n"
    assert legion("plan", f"Users can log out. {'x' * 200}\n\nThey want it.").out == "Plan ID: P2\n"
    assert "They want it" not in legion("plans").out
    assert max(map(len, legion("plans").out.splitlines())) < 140
    assert legion("plans").out.splitlines()[0].split() == ["P1", "planning", "Users", "can", "log", "in."]
    for words in (
        ("plan",),
        ("plan", "Users", "can"),
        ("plan", "x", "--from", "y"),
        ("plan", "--from", "none.md"),
        ("plan", "show", "12"),
        *(("plan", verb) for verb in ("show", "edit", "spec", "retry", "drop")),
        ("plan", "drop", "P1", "P2"),
        ("plan", "x", "--budget", "-1"),
        ("approve", "tess", "a", "b"),
        ("epic", "none"),
    ):
        ended = legion(*words)
        assert (ended.code in (2, 3), ended.out, ended.err.count("\n")) == (True, "", 1), words


def test_a_plan_that_waits_says_for_what_in_the_list(legion, board: Board):
    legion("pause")
    legion("plan", "Users can log in.")
    assert "The project is paused. Run `legion resume`" in legion("plans").out


def test_one_verb_decides_about_both_kinds_of_plans(legion, board: Board):
    assert legion("reject", "P7", "why").err == "There is no plan P7: see `legion plan list`.\n"
    assert "P7" not in legion("reject", "tess", "why").err
    assert legion("reject", "tess", "why").code == 3
    assert legion("approve", "12").code == 3


def test_templates_are_listed_shown_and_checked(legion, board: Board):
    assert legion("template", "list").out.splitlines()[1].split()[:3] == ["bug", "shipped", "bug"]
    assert "What happens, and what should happen instead." in legion("template", "show", "bug").out
    assert tomllib.loads(legion("template", "show", "bug", "--text").out)["step"]
    assert legion("template", "check", "bug").out == "bug is a valid template. It needs bug.\n"
    assert legion("template", "check", "bug", "--var", "bug=x").code == 0
    assert legion(*BUG, "--dry-run").out.splitlines()[0] == "Fix: It crashes  (2 tickets)"
    for words in (("run", "bug"), ("run", "bug", "--var", "x"), ("show", "none"), ("check", "none")):
        assert legion("template", *words).code == 2, words
    assert legion("plans").out.startswith("No open plans")


def test_dispatch_takes_a_template_as_it_takes_a_file(legion, board: Board):
    bug = ("dispatch", "--from", "bug", "--var", "bug=It crashes")
    tried = legion(*bug, "--dry-run").out.splitlines()
    assert (tried[0].split(":")[0], tried[-1]) == ("reproduce", "Nothing was created.")
    made = legion(*bug, "--epic", "crash")
    assert (made.out, "legion status epic crash" in made.err) == ("Ticket ID: 1\nTicket ID: 2\n", True)
    assert "open ticket 1 (Reproduce as a test: It crashes) says the same" in legion(*bug).err
    other = (*bug[:-1], "bug=It hangs")
    assert json.loads(legion(*other, "--json").out)["keys"] == {"reproduce": 3, "fix": 4}
    for words in (("--from", "bug"), (*bug[1:], "text"), (*bug[1:], "-t", "T"), ("--var", "a=b", "text")):
        assert legion("dispatch", *words).code == 2, words
    assert legion("dispatch", "--from", "none").err == (
        "There is neither a file nor a template none: see `legion plan template list`.\n"
    )


def test_memories_are_kept_listed_and_forgotten(legion, board: Board):
    assert legion("memories").out == "Nothing is remembered: legion note remember TEXT\n"
    assert legion("remember", "Use tabs.", "--files", "src/**").out == "Memory ID: 1\n"
    assert legion("memories").out.rstrip().endswith("src/**  Use tabs.")
    assert legion("forget", "1").out == "Memory 1 is forgotten: Use tabs.\n"
    assert legion("forget", "1").code == 3
