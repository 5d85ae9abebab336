"""Repositories to measure on, the plain way to start work, and the command line as a person starts it."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bench.cpu import CpuGroup
from legion.wire.dispatch import Dispatch
from tests.support.legion import SOURCE, Project, Squad, new
from tests.support.repository import Repository

_TIME_IT = "date +%s.%N > started-at"


def repository(root: Path, files: int, config: str) -> Repository:
    """So many files of a few KB, fifty to a folder, in one commit."""
    made = Repository(root, config)
    line = "a line of a source file that somebody wrote one day\n"
    for number in range(files):
        file = root / path_of(number)
        file.parent.mkdir(exist_ok=True)
        file.write_text(f"# {number}\n" + line * (20 + number % 90))
    made.commit("files", {})
    return made


def path_of(number: int) -> str:
    """The file of this number in such a repository."""
    return f"part{number // 50:04d}/file{number:05d}.py"


def plain_start(repository: Repository, name: str) -> float:
    """`git worktree add` and exec: seconds until the program's first instruction."""
    tree = repository.root.parent / "plain" / name
    began = time.time()
    repository.git("worktree", "add", "--quiet", "-b", f"plain-{name}", str(tree))
    subprocess.run(["sh", "-c", _TIME_IT], cwd=tree, check=True)
    return float((tree / "started-at").read_text()) - began


def alone(repository: Repository, group: CpuGroup, agents: Sequence[str]) -> float:
    """CPU seconds of an agent and a check that does nothing, as a person would start them: no sandbox, no daemon."""
    tree = repository.root.parent / "alone"
    repository.git("worktree", "add", "--quiet", "--detach", str(tree))
    used = []
    for agent in agents:
        before = group.seconds()
        subprocess.run(group.run("sh", "-c", f"{agent}; sh -c true"), cwd=tree, check=True)
        used.append(group.seconds() - before)
    # A few that another program disturbed would count for more than all the others.
    return statistics.median(used)


def legion_start(project: Project, title: str) -> float:
    """`legion dispatch` on the command line: seconds until the agent's first instruction."""
    began = time.time()
    said = cli(
        project.squad,
        project.repository.root,
        "dispatch",
        "-t",
        title,
        "--command",
        _TIME_IT,
        "--max-attempts",
        "1",
        "x",
    )
    ticket = int(said.split("Ticket ID: ")[1].split()[0])
    project.until(ticket, "done")
    return started(project, ticket) - began


def request_start(project: Project, title: str) -> float:
    """The same by the daemon's interface, as a program that is running already asks."""
    client = project.squad.client
    wanted = Dispatch(cwd=project.cwd, tickets=[new(title, _TIME_IT, max_attempts=1)])
    began = time.time()
    (ticket,) = client.dispatch(wanted).ids
    project.until_settled(ticket)
    return started(project, ticket) - began


def started(project: Project, ticket: int) -> float:
    """When the agent of a landed ticket ran its first instruction, by what it wrote."""
    page = project.ticket(ticket)
    words = ["git", f"--git-dir={project.hub}", "show", f"{page.change}:started-at"]
    return float(subprocess.run(words, capture_output=True, text=True, check=True).stdout)


def cli(squad: Squad, cwd: Path, *words: str) -> str:
    env = {
        **os.environ,
        "PYTHONPATH": str(SOURCE),
        "LEGION_DATA_DIR": str(squad.data.root),
        "LEGION_CONFIG": str(squad.settings),
    }
    done = subprocess.run(
        [sys.executable, "-m", "legion", *words], cwd=cwd, env=env, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"legion {' '.join(words)}: {done.stderr}")
    return done.stdout


def until_warm(project: Project, trees: int, patience: float = 600.0) -> None:
    """Wait until the pool holds this many trees at the target."""
    deadline = time.monotonic() + patience
    while len(list((project.worktrees / ".pool").iterdir())) < trees:
        if time.monotonic() > deadline:
            raise RuntimeError(f"the pool did not fill:\n{project.squad.log[-2000:]}")
        time.sleep(0.05)
