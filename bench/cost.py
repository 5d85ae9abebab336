"""What Legion adds to thirty agents at once, or to as many as are asked for: CPU, first and last start, the landings.

Agents and check do next to nothing, and the plain way is a shell loop in the same repository, round by round in turn.
"""

from __future__ import annotations

import statistics
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from bench import ground
from bench.cpu import CpuGroup, cpu_group
from bench.pace import Pace, pace
from bench.report import ROUNDS, Report, say
from tests.support.legion import Project, new, squad
from tests.support.repository import Repository

AT_ONCE = 30


@dataclass(frozen=True, kw_only=True)
class _Round:
    """Times in seconds from the request on; `cpu` per ticket, as on a machine that is not shared."""

    first: float
    last: float
    cpu: float
    landed: float = 0.0
    """From the end of the last agent to the last landing."""


def run(folder: Path, report: Report, at_once: int = AT_ONCE) -> None:
    repository = ground.repository(
        folder / "repo", 100, f'[checks.test]\nrun = "true"\n[agents]\nparallel = {at_once}\n'
    )
    settings = f"[daemon]\nslots = {at_once}\n[worktrees]\npool = {at_once}\n"
    with cpu_group("daemon") as group, cpu_group("plain") as alone, pace(folder) as beat:
        with squad(folder, launch=group.launch, settings=settings) as one:
            project = one.adopt(repository)
            # The first round fills caches and warms the fork server.
            rounds = [
                (_ours(project, n, group, beat, at_once), _plain(repository, n, alone, beat, at_once))
                for n in range(ROUNDS + 1)
            ]
            own = ground.alone(repository, alone, [_agent(f"alone-{n}", seconds=0) for n in range(20)])
        say(f"a beat of the pace: {beat.usual() * 1000:.2f} ms")
    mine, plain = [pair[0] for pair in rounds[1:]], [pair[1] for pair in rounds[1:]]
    used = statistics.median(one.cpu for one in mine) - own
    report.value(f"{at_once} at once: CPU of a ticket besides agent and check", used * 1000, "ms", aim=120)
    report.value(f"{at_once} at once: CPU of agent and check alone", own * 1000, "ms")
    added = statistics.median(one.cpu for one in plain) - own
    report.value(f"{at_once} at once: CPU of the plain way besides agent and check", added * 1000, "ms")
    report.ratio(f"{at_once} at once: last start", [one.last for one in mine], [one.last for one in plain], aim=1.0)
    report.ratio(
        f"{at_once} at once: first start",
        [one.first for one in mine],
        [one.first for one in plain],
        aim=1.0,
        extra=0.08,
    )
    landed = statistics.median(one.landed for one in mine)
    report.value(f"{at_once} at once: all landed, after the last agent's end", landed, "s", aim=2.0)


def _agent(name: str, seconds: float = 2.0) -> str:
    return f"date +%s.%N > started-{name}; sleep {seconds:g}; git add -A; git commit -qm {name}"


def _ours(project: Project, number: int, group: CpuGroup, beat: Pace, at_once: int) -> _Round:
    ground.until_warm(project, at_once)
    group.until_quiet()
    before, at, began = group.seconds(), beat.beats(), time.time()
    agents = [_agent(f"{number}-{n}") for n in range(at_once)]
    ids = project.dispatch_all([new(f"one of thirty {number}-{n}", agent) for n, agent in enumerate(agents)])
    ended = project.until_settled(*ids, patience=300)
    group.until_quiet()
    used = (group.seconds() - before) / at_once * beat.usual() / beat.since(at)
    states = [line.state for line in ended.tickets]
    assert states == ["done"] * at_once, states
    starts = [float(project.landed(f"started-{number}-{n}") or "nan") - began for n in range(at_once)]
    last = max(project.ticket(ticket).runs[-1].ended_at or 0.0 for ticket in ids)
    landed = max(line.moved_at for line in ended.tickets) - last
    return _Round(first=min(starts), last=max(starts), cpu=used, landed=landed)


def _plain(repository: Repository, number: int, group: CpuGroup, beat: Pace, at_once: int) -> _Round:
    """`git worktree add`, one at a time as git wants it, then the agent and the check; all of them in parallel."""
    lock = repository.root.parent / "plain.lock"
    trees = [repository.root.parent / "plain" / f"{number}-{n}" for n in range(at_once)]

    def start(tree: Path) -> None:
        add = f"flock {lock} git worktree add --quiet -b plain-{tree.name} {tree}"
        work = f"cd {tree} && {_agent(tree.name)}; sh -c true"
        subprocess.run(group.run("sh", "-c", f"{add} && {work}"), cwd=repository.root, check=True)

    before, at, began = group.seconds(), beat.beats(), time.time()
    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(start, trees))
    used = (group.seconds() - before) / at_once * beat.usual() / beat.since(at)
    starts = [float((tree / f"started-{tree.name}").read_text()) - began for tree in trees]
    return _Round(first=min(starts), last=max(starts), cpu=used)
