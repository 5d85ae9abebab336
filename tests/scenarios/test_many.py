"""Many tickets at once, with agents that fail, crash, conflict and hang: it ends, and what should land has landed."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable
from enum import Enum
from pathlib import Path

import pytest

from tests.support.gates import Gate
from tests.support.legion import Project, new


class Nature(Enum):
    """What an agent does, as a shell script; `$n` is its ticket's place in the plan."""

    GOOD = "echo good > $n.txt"
    STUMBLES = "echo half > $n.half; [ $LEGION_ATTEMPT -gt 1 ] || exit 3; echo good > $n.txt"
    MENDS = "if [ $LEGION_ATTEMPT = 1 ]; then echo BROKEN > $n.txt; else echo good > $n.txt; fi"
    DOZES = "[ $LEGION_ATTEMPT -gt 1 ] || exec sleep 600; echo good > $n.txt"
    COMMITS = "echo good > $n.txt; git add -A; git commit -qm step; echo more > $n.more"
    QUARRELS = """
        sed -i '/^<<<<<<<\\|^|||||||\\|^=======\\|^>>>>>>>/d' shared.txt
        grep -qx "line $n" shared.txt || sed -i "1i line $n" shared.txt
        echo good > $n.txt
    """
    # From here on they never make it.
    FAILS = "echo half > $n.txt; exit 1"
    BREAKS = "echo BROKEN > $n.txt"
    HANGS = "echo half > $n.txt; exec sleep 600"
    IDLES = "true"

    @property
    def makes_it(self) -> bool:
        return self not in (Nature.FAILS, Nature.BREAKS, Nature.HANGS, Nature.IDLES)


NATURES = [*[nature for nature in Nature for _ in range(3 if nature.makes_it else 1)], *[Nature.GOOD] * 6]

CONFIG = """
[checks.test]
run = "sh check.sh"
[agents]
parallel = 8
attempts = 20
timeout = 5
"""


class Plan:
    """A random graph of tickets, and what must come of it."""

    def __init__(self, size: int, seed: int) -> None:
        luck = random.Random(seed)
        self.natures = [luck.choice(NATURES) for _ in range(size)]
        self.after = [sorted(luck.sample(range(n), min(n, luck.choice((0, 0, 1, 1, 2, 3))))) for n in range(size)]
        self.states: list[str] = []
        for nature, after in zip(self.natures, self.after, strict=True):
            ready = all(self.states[other] == "done" for other in after)
            self.states.append(("done" if nature.makes_it else "failed") if ready else "queued")

    def tickets(self) -> list[object]:
        return [
            new(
                f"{nature.name} {n}",
                # It starts from the landed code of all that it comes after, or it has nothing to do here.
                " && ".join([f"n={n}", *(f"test -e {other}.txt" for other in after), f"{{ {nature.value.strip()}\n}}"]),
                key=f"k{n}",
                after_keys=[f"k{other}" for other in after],
                max_attempts=None if nature.makes_it else 1,
            )
            for n, (nature, after) in enumerate(zip(self.natures, self.after, strict=True))
        ]


@pytest.mark.timeout(3000)
@pytest.mark.parametrize("size", [13, pytest.param(200, marks=pytest.mark.soak)])
def test_a_random_board_ends_and_its_history_is_that_of_naive_merging(
    make: Callable[..., Project], tmp_path: Path, size: int, seed: int
):
    plan = Plan(size, seed)
    project = make(CONFIG, files={"shared.txt": "end\n"})
    ids = project.dispatch_all(plan.tickets())  # type: ignore[arg-type]
    state = project.until_settled(patience=15.0 * size)
    states = project.states()
    assert [states[ticket] for ticket in ids] == plan.states
    assert sorted(state.stuck) == [ticket for ticket, word in zip(ids, plan.states, strict=True) if word == "queued"]
    landed = {n for n, word in enumerate(plan.states) if word == "done"}
    assert {n for n in range(size) if project.landed(f"{n}.txt") is not None} == landed
    quarrels = {f"line {n}" for n in landed if plan.natures[n] is Nature.QUARRELS}
    assert sorted((project.landed("shared.txt") or "").splitlines()) == sorted([*quarrels, "end"])
    assert merged_naively(project, tmp_path / "naive") == len(landed)
    project.hub_git("fsck", "--strict", "--full")
    assert not [process for process in project.squad.processes() if "sleep" in process.name()]


def merged_naively(project: Project, folder: Path) -> int:
    """Merge the landed changes one by one with plain git: every step must give the very files that Legion landed."""

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"git {words}: {done.stdout}{done.stderr}"
        return done.stdout.strip()

    folder.mkdir()
    git("init", "-q")
    git("config", "user.name", "Naive")
    git("config", "user.email", "naive@example.invalid")
    git("fetch", "-q", str(project.hub), "refs/legion/target")
    history = git("rev-list", "--first-parent", "--reverse", "--parents", "FETCH_HEAD").splitlines()
    root, *landings = [line.split() for line in history if len(line.split()) != 2]
    git("checkout", "-q", "--detach", landings[0][1])
    assert git("merge-base", root[0], "HEAD") == root[0]
    for commit, _, change in landings:
        git("merge", "-q", "--no-ff", "--no-edit", change)
        assert git("rev-parse", "HEAD^{tree}") == git("rev-parse", f"{commit}^{{tree}}")
    return len(landings)


@pytest.mark.parametrize("count", [9, pytest.param(30, marks=pytest.mark.soak)])
def test_many_agents_work_at_once_and_none_is_dropped(make: Callable[..., Project], gate: Gate, count: int):
    project = make("[checks.test]\nrun = 'sh check.sh'\n[agents]\nparallel = 30\n")
    ids = project.dispatch_all([new(f"ticket {n}", f"{gate.pause}; echo {n} > {n}.txt") for n in range(count)])
    assert sorted(int(said) for said in gate.arrived(count)) == ids
    gate.open(count)
    project.until_settled()
    assert set(project.states().values()) == {"done"}
    assert [project.landed(f"{n}.txt") for n in range(count)] == [f"{n}\n" for n in range(count)]
