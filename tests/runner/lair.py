"""Sets up a host with things worth attacking, has the hostile agent try everything, and judges.

    lair.py FOLDER sandboxed|bare [ATTEMPT...]      prints JSON: attempt -> [harm done, why not]

A script, because it runs as root and as an ordinary user; it needs no library but Legion's runner room.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

from legion.drivers.registry import briefed
from legion.runner import launch
from legion.runner.launch import EndedRun, Launcher
from legion.runner.sandbox import Sandbox
from legion.runner.spec import RunSpec, write_spec
from legion.system import kernel
from tests.runner.hostile import ATTEMPTS, FAILED, WORKED

ALONE = ("kill_a_host_process", "kill_everybody", "trace_a_host_process", "rewrite_its_briefing", "outlive_its_run")
"""Each in a run of its own: they are after their victim, their own run or its processes. One run tries all others."""


class Host:
    """The host's treasures, all owned by whoever runs this."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = self.file("home/letters", "private").parent
        self.token = self.file("data/token", "secret")
        self.ssh_key = self.file("home/.ssh/id_ed25519", "secret")
        self.other_worktree = self.file("worktrees/2/code.py", "theirs")
        self.readable = self.file("readable/tool", "tool").parent
        self.worktree = self.file("worktrees/1/code.py", "ours").parent
        self.socket = root / "host.sock"
        self.abstract = f"legion-hostile-{os.getpid()}"
        self.listeners = [self.listen(str(self.socket)), self.listen("\0" + self.abstract)]

    def file(self, name: str, content: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        return path

    def listen(self, address: str) -> socket.socket:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(address)
        listener.listen(64)
        return listener


def living_with(marker: str) -> list[int]:
    """Processes that have the marker on their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if marker.encode() in words:
                found.append(int(entry.name))
    return found


class Victim:
    """A process of the host that answers as long as it lives."""

    def __init__(self) -> None:
        env = {"VICTIM": "secret", "PATH": os.environ["PATH"]}
        self._process = subprocess.Popen(["cat"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self.pid = self._process.pid

    def lives(self) -> bool:
        """A process with a pending SIGKILL answers no more, even before it is gone."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(b"?\n")
        except BrokenPipeError:
            return False
        return self._process.stdout.readline() == b"?\n"

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


def attempt(names: list[str], host: Host, launcher: Launcher, *, sandboxed: bool) -> dict[str, tuple[bool, str]]:
    victim = Victim()
    try:
        return judge(names, host, launcher, victim, sandboxed=sandboxed)
    finally:
        victim.close()


def judge(
    names: list[str], host: Host, launcher: Launcher, victim: Victim, *, sandboxed: bool
) -> dict[str, tuple[bool, str]]:
    run = names[0]
    run_dir = host.root / "data/runs" / run
    briefing = host.file(f"data/briefings/{run}", "do good work")
    marker = f"{host.abstract}-{run}"
    facts: dict[str, Any] = {
        **{key: str(value) for key, value in vars(host).items() if isinstance(value, Path | str)},
        "victim": victim.pid,
        "control": str(run_dir / "control.sock"),
        "briefing": str(briefing),
        "marker": marker,
    }
    python, code = Path(sys.base_prefix), Path(__file__).parent
    sandbox = Sandbox(
        home=host.home,
        writable=(host.worktree,),
        readable=(host.readable, briefing, python, code),
        filtered=True,
        walled=bool(kernel.file_rights()),
    )
    program = briefed(
        [str(Path(sys.executable).resolve()), str(code / "hostile.py"), json.dumps(facts), *names],
        cwd=host.worktree,
        env={"PATH": os.environ["PATH"], "HOME": str(host.home)},
        briefing=briefing,
    )
    write_spec(run_dir, RunSpec(run=run, program=program, sandbox=sandbox if sandboxed else None, timeout=30))
    launcher.start(run_dir)
    state = launch.wait(run_dir)
    assert isinstance(state, EndedRun), state
    said = {}
    for line in (run_dir / "output.log").read_text().splitlines():
        name, result, why = line.split(maxsplit=2)
        said[name] = (int(result), why)
    # An agent that never ran proves nothing.
    assert (state.result.exit_code, list(said)) == (0, names), (state.result, said)
    assert {result for result, _ in said.values()} <= {WORKED, FAILED}, said
    survivors = living_with(marker)
    harm = {
        "kill_a_host_process": not victim.lives(),
        "kill_everybody": not victim.lives(),
        "write_beside_its_worktree": (host.worktree.parent / "planted").exists(),
        "rewrite_its_briefing": briefing.read_text() != "do good work",
        "outlive_its_run": bool(survivors),
    }
    for pid in survivors:
        os.kill(pid, signal.SIGKILL)
    return {name: (harm.get(name, result == WORKED), why) for name, (result, why) in said.items()}


def main(root: Path, *, sandboxed: bool, only: list[str]) -> None:
    host, launcher = Host(root), Launcher()
    wanted = [name for name in ATTEMPTS if not only or name in only]
    runs = [[name for name in wanted if name not in ALONE], *([name] for name in wanted if name in ALONE)]
    judged: dict[str, tuple[bool, str]] = {}
    for names in runs:
        judged |= attempt(names, host, launcher, sandboxed=sandboxed)
    launcher.close()
    print(json.dumps(judged))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sandboxed=sys.argv[2] == "sandboxed", only=sys.argv[3:])
