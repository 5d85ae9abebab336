"""Races over a real daemon, which is killed on the way: one lane lands, the other is kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from legion.system.crash import Point
from legion.wire.errors import LegionError
from legion.wire.tickets import NewRace
from tests.scenarios.conftest import settings_with_gates
from tests.support import readers
from tests.support.gates import Gate
from tests.support.legion import PATIENCE, Squad, squad
from tests.support.repository import CHECK, Repository
from tests.support.sampling import sampled

POINTS = [point for point in Point if point.value.startswith("jobs.race.")]
READER = """
mine=$(sed -n 's/.*The change above is attempt \\([AB]\\).*/\\1/p' "$LEGION_BRIEFING")
first=$(grep -m1 '^+[a-z]' "$LEGION_BRIEFING")
best=$mine
[ "$first" = "+counted" ] || best=$(echo AB | tr -d "$mine")
ranking="\\"$best\\", \\"$(echo AB | tr -d "$best")\\""
echo '{"verdict": "approve", "summary": "Read.", "read": ["till.txt"], "findings": [], "ranking": ['"$ranking"']}'
"""
"""It ranks the attempt that counts first. Its change comes first in what a reader gets, the other attempts follow."""


@pytest.fixture
def racers(tmp_path: Path) -> Iterator[tuple[Squad, Gate]]:
    """Two programs: one writes many lines at once, the other a few when its gate is opened."""
    settings = settings_with_gates(tmp_path)
    gate = Gate(tmp_path / "gates", "late")
    long = "seq 1 300 > long.txt"
    short = f"{gate.pause}; echo done > short.txt"
    scripts = {"long": long, "short": short}
    for name, command in scripts.items():
        (tmp_path / "gates" / name).write_text(f"{command}\n")
    drivers = "".join(f'[drivers.{name}]\nrun = "sh {tmp_path}/gates/{name}"\n' for name in scripts)
    with squad(tmp_path, settings=settings + drivers) as one:
        yield one, gate
        gate.close()


def test_a_race_survives_a_kill_and_lands_one_lane(racers: tuple[Squad, Gate], tmp_path: Path):
    house, gate = racers
    project = house.adopt(Repository(tmp_path / "ada"))
    project.pause()
    raced = project.dispatch("raced", driver="long")
    after = project.dispatch("after", "test -e short.txt && echo seen > seen.txt", after=[raced])
    page = house.client.race(raced, NewRace(drivers=["long", "short"]))
    other = page.lanes[1].ticket
    project.resume()
    project.until(raced, "landing")
    house.kill()
    house.start()
    assert project.ticket(raced).ticket.doing == "proven; waits for the other attempts of its race"
    gate.open()
    project.until_settled()
    assert project.states() == {raced: "stopped", other: "done", after: "done"}
    assert (project.landed("short.txt"), project.landed("long.txt"), project.landed("seen.txt")) == (
        "done\n",
        None,
        "seen\n",
    )
    shown = house.client.race_page(raced)
    assert [(lane.ticket, lane.standing, lane.lines) for lane in shown.lanes] == [
        (raced, "lost", 300),
        (other, "won", 1),
    ]
    assert project.kept(raced, "long.txt") is not None, "the other change is kept for a look"
    assert (
        f"race {shown.race} is won by ticket {other}" in house.cli("events", str(other), cwd=Path(project.cwd)).stdout
    )
    text = house.cli("race", str(raced), cwd=Path(project.cwd)).stdout
    assert f"won by ticket {other}" in text
    assert "300 lines" in text


@pytest.mark.parametrize("end", ["good", "red", "stopped"])
def test_a_race_that_combines_lands_its_last_attempt_only_if_it_passes_every_proof(tmp_path: Path, end: str):
    (tmp_path / "gates").mkdir()
    gate = Gate(tmp_path / "gates", "last")
    proof = "test -f left.txt || test -f right.txt"
    script = tmp_path / "gates" / "racer"
    last = "echo left > left.txt; echo right > right.txt" if end == "good" else "echo neither > other.txt"
    script.write_text(
        f"if grep -q 'attempt of ticket' $LEGION_BRIEFING; then cp $LEGION_BRIEFING seen.txt; {gate.pause}; {last}; "
        "elif [ $LEGION_TICKET = 1 ]; then echo left > left.txt; else seq 50 > right.txt; fi\n"
    )
    settings = f'[sandbox]\nwrite = ["{tmp_path}/gates"]\n[drivers.racer]\nrun = "sh {script}"\n'
    with squad(tmp_path, settings=settings) as house:
        project = house.adopt(Repository(tmp_path / "ada"))
        cwd = Path(project.cwd)
        project.pause()
        raced = project.dispatch("raced", driver="racer", prove=[proof])
        said = house.cli("retry", "race", "N=2", "--combine", str(raced), cwd=cwd)
        assert said.returncode == 0, said.stderr
        project.resume()
        (combined,) = map(int, gate.arrived())
        if end == "stopped":
            house.cli("stop", str(combined), cwd=cwd)
        else:
            house.kill()
            house.start()
            gate.open()
        project.until_settled()
        lanes = {lane.ticket: (lane.standing, lane.attempts) for lane in house.client.race_page(raced).lanes}
        others = {raced: ("lost", 1), raced + 1: ("lost", 1)} if end == "good" else {raced: ("won", 1)}
        assert len(lanes) == 3
        assert lanes[combined] == ("won" if end == "good" else "lost", 1)
        assert others.items() <= lanes.items()
        assert (project.landed("left.txt"), project.landed("other.txt")) == ("left\n", None)
        assert (project.landed("right.txt") is not None) == (end == "good")
        if end != "stopped":
            told = project.kept(combined, "seen.txt") or ""
            assert "+left" in told
            assert f"all that each of them passed:\n\n- `{proof}`" in told
        assert f"#{combined}" in house.cli("retry", "race", str(raced), cwd=cwd).stdout
        gate.close()


@pytest.mark.parametrize("point", sampled(POINTS, 2), ids=lambda point: point.value)
def test_a_kill_costs_a_race_nothing_and_its_readers_do_not_know_the_authors(tmp_path: Path, point: Point):
    armed = {"LEGION_CRASH_AT": f"{point.value}#1", "LEGION_CRASH_LOG": str(tmp_path / "points")}
    words = {"alpha": "worse", "omega": "counted"}
    drivers = "".join(f'[drivers.{name}]\nrun = "sh {tmp_path}/readers/{name}"\n' for name in words)
    with readers.office(tmp_path, settings=drivers, config=CHECK, extra=armed) as office:
        for name, word in words.items():
            (office.readers.folder / name).write_text(f"echo {word} > till.txt\n")
        house, project = office.squad, office.project
        project.pause()
        raced = project.dispatch("raced", driver="alpha", text=office.readers.say("raced", READER))
        try:
            house.client.race(raced, NewRace(drivers=["alpha", "omega"]))
        except LegionError:
            assert point in (Point.RACE_BEFORE_START, Point.RACE_AFTER_START)
        else:
            project.resume()
        assert house.process is not None
        house.process.wait(PATIENCE)
        house.start()
        if point is Point.RACE_BEFORE_START:
            house.client.race(raced, NewRace(drivers=["alpha", "omega"]))
        project.resume()
        project.until_settled()
        other = raced + 1
        assert project.states() == {raced: "stopped", other: "done"}
        assert project.landed("till.txt") == "counted\n"
        lanes = house.client.race_page(raced).lanes
        assert [(lane.ticket, lane.standing, lane.lines) for lane in lanes] == [(raced, "lost", 1), (other, "won", 1)]
        told = office.readers.told("raced")
        assert len({text for text in told if "+worse" in text}) == 1, "one reader compares all"
        for text in told:
            assert "## Other attempts at the same ticket" in text
            assert {"+worse", "+counted"} <= set(text.splitlines())
            assert "alpha" not in text
            assert "omega" not in text
