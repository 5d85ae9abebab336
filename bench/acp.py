"""Memory of runs over the Agent Client Protocol, without the agent program itself: runner, connection and sandbox."""

from __future__ import annotations

import statistics
from pathlib import Path

import psutil

from bench.report import Report
from legion.runner import launch
from legion.runner.launch import Launcher
from tests.drivers.small_programs import Stage, seen
from tests.runner.runs import Workbench, runner_of

_RUNS = 10


def run(folder: Path, report: Report) -> None:
    """Each run waits in the middle of a turn, after messages in both directions."""
    launcher = Launcher()
    launcher.warm()
    benches: list[Workbench] = []
    try:
        started = []
        for number in range(_RUNS):
            place = folder / str(number)
            place.mkdir()
            benches.append(Workbench(place, shared=launcher))
            stage = Stage(benches[-1], place, "acp")
            started.append(stage.start("say I write.\nedit made.txt\nsay I wait.\nwait"))
        for one in started:
            seen(one, "returned")
        runners = [runner_of(one) for one in started]
        report.value("memory per ACP run: runner (PSS)", _mean([_pss(one) for one in runners]), "MB")
        private = [sum(one.memory_full_info().uss for one in _ours(runner)) for runner in runners]
        report.value("memory per ACP run: private, runner and sandbox", _mean(private), "MB", aim=12)
        for one in started:
            launch.stop(one, 0)
    finally:
        for bench in benches:
            bench.close()
        launcher.close()


def _ours(runner: psutil.Process) -> list[psutil.Process]:
    """The runner and its sandbox, without the program and what that started."""
    below = [one for one in runner.children(recursive=True) if one.name().startswith("bwrap")]
    return [runner, *below]


def _pss(process: psutil.Process) -> int:
    return int(process.memory_full_info().pss)


def _mean(values: list[int]) -> float:
    return statistics.mean(values) / 1e6
