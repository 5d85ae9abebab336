"""`legion machine`: the group of commands about one machine, and `machine join`, which makes a machine of this host."""

from __future__ import annotations

import importlib
import json
import os
import re
import shlex
import signal
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import click

from legion import __version__
from legion.cli.base.command import CommandCall, command, group
from legion.cli.base.output import clock, sanitize
from legion.cli.base.row_command import row_command
from legion.cli.base.shapes import JoinedMachine, MachineManifest
from legion.client.text.machines import log_rows, rows
from legion.system.paths import default_data_dir
from legion.system.supervisors import (
    REMOVED_EXIT,
    ServiceFile,
    ServiceHost,
    SupervisedProgram,
    launchd_plist,
    legion_program,
    service_file,
    systemd_unit,
    write_service,
)
from legion.wire.errors import BadInput
from legion.wire.machines import MachineInvitation, MachineRows

DATA = "/data"
GRACE_SECONDS = 90


@dataclass(frozen=True, kw_only=True)
class MachineImage:
    """A machine in a container."""

    name: str
    image: str
    version: str
    """Of Legion, to build the image."""


def compose_file(machine: MachineImage) -> str:
    """A file for `docker compose`; it builds the image, too."""
    return _template("compose.yaml").format(
        name=machine.name, image=_quoted(machine.image), version=machine.version, data=DATA, grace=GRACE_SECONDS
    )


def kubernetes_manifest(machine: MachineImage) -> str:
    """A Secret with the invitation and a StatefulSet of one pod: a machine is one identity with one folder."""
    return _template("kubernetes.yaml").format(
        name=f"legion-{machine.name}", image=_quoted(machine.image), data=DATA, grace=GRACE_SECONDS
    )


def _template(name: str) -> str:
    return files("legion.cli.machines").joinpath(name).read_text("utf-8")


def _quoted(text: str) -> str:
    """JSON's strings are YAML's."""
    return json.dumps(text)


KINDS = ("systemd", "launchd", "compose", "kubernetes")
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")


@command("manifest", example="legion machine manifest systemd\nlegion machine manifest kubernetes gpu-1 > gpu-1.yaml")
@click.argument("kind", metavar="KIND", type=click.Choice(KINDS))
@click.argument("name", metavar="[NAME]", default="machine")
@click.option(
    "--program", metavar="PATH", default=".local/bin/legion", help="legion, below the home folder (systemd, launchd)."
)
@click.option("--image", metavar="IMAGE", default="", help="The container's image (compose, kubernetes).")
def manifest(call: CommandCall, kind: str, name: str, program: str, image: str) -> None:
    """Print the file that runs the machine NAME: KIND is systemd, launchd, compose or kubernetes.

    It is for machines that are set up by other programs; by hand, `legion machine join LINE --service` is shorter.
    Each of the files takes the line of an invitation from LEGION_JOIN at its first start.
    """
    text = manifest_text(kind, _machine_name(name), program=program, image=image)
    call.answer(MachineManifest(kind=kind, name=name, text=text), lambda: [text.rstrip("\n")])


def manifest_text(kind: str, name: str, *, program: str, image: str = "") -> str:
    container = MachineImage(name=name, image=image or f"legion-machine:{__version__}", version=__version__)
    match kind:
        case "compose":
            return compose_file(container)
        case "kubernetes":
            return kubernetes_manifest(container)
        case _:
            service = SupervisedProgram(
                name=name, argv=(program, "join"), log=f"Library/Logs/legion-{name}.log", elsewhere=True
            )
            return launchd_plist(service) if kind == "launchd" else systemd_unit(service)


def _machine_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise BadInput(
            f"`{sanitize(name)[:60]}` is no name of a machine: use small letters, digits and `-`, at most 40 in all."
        )
    return name


_INVITE = """\
legion machine invite desk --host 192.0.2.10
legion machine invite gpu-1 --labels gpu,cuda --slots 8 --quiet-hours 22:00-07:00"""
_LOG = "legion machine log desk\nlegion machine log desk -n 200"
_REMOVE = "legion machine remove desk\nlegion machine remove stolen-laptop --yes"
_RUNS = click.IntRange(1, 1000)
_LAST = click.Option(["-n", "limit"], type=_RUNS, default=50, show_default=True, help="How many runs.")


def _line(made: MachineInvitation) -> list[str]:
    return [f"legion machine join {shlex.quote(made.line)}"]


def _say_until(call: CommandCall, made: MachineInvitation) -> None:
    call.say(f"Run this on {sanitize(made.name)} before {clock(made.ends_at)}; --service there keeps it running.")


_list = row_command("list", MachineRows.machines, "legion machine list\nlegion machine list --json", shows=rows)
machine = group(
    "machine",
    """Machines that work for this Legion: list, invite, pause, resume, drain, update, remove, log.

A machine dials in to this Legion, the head; nothing has to be reachable on the machine.
""",
    "legion machine invite desk --host 192.0.2.10\nlegion machine list\nlegion machine pause desk",
    _list,
    row_command("invite", MachineRows.invite_machine, _INVITE, says=_line, then=_say_until),
    row_command("pause", MachineRows.pause_machine, "legion machine pause desk"),
    row_command("resume", MachineRows.resume_machine, "legion machine resume desk"),
    row_command("drain", MachineRows.drain_machine, "legion machine drain desk"),
    row_command("update", MachineRows.update_machine, "legion machine update desk"),
    row_command("remove", MachineRows.remove_machine, _REMOVE),
    row_command("log", MachineRows.machine_log, _LOG, _LAST, shows=log_rows),
    manifest,
    alone=_list,
)


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
