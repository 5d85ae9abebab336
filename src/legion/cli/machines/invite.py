"""`legion machine join`: become a machine of another Legion."""

from __future__ import annotations

import importlib
import os
import signal
from pathlib import Path

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.output import sanitize
from legion.cli.base.shapes import JoinedMachine
from legion.system.paths import default_data_dir
from legion.system.supervisors import (
    REMOVED_EXIT,
    ServiceFile,
    ServiceHost,
    SupervisedProgram,
    legion_program,
    service_file,
    write_service,
)
from legion.wire.errors import BadInput


def service_of(machine: str, data_dir: Path, at: ServiceHost) -> ServiceFile:
    """The service of a machine that has joined. Raises BadInput where neither systemd nor launchd runs."""
    argv = (*legion_program(), "--data-dir", str(data_dir), "join")
    log = str(data_dir / "machine.log")
    found = service_file(SupervisedProgram(name=machine, argv=argv, path=at.path, log=log), at)
    if found is None:
        raise BadInput(
            "Neither systemd nor launchd runs here, so --service has nothing to write: leave it out and keep "
            "`legion machine join` running by a supervisor of yours, or see `legion machine manifest compose`."
        )
    return found


_JOIN = """\
legion machine join 'https://192.0.2.10:6690/#CODE/FINGERPRINT'
legion machine join 'https://192.0.2.10:6690/#CODE/FINGERPRINT' --service
legion machine join"""


@command("join", example=_JOIN)
@click.argument("line", metavar="[LINE]", default="", envvar="LEGION_JOIN")
@click.option("--service", is_flag=True, help="Join, and write a systemd user unit or a launchd agent that runs it.")
@click.option("--stay", is_flag=True, help="Wait instead of ending once removed, where a supervisor restarts all.")
def join(call: CommandCall, line: str, service: bool, stay: bool) -> int:
    """Make this host a machine of the head that printed LINE, and work for it in the foreground; Ctrl-C ends that.

    Without LINE it continues as the machine that it is already; LEGION_JOIN may hold the line, too. Runs outlive this
    process: start it again and it finds them. Its files are in a folder of their own, or in that of --data-dir. It
    ends with 4 where the head has removed this machine. With --stay it then waits, until a signal ends it.
    """
    folder = machine_folder(call.data_dir)
    # Imported by name: the command line must not depend on the code of a machine, which is slow to import.
    if not service:
        code = importlib.import_module("legion.machine.__main__").start(folder, line)
        if stay and code == REMOVED_EXIT:
            call.say("This machine was removed, so it does nothing any more. Remove its service or container.")
            signal.pause()
        return code if isinstance(code, int) else 0
    host = ServiceHost.here()
    # A host without a supervisor is refused before the line is used up.
    service_of("this", folder, host)
    name = str(importlib.import_module("legion.machine.__main__").member(folder, line).name)
    made = service_of(name, folder, host)
    write_service(made)
    answer = JoinedMachine(name=name, file=str(made.file), commands=list(made.commands))
    call.answer(answer, lambda: [f"{sanitize(name)} has joined. Written: {made.file}", "Now run:", *made.commands])
    return 0


def machine_folder(data_dir: Path) -> Path:
    """A host may have a daemon of its own, so a machine has its own folder where none is named."""
    usual = default_data_dir()
    if data_dir != usual or os.environ.get("LEGION_DATA_DIR"):
        return data_dir
    return usual.with_name("legion-machine")
