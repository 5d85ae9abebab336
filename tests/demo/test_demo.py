"""`legion demo` does what it says: for real, as a person starts it."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from legion.demo.main import GOAL, SCRIPT
from legion.demo.stage import SCRIPTS
from legion.demo.tickets import parts, script_marker
from legion.rehearsal.play.conversation import LAST_READER
from legion.rehearsal.script import parser
from tests.demo.person import PATIENCE, environment, git, living, run_forked
from tests.support.stand_in import build

pytestmark = pytest.mark.timeout(300)
NO_BUBBLEWRAP = 'mount --bind /dev/null /usr/bin/bwrap && exec "$@"'
HIDDEN = ["unshare", "--mount", "sh", "-c", NO_BUBBLEWRAP, "sh"]
"""Only root can hide bubblewrap from a process."""


def demo(folder: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "legion", "demo", "--folder", str(folder), *arguments]


@pytest.mark.slow
def test_it_shows_every_trouble_and_how_each_ended(tmp_path):
    folder, home = tmp_path / "demo", tmp_path / "home"
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    env = {**environment(home), "TMPDIR": str(temporary), "ANTHROPIC_API_KEY": "must-not-be-used"}
    shown = run_forked(["demo", "--folder", str(folder), "--json"], env, tmp_path)
    assert shown.returncode == 0, shown.stderr
    summary = json.loads(shown.stdout)
    assert summary["problems"] == []
    assert "no model is used" in shown.stderr
    assert "what their model replies is scripted" in shown.stderr
    assert f"the agents are Claude Code {summary['claude']}" in shown.stderr
    acts = [f"legion plan '{GOAL}'", "proposes 6 tickets", "no finding", "legion approve P1", "#1 an agent starts"]
    places = [shown.stderr.index(act) for act in acts]
    assert places == sorted(places)
    tickets = {ticket["key"]: ticket for ticket in summary["tickets"]}
    assert {key: ticket["state"] for key, ticket in tickets.items()} == {
        "rounding": "done",
        "discount": "done",
        "tax": "done",
        "printing": "done",
        "amounts": "done",
        "export": "done",
        "speed": "failed",
    }
    assert tickets["rounding"]["attempts"] == 2
    assert sorted(tickets[key]["attempts"] for key in ("discount", "tax")) == [1, 2]
    assert tickets["printing"]["runs"] == ["lost", "finished"]
    assert tickets["export"]["runs"] == ["failed", "finished"]
    assert tickets["amounts"]["runs"] == []
    assert summary["red_receipts"] >= 1
    read = [(point["state"], point["tried"]) for point in summary["points"]]
    assert read == [("done", "green")] * 4 + [("missing", "red")]
    assert "the last reader held the goal against it: 4 of 5 points done, 1 missing" in shown.stderr
    asked = [json.loads(line) for line in (folder / "rehearsal.jsonl").read_text().splitlines()]
    assert {line["kind"] for line in asked} <= {"scripted", "side", "count"}
    # All attempts of a ticket are one conversation.
    assert len({line["conversation"] for line in asked}) == 8, "six tickets, the planner and the last reader"
    assert summary["requests"] == sum(line["kind"] != "count" for line in asked)
    assert summary["tokens"] > 0
    assert summary["usd"] > 0

    assert living(folder) == []
    assert list(home.iterdir()) == []
    assert list(temporary.iterdir()) == []
    repository = folder / "invoices"
    assert git(repository, "status", "--porcelain") == ""
    assert len(git(repository, "log", "--first-parent", "--format=%H").splitlines()) == 1 + 5
    page = (repository / "invoices/printing.py").read_text()
    assert page.count("def page") == 1
    assert "return lines" in page


@pytest.mark.soak
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can hide bubblewrap from a process")
def test_it_works_on_a_terminal_without_bubblewrap(tmp_path):
    folder, home = tmp_path / "demo", tmp_path / "home"
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*HIDDEN, *demo(folder)], env={**environment(home), "COLUMNS": "80"}, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        screen = read_all(ours)
        os.close(ours)
        code = process.wait(PATIENCE)
    assert code == 0, screen[-3000:]
    assert "no sandbox: install bubblewrap" in screen
    assert "Everything ended as it should" in screen
    assert screen.endswith("\n")
    # The cursor is shown again as often as it was hidden.
    assert screen.count("\x1b[?25l") == screen.count("\x1b[?25h") == 1
    assert living(folder) == []


def read_all(handle: int, until: str = "") -> str:
    """Everything that was written to a terminal, until a line matches or its last writer ended."""
    outcome = b""
    while not (until and re.search(until, outcome.decode(errors="replace"))):
        try:
            piece = os.read(handle, 1 << 16)
        except OSError:
            # Linux says so when the last process has closed its end.
            break
        if not piece:
            break
        outcome += piece
    return outcome.decode(errors="replace")


@pytest.mark.slow
def test_an_interrupted_demo_restores_the_terminal_and_leaves_nothing_running(tmp_path):
    """Without bubblewrap, where a process cannot count on the end of its sandbox."""
    folder, home = tmp_path / "demo", tmp_path / "home"
    is_root = os.geteuid() == 0
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [*(HIDDEN if is_root else []), *demo(folder)],
        env={**environment(home), "COLUMNS": "80", "PATH": build.path()},
        stdout=theirs,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        screen = read_all(ours, until="#4 .*an agent starts")
        assert "an agent starts" in screen, screen[-3000:]
        process.terminate()
        screen += read_all(ours)
        assert process.wait(PATIENCE) != 0
    os.close(ours)
    assert ("no sandbox: install bubblewrap" in screen) is is_root
    # The cursor is shown again as often as it was hidden.
    assert screen.count("\x1b[?25l") == screen.count("\x1b[?25h") == 1
    assert screen.endswith(("\r\x1b[K", "\n\x1b[?25h")), "the next line of the shell starts at the left"
    assert living(folder) == []


def test_every_ticket_with_an_agent_has_a_script_of_its_own():
    scripts = parser.read_all(SCRIPTS)
    named = [part.ticket.context for part in parts() if not part.ticket.checkpoint]
    assert sorted(named) == sorted(script_marker(name) for name in scripts if name not in (SCRIPT, LAST_READER))


def test_the_scripted_plan_has_the_tickets_whose_course_is_expected():
    answer = json.loads(parser.read_all(SCRIPTS)[SCRIPT].steps[-1].say)
    planned = {one["key"]: one for one in answer["tickets"]}
    for part in parts():
        ticket = part.ticket
        if ticket.key not in planned:
            assert ticket.max_attempts is not None, "only a limit of attempts is beyond a plan"
            continue
        one = planned[ticket.key]
        assert (one["title"], one.get("text", ""), one.get("context", "")) == (
            ticket.title,
            ticket.text,
            ticket.context,
        )
        assert one.get("after", []) in (ticket.after_keys, [*ticket.after_keys])


def test_a_folder_that_is_not_empty_is_refused(tmp_path):
    (tmp_path / "letter.txt").write_text("keep me")
    home = tmp_path.parent / f"{tmp_path.name}-home"
    refused = run_forked(["demo", "--folder", str(tmp_path)], environment(home), tmp_path.parent)
    assert refused.returncode == 2
    assert "not empty" in refused.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]
