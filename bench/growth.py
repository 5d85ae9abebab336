"""Cost of a ticket as the number of finished tickets grows: every ticket is really driven, by a cheap agent.

`python -m bench growth 10000` takes twenty to sixty minutes on two processors. Where other programs delete many files
on the same file system, set TMPDIR to one that they do not use: ext4 then searches long for a free inode.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import psutil

from bench import ground
from bench.cpu import CpuGroup, cpu_group
from bench.pace import Pace, pace
from bench.report import Report, say
from tests.support.legion import Project, Squad, new, squad

TICKETS = 1_000
_BLOCK = 100
_MEMORY = 10
"""MB by which the daemon may grow: less than the interpreter's own scatter from block to block."""
_FILES = 100
"""The agents change them in turn, so that the repository itself does not grow."""
_CONFIG = '[checks.test]\nrun = "true"\n[agents]\nparallel = 30\n'
_SETTINGS = "[worktrees]\npool = 30\ndisk_gb = 1\n"
"""With a small trash, so that the cost of emptying it is part of the figures."""


@dataclass(frozen=True, kw_only=True)
class _Block:
    """Consecutive tickets. `cpu` is per ticket, without agent and check, in seconds of a machine that is not shared."""

    cpu: float
    memory: float


def run(folder: Path, report: Report, count: int = TICKETS) -> None:
    repository = ground.repository(folder / "repo", _FILES, _CONFIG)
    with cpu_group("daemon") as group, cpu_group("agents") as plain, pace(folder) as beat:
        own = ground.alone(repository, plain, [_agent(number) for number in range(20)])
        say(f"agent and check alone: {own * 1000:.1f} ms; a beat of the pace at rest: {beat.usual() * 1000:.2f} ms")
        with squad(folder, launch=group.launch, settings=_SETTINGS) as one:
            project = one.adopt(repository)
            ground.until_warm(project, 30)
            group.until_quiet()
            blocks = [_block(project, first, group, beat, own) for first in range(0, count, _BLOCK)]
    # The trash is emptied once in a minute, which falls into one block of five or six.
    share = max(3, len(blocks) // 10)
    few, many = blocks[:share], blocks[-share:]
    report.value("CPU of a ticket, first blocks", _mean(few), "s", aim=0.12)
    report.value(f"CPU of a ticket, after {count:,}", _mean(many), "s", aim=0.12)
    report.ratio(f"growth from 0 to {count:,} tickets", [one.cpu for one in many], [one.cpu for one in few], aim=1.1)
    grown = blocks[-1].memory - blocks[2].memory
    report.value(f"memory of the daemon, added by {count:,} tickets", grown, "MB", aim=_MEMORY)
    # Caches fill in the first half. What grows with every ticket shows in the second.
    grown = blocks[-1].memory - blocks[len(blocks) // 2].memory
    report.value("memory of the daemon, added by the second half of them", grown, "MB", aim=_MEMORY / 2)


def _agent(number: int) -> str:
    """Changes and commits one file; no two agents of a block have the same."""
    return f"echo {number} > {ground.path_of(number % _FILES)}; git add -A; git commit -qm {number}"


def _block(project: Project, first: int, group: CpuGroup, beat: Pace, own: float) -> _Block:
    before, at = group.seconds(), beat.beats()
    wanted = [new(f"ticket {number}", _agent(number), max_attempts=3) for number in range(first, first + _BLOCK)]
    ended = project.until_settled(*project.dispatch_all(wanted), patience=900)
    group.until_quiet()
    # Before anything is asked about the tickets: that is no part of their cost.
    used = (group.seconds() - before) / _BLOCK
    failed = [line.id for line in ended.tickets if line.state != "done"]
    if failed:
        raise RuntimeError(f"tickets {failed} did not land:\n{project.squad.log[-2000:]}")
    slower = beat.since(at) / beat.usual()
    one = _Block(cpu=used / slower - own, memory=_memory(project.squad))
    say(
        f"{first + _BLOCK:6} finished: {one.cpu * 1000:6.1f} ms per ticket (raw {used * 1000:.1f}, "
        f"pace {slower:.2f}x), daemon {one.memory:.0f} MB; {_left_behind(project)}"
    )
    return one


def _left_behind(project: Project) -> str:
    """What the tickets so far left on disk."""
    objects, data = project.hub / "objects", project.squad.data
    counts = {
        "packs": sum(1 for _ in (objects / "pack").glob("*.pack")),
        "loose objects": sum(1 for _ in objects.glob("[0-9a-f][0-9a-f]/*")),
        "loose refs": sum(1 for ref in (project.hub / "refs").rglob("*") if ref.is_file()),
        "run folders": sum(1 for _ in data.runs.iterdir()),
        "trees in the trash": sum(1 for _ in (project.worktrees / ".trash").glob("*")),
        "MB of database": round(sum(file.stat().st_size for file in data.root.glob("legion.db*")) / 1e6),
    }
    return ", ".join(f"{count} {what}" for what, count in counts.items())


def _memory(one: Squad) -> float:
    assert one.process is not None
    return float(psutil.Process(one.process.pid).memory_info().rss) / 1e6


def _mean(blocks: list[_Block]) -> float:
    return sum(one.cpu for one in blocks) / len(blocks)
