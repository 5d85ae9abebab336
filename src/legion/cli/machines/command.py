"""`legion machine`: the group of commands about one machine."""

from __future__ import annotations

import shlex

import click

from legion.cli.base.command import CommandCall, group
from legion.cli.base.output import clock, sanitize
from legion.cli.base.row_command import row_command
from legion.cli.machines.manifest import manifest
from legion.client.text.machines import log_rows, rows
from legion.wire.machines import MachineInvitation, MachineRows

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
