"""Kill the daemon, or a runner, at every registered point; start again; look for damage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from legion.domain.runs import Outcome
from legion.system.crash import Point
from tests.crash import invariants
from tests.crash.board import Ground, prepare
from tests.crash.invariants import Scene
from tests.crash.nursery import Moment, Nursery
from tests.support.sampling import sampled, sampled_together

ELSEWHERE = (
    *("jobs.serve.", "jobs.advise.", "jobs.plan.", "jobs.reader.", "jobs.live.", "jobs.rewind.", "jobs.rebuild."),
    *("jobs.adopt.", "jobs.forge.", "git.remote.", "jobs.machine-", "machine.", "jobs.race."),
    *("forge.", "service.epic."),
)
POINTS = [point for point in Point if not point.value.startswith(ELSEWHERE)]
"""Those of standing agents, advice, plans, readers, liveness and rewinds need a conversation, those of a rebuild none:
`tests/scenarios` has tests that pass them, and those of adoptions and races. `tests/forge` passes those of forges,
`tests/machines` those of machines."""


def is_in_runner(point: Point) -> bool:
    """Reached by the process that holds a run, not by the daemon."""
    return point.value.startswith(("runner.run.", "runner.program.", "runner.result."))


class Case:
    """One board on its own ground, lived through by one daemon after the other."""

    def __init__(self, folder: Path, nursery: Nursery, database: str = "") -> None:
        self.nursery = nursery
        self.ground = Ground(folder / "case", database)
        prepare(self.ground)
        self.first_target = (self.ground.repository / ".git/refs/heads/main").read_text().strip()

    def dies_at(self, *moments: Moment) -> list[Moment]:
        """One life after the other ends at one of these moments, until none is left or the board is done.

        Returns the moments at which the daemon died, or a runner of its, which it has to live with.
        """
        died: list[Moment] = []
        while left := [moment for moment in moments if moment not in died]:
            life = self.nursery.live(self.ground, die_at=left)
            now = [(point, nth) for point, nth in left if life.reached.count(point) >= nth]
            in_daemon = [point for point, _ in now if not is_in_runner(point)]
            assert life.was_killed if in_daemon else life.code == 0, self.log()
            died += now
            if not life.was_killed:
                break
        return died

    def goes_on(self) -> None:
        life = self.nursery.live(self.ground)
        assert life.code == 0, self.log()

    def is_sound(self, *, lost_allowed: bool = False) -> None:
        scene = self.scene(lost_allowed)
        invariants.check(scene, invariants.AFTER_TIDYING)
        self._holds_what_was_asked_for(scene)
        before = invariants.fingerprint(scene)
        assert self.nursery.live(self.ground, "look_again").code == 0, self.log()
        assert invariants.fingerprint(scene) == before, "a restart changes nothing once all is done"
        invariants.check(scene, invariants.AFTER_A_QUIET_LIFE)

    def scene(self, lost_allowed: bool) -> Scene:
        return Scene(
            data=self.ground.data,
            url=self.ground.url,
            repository=self.ground.repository,
            worktrees=self.ground.worktrees,
            shared=self.ground.shared,
            first_target=self.first_target,
            lost_allowed=lost_allowed,
        )

    def log(self) -> str:
        return (self.ground.folder / "daemon.log").read_text()[-6000:]

    def _holds_what_was_asked_for(self, scene: Scene) -> None:
        told = scene.told()
        landed = {path.name: path.read_text() for path in self.ground.repository.glob("*.txt")}
        readme = landed.pop("README.txt").splitlines()
        assert landed == {
            "a.txt": "a\n",
            "later.txt": "later\n",
            "lock.txt": "1\n",
            "m.txt": "fine\n",
            "mine.txt": "mine\n",
        }
        assert sorted(readme) == ["3 was here", "4 was here"]
        assert not (self.ground.repository / "deps").exists(), "what setup makes is no part of any change"
        assert scene.git("log", "--format=%s", "refs/legion/target").split("\n").count("My own commit") == 1
        attempts = {ticket.spec.title: ticket.attempt for ticket in told.tickets}
        assert (attempts["commits"], attempts["mends"], attempts["look"]) == (1, 2, 0), "no attempt is spent on a crash"
        assert len(told.readings) == 2, "each of its changes was read"
        assert attempts["one"] + attempts["other"] <= 3
        kept = [path.read_text() for path in self.ground.worktrees.rglob("nested/kept.txt")]
        assert kept == ["nested\n"] * len(kept)
        assert kept, "the nested repository lies in the trash"
        assert {run.outcome for run in told.runs} <= {Outcome.FINISHED, Outcome.LOST}


@pytest.fixture
def case(tmp_path: Path, nursery: Nursery) -> Case:
    return Case(tmp_path, nursery)


def test_one_board_passes_every_registered_point(case: Case):
    life = case.nursery.live(case.ground)
    assert life.code == 0, case.log()
    reached = Counter(life.reached)
    assert [point.value for point in POINTS if point not in reached] == [], "no test can kill where nobody comes by"
    case.is_sound()


def room(point: Point) -> str:
    """Who reaches it: the jobs, the store, the runner or git."""
    return point.value.partition(".")[0]


def in_one_run(moments: list[Moment], count: int, kind: Callable[[Moment], object]) -> list[Any]:
    """For `parametrize`: some of the moments, drawn by kinds, after each other in one test; in soak each in its own."""
    some, _every = sampled_together(moments, count, kind)
    alone = [pytest.param([moment], id=named(moment), marks=pytest.mark.soak) for moment in moments]
    return [some, *alone]


def named(moment: Moment) -> str:
    return f"{moment[0].value}-{moment[1]}"


@pytest.mark.parametrize("moments", in_one_run([(point, 1) for point in POINTS], 4, lambda moment: room(moment[0])))
def test_crashes_at_points_cost_nothing(tmp_path: Path, nursery: Nursery, moments: list[Moment]):
    """What a board did not pass any more after its last crash, the next board passes."""
    left = moments
    while left:
        case = Case(tmp_path / str(len(left)), nursery)
        died = case.dies_at(*left)
        assert died, f"none of these is ever reached: {left}\n{case.log()}"
        case.goes_on()
        case.is_sound(lost_allowed=any(is_in_runner(point) for point, _ in died))
        left = [moment for moment in left if moment not in died]


LATER = [(point, nth) for point in POINTS for nth in ((4, 8, 16) if is_in_runner(point) else (2, 3, 5))]
"""The first runners prepare trees and test the target; agents come later."""


@pytest.mark.parametrize("moments", in_one_run(LATER, 2, lambda moment: is_in_runner(moment[0])))
def test_crashes_at_later_passes_of_points_cost_nothing(case: Case, moments: list[Moment]):
    died = case.dies_at(*moments)
    case.goes_on()
    case.is_sound(lost_allowed=any(is_in_runner(point) for point, _ in died))


IN_EVERY_LIFE = ("jobs.", "store.write.", "runner.launch.", "git.check-tree.", "git.target.", "git.collect.")
OURS = [point for point in POINTS if point.value.startswith(IN_EVERY_LIFE)]


@pytest.mark.soak
@pytest.mark.parametrize("point", OURS, ids=lambda point: point.value)
def test_a_crash_on_the_second_life_costs_nothing_either(case: Case, point: Point):
    """Those of a sample have later lives that crash, too."""
    assert case.dies_at((Point.RUN_AFTER_LAUNCH, 2))
    assert case.dies_at((point, 1))
    case.goes_on()
    case.is_sound()


@pytest.mark.parametrize("point", sampled(POINTS, 1), ids=lambda point: point.value)
def test_postgres_costs_nothing_either(tmp_path: Path, nursery: Nursery, postgres_url: str, point: Point):
    case = Case(tmp_path, nursery, postgres_url)
    assert case.dies_at((point, 1))
    case.goes_on()
    case.is_sound(lost_allowed=is_in_runner(point))
