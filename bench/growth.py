"""Cost of a ticket as the number of finished tickets grows: every ticket is really driven, by a cheap agent."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench import ground
from bench.cpu import CpuGroup, cpu_group
from bench.pace import Pace, pace
from bench.report import Report, say
from tests.support.legion import Project, Squad, new, squad

TICKETS = 1_000
_BLOCK = 60
_NAMES = 120
"""Files that the agents write in turn, so that the repository itself does not grow."""
_CONFIG = '[checks.test]\nrun = "true"\n[agents]\nparallel = 30\n'
_SETTINGS = "[worktrees]\npool = 30\n"


@dataclass(frozen=True, kw_only=True)
class _Block:
    """Consecutive tickets. `cpu` is per ticket, without agent and check, in seconds of a machine that is not shared."""

    cpu: float
    memory: float


def run(folder: Path, report: Report, count: int = TICKETS) -> None:
    repository = ground.repository(folder / "repo", 100, _CONFIG)
    with cpu_group("daemon") as group, cpu_group("agents") as plain, pace(folder) as beat:
        own = _agent_alone(repository.root, plain)
        say(f"agent and check alone: {own * 1000:.1f} ms; a beat of the pace at rest: {beat.usual() * 1000:.2f} ms")
        with squad(folder, launch=group.launch, settings=_SETTINGS) as one:
            project = one.adopt(repository)
            ground.until_warm(project, 30)
            group.until_quiet()
            blocks = [_block(project, first, group, beat, own) for first in range(0, count, _BLOCK)]
    few, many = blocks[:3], blocks[-3:]
    report.value("CPU of a ticket, first blocks", _mean(few), "s", aim=0.12)
    report.value(f"CPU of a ticket, after {count:,}", _mean(many), "s", aim=0.12)
    report.ratio(f"growth from 0 to {count:,} tickets", [one.cpu for one in many], [one.cpu for one in few], aim=1.1)
    report.value("memory of the daemon, added since the first block", many[-1].memory - few[0].memory, "MB")


def _agent(number: int) -> str:
    """Writes and commits one file; its name comes back after `_NAMES` tickets."""
    return f"echo {number} > f{number % _NAMES}.txt; git add -A; git commit -qm {number}"


def _agent_alone(repository: Path, group: CpuGroup, rounds: int = 20) -> float:
    """CPU seconds of agent and check as a person would start them: no sandbox, no daemon."""
    tree = repository.parent / "alone"
    subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(tree)], cwd=repository, check=True)
    before = group.seconds()
    for number in range(rounds):
        subprocess.run(group.run("sh", "-c", f"{_agent(number)}; sh -c true"), cwd=tree, check=True)
    return (group.seconds() - before) / rounds


def _block(project: Project, first: int, group: CpuGroup, beat: Pace, own: float) -> _Block:
    before, at = group.seconds(), beat.beats()
    wanted = [new(f"ticket {number}", _agent(number), max_attempts=3) for number in range(first, first + _BLOCK)]
    ids = project.dispatch_all(wanted)
    project.until_settled(*ids, patience=900)
    group.until_quiet()
    states = project.states()
    failed = [ticket for ticket in ids if states[ticket] != "done"]
    if failed:
        raise RuntimeError(f"tickets {failed} did not land:\n{project.squad.log[-2000:]}")
    slower = beat.since(at) / beat.usual()
    used = (group.seconds() - before) / _BLOCK
    one = _Block(cpu=used / slower - own, memory=_memory(project.squad))
    packs = len(list((project.hub / "objects/pack").glob("*.pack")))
    loose = sum(1 for _ in (project.hub / "objects").glob("[0-9a-f][0-9a-f]/*"))
    refs = sum(1 for ref in (project.hub / "refs").rglob("*") if ref.is_file())
    say(
        f"{first + _BLOCK:6} finished: {one.cpu * 1000:6.1f} ms per ticket (raw {used * 1000:.1f}, "
        f"pace {slower:.2f}x), {packs} packs, {loose} loose objects, {refs} loose refs, daemon {one.memory:.0f} MB"
    )
    return one


def _memory(one: Squad) -> float:
    assert one.process is not None
    return float(psutil.Process(one.process.pid).memory_info().rss) / 1e6


def _mean(blocks: list[_Block]) -> float:
    return sum(one.cpu for one in blocks) / len(blocks)
