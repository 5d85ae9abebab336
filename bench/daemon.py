"""The daemon at start and at rest, and the command line."""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

import psutil

from bench import ground
from bench.report import ROUNDS, Report, interleaved
from tests.support.legion import PLAIN, SOURCE, Squad

_WARMED_UP = 12.0
"""Seconds after which the fork server has made ready for agents, once: it begins when nobody asked for a while."""
_REST = 20.0


def run(folder: Path, report: Report) -> None:
    repository = ground.repository(folder / "repo", 100, "[agents]\nparallel = 4\n")
    one = Squad(folder, launch=PLAIN)
    ready = []
    for _ in range(ROUNDS):
        began = time.monotonic()
        one.start()
        ready.append(time.monotonic() - began)
        one.end()
    report.value("daemon ready", statistics.median(ready), "s", aim=2.0)
    one.start()
    try:
        project = one.adopt(repository)
        project.until_settled(project.dispatch("warm up", "echo > warm.txt"))
        _at_rest(one, report)
        _command_line(one, repository.root, report)
    finally:
        one.close()


def _at_rest(one: Squad, report: Report) -> None:
    assert one.process is not None
    own_process = psutil.Process(one.process.pid)
    helpers = [child for child in own_process.children() if "legion.runner.forkserver" in child.cmdline()]
    everything = [own_process, *helpers]
    fresh = _cpu(everything)
    time.sleep(_WARMED_UP)
    before = _cpu(everything)
    report.value("making ready for agents, once: CPU", before - fresh, "s")
    time.sleep(_REST)
    report.value(
        "at rest: CPU of daemon and fork server", (_cpu(everything) - before) / _REST * 100, "% of a core", aim=0.4
    )
    own = everything[0].memory_full_info()
    report.value("at rest: memory of the daemon (PSS)", own.pss / 1e6, "MB", aim=90)
    report.value("at rest: memory of everything (PSS)", sum(p.memory_full_info().pss for p in everything) / 1e6, "MB")


def _cpu(processes: list[psutil.Process]) -> float:
    return sum(process.cpu_times().user + process.cpu_times().system for process in processes)


def _command_line(one: Squad, cwd: Path, report: Report) -> None:
    def bare(_: int) -> float:
        return _timed([sys.executable, "-c", "pass"])

    def version(_: int) -> float:
        return _timed([sys.executable, "-m", "legion", "version"])

    mine, plain = interleaved(version, bare)
    more = statistics.median(mine) - statistics.median(plain)
    report.value("`legion version`, more than bare Python", more * 1000, "ms", aim=60)
    report.value("`legion status`: CPU", _cpu_of(one, cwd, "status"), "ms", aim=120)
    words = ("dispatch", "-t", "measured", "--command", "true", "x")
    report.value("`legion dispatch`: CPU", _cpu_of(one, cwd, *words), "ms", aim=90)


def _cpu_of(one: Squad, cwd: Path, *words: str) -> float:
    """Milliseconds of user and system time of a command, in the median."""
    used = []
    for _ in range(ROUNDS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        ground.cli(one, cwd, *words)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(used) * 1000


def _timed(words: list[str]) -> float:
    began = time.monotonic()
    subprocess.run(words, check=True, capture_output=True, env={"PYTHONPATH": str(SOURCE), "PATH": "/usr/bin:/bin"})
    return time.monotonic() - began
