"""The last reader of a goal: what landed is held against what was asked for, with a real daemon and real commands."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest

from legion.client.http import Unanswered
from legion.runner.journal import read_journal
from legion.system.crash import Point
from legion.wire.plans import ApprovePlan, PlanPage
from tests.scenarios.test_goal_plans import PROVEN, firm, make_plan, say, until_state
from tests.support.legion import PATIENCE, Project, Squad
from tests.support.looking import until_seen
from tests.support.models import company
from tests.support.repository import CHECK
from tests.support.sampling import sampled

GOAL = "# What became of this goal"
ONE = {"key": "one", "title": "Write one.txt", "new_files": ["one.txt"], "criteria": PROVEN}
TWO = {"key": "two", "title": "Write two.txt", "new_files": ["two.txt"], "criteria": PROVEN}
THERE = {"text": "one.txt is there", "state": "done", "command": "test -f one.txt"}
MISSING = {"text": "two.txt is there", "state": "missing", "command": "test -f two.txt", "evidence": "no such file"}
HALF = json.dumps({"points": [THERE, MISSING], "tickets": [TWO]})
ALL = json.dumps({"points": [THERE, MISSING | {"state": "done"}]})
CONFIG = f'{CHECK}driver = "plans"\n'
POINTS = [point for point in Point if point.value.startswith(("jobs.plan.", "jobs.reader."))]


def everyone(folder: Path) -> str:
    """Plans one file, writes it, and says as last reader that two are there, until it is told that one is not."""
    (folder / "gates").mkdir(exist_ok=True)
    return f"""
    case "$(cat "$LEGION_BRIEFING")" in
        *"{GOAL}"*)
            cat "$LEGION_BRIEFING" > {folder}/gates/reader-$(ls {folder}/gates | grep -c reader)
            if grep -q 'is said to be' "$LEGION_BRIEFING"; then echo '{HALF}'; else echo '{ALL}'; fi ;;
        *"# Make a plan"*) echo '{json.dumps({"tickets": [ONE]})}' ;;
        *"Write one.txt"*) echo 1 > one.txt ;;
        *) echo 2 > two.txt ;;
    esac
    """


def land(one: Squad, project: Project, plan: int) -> None:
    made = one.client.approve_plan(plan, ApprovePlan())
    for number in made.tickets.values():
        project.until(number, "done")


def readers(one: Squad, project: Project) -> list[int]:
    return [int(line.id[1:]) for line in one.client.plans(project.cwd, all=True).plans if line.source == "read"]


def until_read(one: Squad, project: Project, many: int, *states: str) -> PlanPage:
    until_seen(one, lambda: len(readers(one, project)) == many, f"last reader {many}")
    return until_state(one, readers(one, project)[-1], *states)


def test_what_landed_is_held_against_the_goal_and_what_is_missing_becomes_a_plan_until_all_is_there(tmp_path: Path):
    with firm(tmp_path, everyone(tmp_path), config=CONFIG) as (one, project):
        cwd = project.repository.root
        id = make_plan(one, project)
        until_state(one, id, "ready")
        land(one, project, id)
        page = until_read(one, project, 1, "ready", "failed", "faulty")
        briefing, again = [(tmp_path / f"gates/reader-{n}").read_text() for n in (0, 1)]
        assert "Two files." in briefing
        assert "Write one.txt" in briefing
        assert "point 2 is said to be done, and its command `test -f two.txt` fails" in again
        assert (page.plan.state, page.plan.epic, page.plan.reason) == ("ready", "P1", "1 of 2 points done, 1 missing")
        assert [(point.state, point.tried) for point in page.points] == [("done", "green"), ("missing", "red")]
        assert [ticket.key for ticket in page.tickets] == ["two"], "what is missing"
        for words in (("status", "epic", "P1"), ("plan", "show", page.plan.id), ("status", "done")):
            shown = " ".join(one.cli(*words, cwd=cwd).stdout.split())
            assert "missing two.txt is there" in shown or "1 of 2 points done, 1 missing" in shown, shown
        whole = one.client.epic(project.cwd, "P1")
        assert (whole.reader, [point.state for point in whole.points]) == (page.plan.id, ["done", "missing"])
        assert project.repository.git("status", "--porcelain") == ""

        land(one, project, int(page.plan.id[1:]))
        last = until_read(one, project, 2, "reached", "failed", "faulty")
        assert (last.plan.state, last.plan.reason, last.tickets) == ("reached", "2 of 2 points done", [])
        assert len(readers(one, project)) == 2, "an approved goal is read once each time that all of it is over"
        assert "reached" in one.cli("plan", "list", "--all", cwd=cwd).stdout


@pytest.mark.parametrize("point", sampled(POINTS, 2), ids=lambda point: point.value)
def test_a_kill_of_the_daemon_costs_a_last_reader_nothing(tmp_path: Path, point: Point):
    with firm(tmp_path, everyone(tmp_path), config=CONFIG) as (one, project):
        id = make_plan(one, project)
        until_state(one, id, "ready")
        one.kill()
        one.start({"LEGION_CRASH_AT": f"{point.value}#1", "LEGION_CRASH_LOG": str(tmp_path / "points")})
        with suppress(Unanswered):
            one.client.approve_plan(id, ApprovePlan())
        assert one.process is not None
        one.process.wait(PATIENCE)
        one.start()
        page = until_read(one, project, 1, "ready", "failed", "faulty")
        assert [point.state for point in page.points] == ["done", "missing"]
        assert len(list((tmp_path / "gates").glob("reader-*"))) == 2, "each round was started once"


def test_claude_code_reads_what_landed(tmp_path: Path):
    """The real program, as it reads changes: with no tool to write with or to run something."""
    writer = "[drivers.writer]\nrun = \"sh -c 'echo 1 > one.txt'\"\n"
    with company(tmp_path, settings=writer, config=f'{CHECK}driver = "writer"\n') as here:
        plan = json.dumps({"tickets": [ONE]})
        here.script("plan", f"[[step]]\n{say(plan)}")
        read = 'call = {tool = "Read", input = {file_path = "{cwd}/one.txt"}}'
        wrote = 'call = {tool = "Write", input = {file_path = "{cwd}/two.txt", content = "2"}}'
        here.script("last-reader", "\n".join(f"[[step]]\n{step}\n" for step in (read, wrote, say(HALF))))
        here.told("plan", "One file, then another. rehearsal: plan", "--approve")
        page = until_read(here.squad, here.project, 1, "ready", "failed", "faulty")
        assert [point.tried for point in page.points] == ["green", "red"], page
        (run,) = here.squad.data.runs.glob("plan-2-run-*")
        assert [event.facts["failed"] for event in read_journal(run) if event.kind == "returned"] == [False, True]
        spent = here.squad.client.epic(here.project.cwd, "P1").usage
        assert page.usage is not None
        assert spent is not None
        assert spent.usd > page.usage.usd > 0, "what it cost is in the epic's books"
