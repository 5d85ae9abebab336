"""What a network of its own costs a run, from dispatch to the agent's first instruction."""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Iterator
from pathlib import Path

from bench import ground
from bench.report import ROUNDS, Report, interleaved
from tests.support.gates import Gate
from tests.support.legion import PLAIN, Project, new, squad
from tests.support.repository import Repository

_CONFIG = "[agents]\nparallel = 32\n"
_OTHERS = 30


def run(folder: Path, report: Report) -> None:
    repository = ground.repository(folder / "repo", 100, _CONFIG)
    with _squad(folder / "own", repository, "public") as own, _squad(folder / "host", repository, "host") as host:
        _compare("bridge: first instruction, alone", own, host, report)
        with _others(own), _others(host):
            _compare(f"bridge: first instruction, with {_OTHERS} other runs", own, host, report)


def _compare(name: str, own: Project, host: Project, report: Report) -> None:
    pairs = [
        interleaved(
            lambda number: ground.request_start(own, f"{name} {number}"),
            lambda number: ground.request_start(host, f"{name} {number}"),
        )
        for _ in range(ROUNDS)
    ]
    mine, theirs = (statistics.median(one for pair in pairs for one in pair[way]) for way in (0, 1))
    report.value(f"{name}: without", theirs * 1000, "ms")
    report.value(f"{name}: added", (mine - theirs) * 1000, "ms", aim=10.0)


@contextlib.contextmanager
def _others(project: Project) -> Iterator[None]:
    """So many other runs of this squad, which wait."""
    with contextlib.closing(Gate(project.squad.folder / "gates", "others")) as gate:
        ids = project.dispatch_all([new(f"other {n}", gate.pause, max_attempts=1) for n in range(_OTHERS)])
        gate.arrived(_OTHERS)
        yield
        gate.open(_OTHERS)
        project.until_settled(*ids)


@contextlib.contextmanager
def _squad(folder: Path, repository: Repository, network: str) -> Iterator[Project]:
    (folder / "gates").mkdir(parents=True)
    settings = (
        f'[sandbox]\nnetwork = "{network}"\nwrite = ["{folder}/gates"]\n'
        f'[worktrees]\npool = 2\nfolder = "{folder}/{{name}}-trees"\n'
    )
    with squad(folder, launch=PLAIN, settings=settings) as one:
        yield one.adopt(repository)
