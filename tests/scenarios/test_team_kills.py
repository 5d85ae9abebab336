"""The daemon, or who advises, is killed at every step of an advice: it is given once, and no attempt is spent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from legion.runner.journal import JournalKind, read_journal
from legion.system.crash import Point
from tests.support.gates import Gate
from tests.support.legion import PATIENCE, Project, Squad
from tests.support.looking import until_seen
from tests.support.repository import CHECK, Repository
from tests.support.sampling import sampled

POINTS = [
    *(point for point in Point if point.value.startswith("jobs.advise.")),
    *(Point.RUN_BEFORE_LAUNCH, Point.RUN_AFTER_LAUNCH, Point.RUN_BEFORE_CONCLUDE, Point.RUN_AFTER_CONCLUDE),
]
BUILDS = 'grep -q "Mind the gap" "$LEGION_BRIEFING" && echo done > gap.txt'


@contextmanager
def firm(folder: Path, adviser: str, extra: Mapping[str, str] | None = None) -> Iterator[tuple[Squad, Project]]:
    """A daemon with a team whose adviser is this shell script."""
    (folder / "gates").mkdir(exist_ok=True)
    script = folder / "gates" / "adviser.sh"
    script.write_text(adviser)
    walls = f'[sandbox]\nwrite = ["{folder}/gates"]\n[drivers.says]\nrun = "sh {script}"\n'
    for kind, name, text in (
        ("roles", "wise", 'part = "advise"\nprompt = "Be wise."\ndriver = "says"\n'),
        ("teams", "pair", 'roles = ["wise", "engineer"]\n'),
    ):
        (folder / kind).mkdir()
        (folder / kind / f"{name}.toml").write_text(text)
    one = Squad(folder, settings=walls)
    try:
        yield one, one.start(extra).adopt(Repository(folder / "ada", CHECK))
    finally:
        one.close()


@pytest.mark.parametrize(
    "point", sampled(POINTS, 2, lambda point: "advise" in point.value), ids=lambda point: point.value
)
def test_a_kill_in_an_advice_costs_nothing(tmp_path: Path, point: Point):
    counted = f"echo x >> {tmp_path}/gates/began; echo Mind the gap."
    # Nobody comes by the point before there is a ticket.
    armed = {"LEGION_CRASH_AT": f"{point.value}#1", "LEGION_CRASH_LOG": str(tmp_path / "points")}
    with firm(tmp_path, counted, armed) as (one, project):
        ticket = project.dispatch("Gap", BUILDS, team="pair")
        assert one.process is not None
        one.process.wait(PATIENCE)
        one.start()
        page = project.until(ticket, "done")
        assert page.ticket.attempt == 1
        assert page.crew is not None
        assert [said.text for said in page.crew.advice] == ["Mind the gap."]
        assert (tmp_path / "gates/began").read_text() == "x\n", "who was started is found again, and started once"
        assert [run.role for run in page.runs] == ["wise", ""]
        until_seen(one, lambda: not list(project.worktrees.glob("ticket-*-wise")), "that the adviser's tree is gone")


def test_an_adviser_whose_runner_is_killed_begins_again_as_the_same_attempt(tmp_path: Path):
    (tmp_path / "gates").mkdir()
    gate = Gate(tmp_path / "gates", "advice")
    again = tmp_path / "gates/again"
    with firm(tmp_path, f"if [ -f {again} ]; then echo Mind the gap.; else {gate.pause}; fi") as (one, project):
        ticket = project.dispatch("Gap", BUILDS, team="pair")
        gate.arrived()
        again.touch()
        (folder,) = one.data.runs.glob(f"ticket-{ticket}-wise-run-*")
        (opened,) = [event for event in read_journal(folder) if event.kind == JournalKind.OPENED.value]
        psutil.Process(int(str(opened.facts["runner"]))).kill()
        page = project.until(ticket, "done")
        assert page.ticket.attempt == 1
        ends = [("wise", "lost"), ("wise", "finished"), ("", "finished")]
        assert [(run.role, run.outcome) for run in page.runs] == ends
    gate.close()
