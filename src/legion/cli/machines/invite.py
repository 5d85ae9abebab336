"""`legion machine invite` and `legion machine join`: let another host in, and become a machine there."""

from __future__ import annotations

import importlib
import os
import shlex
import signal
from pathlib import Path

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.output import clock, sanitize
from legion.cli.base.shapes import JoinedMachine
from legion.cli.machines.services import ServiceHost, service_file, write
from legion.cli.machines.supervisors import REMOVED_EXIT
from legion.system.paths import default_data_dir
from legion.wire.machines import InviteMachine

_INVITE = """\
legion machine invite desk --host 192.0.2.10
legion machine invite gpu-1 --labels gpu,cuda --slots 8 --quiet-hours 22:00-07:00"""
_JOIN = """\
legion machine join 'https://192.0.2.10:6690/#CODE/FINGERPRINT'
legion machine join 'https://192.0.2.10:6690/#CODE/FINGERPRINT' --service
legion machine join"""


@command("invite", example=_INVITE)
@click.argument("name", metavar="NAME")
@click.option("--labels", metavar="A,B", default="", help="What `--on` finds it by, such as gpu,macos.")
@click.option("--slots", type=click.IntRange(1, 256), default=4, show_default=True, help="How many runs at once.")
@click.option("--quiet-hours", metavar="HOURS", default="", help="No new starts there then, such as 22:00-07:00.")
@click.option("--host", metavar="ADDRESS", default="", help="This head's address, as the other host reaches it.")
@click.option("--port", type=click.IntRange(1, 65535), metavar="N", help="Another port than 6690.")
def invite(
    call: CommandCall, name: str, labels: str, slots: int, quiet_hours: str, host: str, port: int | None
) -> None:
    """Let another host in as the machine NAME: prints the command to run there. It works once, for 15 minutes.

    --host is needed once: from then on this head serves that address to its machines, with TLS, and remembers it.
    """
    wanted = InviteMachine(
        name=name,
        labels=[one.strip() for one in labels.split(",") if one.strip()],
        slots=slots,
        quiet_hours=quiet_hours,
        host=host,
        port=port or 0,
    )
    made = call.legion().invite_machine(wanted)
    call.answer(made, lambda: [f"legion machine join {shlex.quote(sanitize(made.line))}"])
    call.say(f"Run this on {sanitize(made.name)} before {clock(made.ends_at)}; --service there keeps it running.")


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
    service_file("this", folder, host)
    name = str(importlib.import_module("legion.machine.__main__").member(folder, line).name)
    made = service_file(name, folder, host)
    write(made)
    answer = JoinedMachine(name=name, file=str(made.file), commands=list(made.commands))
    call.answer(answer, lambda: [f"{sanitize(name)} has joined. Written: {made.file}", "Now run:", *made.commands])
    return 0


def machine_folder(data_dir: Path) -> Path:
    """A host may have a daemon of its own, so a machine has its own folder where none is named."""
    usual = default_data_dir()
    if data_dir != usual or os.environ.get("LEGION_DATA_DIR"):
        return data_dir
    return usual.with_name("legion-machine")
