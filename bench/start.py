"""From dispatch to the agent's first instruction, against `git worktree add` and exec of the same program."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from bench import ground
from bench.report import Report, interleaved
from tests.support.legion import PLAIN, Project, new, squad
from tests.support.repository import Repository

_CONFIG = "[agents]\nparallel = 30\n"
_AT_ONCE = 30
Start = Callable[[Project, str], float]
_WAYS: tuple[tuple[str, Start], ...] = (("by request", ground.request_start), ("typed", ground.legion_start))


def run(folder: Path, report: Report) -> None:
    for files in (100, 5_000, 50_000):
        repository = ground.repository(folder / f"repo{files}", files, _CONFIG)
        _warm(folder / f"warm{files}", repository, files, report)
        _cold(folder / f"cold{files}", repository, files, report)
        if files == 5_000:
            _thirty(folder / f"thirty{files}", repository, report)
        shutil.rmtree(folder / "plain", ignore_errors=True)


def _warm(folder: Path, repository: Repository, files: int, report: Report) -> None:
    with _squad(folder, repository, pool=2) as project:

        def wait_and(start: Start) -> Start:
            def started(project: Project, title: str) -> float:
                ground.until_warm(project, 2)
                return start(project, title)

            return started

        for name, start in _WAYS:
            _compare(f"start warm, {files} files, {name}", wait_and(start), project, files, report, aim=0.2)


def _cold(folder: Path, repository: Repository, files: int, report: Report) -> None:
    with _squad(folder, repository, pool=0) as project:
        for name, start in _WAYS:
            _compare(f"start cold, {files} files, {name}", start, project, files, report, aim=1.1)


def _compare(name: str, start: Start, project: Project, files: int, report: Report, *, aim: float) -> None:
    """A small repository is written in no time, so there the aim is a tenth of a second more than the plain way."""
    mine, plain = interleaved(
        lambda number: start(project, f"{name} {number}"),
        lambda number: ground.plain_start(project.repository, f"{name}-{number}".replace(" ", "-").replace(",", "")),
    )
    small = files == 100
    report.ratio(name, mine, plain, aim=1.0 if small else aim, extra=0.1 if small else 0.0)


def _thirty(folder: Path, repository: Repository, report: Report) -> None:
    def ours(number: int) -> float:
        place = folder / str(number)
        with _squad(place, repository, pool=_AT_ONCE) as project:
            ground.until_warm(project, _AT_ONCE)
            began = time.time()
            agent = "date +%s.%N > started-at; mv started-at started-$LEGION_TICKET; sleep 2"
            ids = project.dispatch_all([new(f"one of thirty {n}", agent, max_attempts=1) for n in range(_AT_ONCE)])
            project.until_settled(patience=300)
            states = project.states()
            assert all(states[ticket] == "done" for ticket in ids), states
            starts = [float(project.landed(f"started-{ticket}") or "nan") for ticket in ids]
            ends = [project.ticket(ticket).runs[0].ended_at or 0.0 for ticket in ids]
        report.value(f"30 at once, round {number}: in parallel", _parallel(starts, ends), "agents")
        return max(starts) - began

    def plain(number: int) -> float:
        began = time.time()
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            trees = [repository.root.parent / "plain" / f"thirty-{number}-{n}" for n in range(_AT_ONCE)]
            lock = repository.root.parent / "plain.lock"
            list(pool.map(lambda tree: _locked_start(repository, tree, lock), trees))
        return max(float((tree / "started-at").read_text()) for tree in trees) - began

    report.ratio("30 at once, 5000 files: last start", *interleaved(ours, plain), aim=0.2)


def _locked_start(repository: Repository, tree: Path, lock: Path) -> None:
    words = ["flock", str(lock), "git", "worktree", "add", "--quiet", "-b", f"plain-{tree.name}", str(tree)]
    subprocess.run(words, cwd=repository.root, check=True)
    subprocess.run(["sh", "-c", "date +%s.%N > started-at; sleep 2"], cwd=tree, check=True)


def _parallel(starts: list[float], ends: list[float]) -> int:
    """The most that ran at one moment."""
    return max(sum(1 for start, end in zip(starts, ends, strict=True) if start <= moment < end) for moment in starts)


@contextlib.contextmanager
def _squad(folder: Path, repository: Repository, pool: int) -> Iterator[Project]:
    """A squad with this repository as its project, and so many warm trees."""
    folder.mkdir(parents=True)
    settings = f'[worktrees]\npool = {pool}\nfolder = "{folder}/{{name}}-trees"\n'
    with squad(folder, launch=PLAIN, settings=settings) as one:
        yield one.adopt(repository)
