"""A race over a real daemon, which is killed while a finished lane waits: one lane lands, the other is kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from legion.wire.races import NewRace
from tests.scenarios.conftest import settings_with_gates
from tests.support.gates import Gate
from tests.support.legion import Squad, squad
from tests.support.repository import Repository


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
    assert project.state(raced) == "landing", "it waits for the other lane"
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
