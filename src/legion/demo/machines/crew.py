"""The machines of the demo: worker processes with folders of their own, each behind a link that can be cut."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import legion
from legion.client.legion import Legion
from legion.demo.machines.link import BadLink
from legion.wire.machines import InviteMachine

LABEL = "demo"
"""Every machine has it, and the head has not."""
_GRACE = 10.0


@dataclass(frozen=True, kw_only=True)
class DemoMachine:
    name: str
    link: BadLink
    process: subprocess.Popen[bytes]


@contextmanager
def machines(head: Legion, folder: Path, names: Sequence[str], *, slots: int) -> Iterator[dict[str, DemoMachine]]:
    """Invited and started. Workers, links and what the workers started end with the block."""
    made: dict[str, DemoMachine] = {}
    with ExitStack() as stack:
        try:
            for name in names:
                wanted = InviteMachine(name=name, labels=[LABEL], slots=slots, host="127.0.0.1")
                address, _, secret = head.invite_machine(wanted).line.partition("/#")
                link = stack.enter_context(BadLink(int(address.rpartition(":")[2])))
                line = f"https://127.0.0.1:{link.port}/#{secret}"
                made[name] = DemoMachine(name=name, link=link, process=_worker(folder / name, line))
            yield made
        finally:
            for machine in made.values():
                machine.link.heal()
            for machine in made.values():
                _end(machine.process)


def _worker(folder: Path, line: str) -> subprocess.Popen[bytes]:
    folder.mkdir()
    (folder / "config.toml").write_text("# The settings of this machine.\n")
    env = {name: value for name, value in os.environ.items() if not name.startswith("LEGION_")}
    env |= {"LEGION_CONFIG": str(folder / "config.toml"), "PYTHONPATH": str(Path(legion.__file__).parents[1])}
    argv = [sys.executable, "-P", "-m", "legion", "--data-dir", str(folder / "data"), "join", line]
    with (folder / "worker.log").open("ab") as log:
        return subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(_GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
