"""`legion machine`: the group of commands about one machine."""

from __future__ import annotations

from legion.cli.base.command import group
from legion.cli.machines.invite import invite
from legion.cli.machines.listing import drain, log, machines, pause, remove, resume, update
from legion.cli.machines.manifest import manifest

machine = group(
    "machine",
    """Machines that work for this Legion: list, invite, pause, resume, drain, update, remove, log.

A machine dials in to this Legion, the head; nothing has to be reachable on the machine.
""",
    "legion machine invite desk --host 192.0.2.10\nlegion machine list\nlegion machine pause desk",
    machines,
    invite,
    pause,
    resume,
    drain,
    update,
    remove,
    log,
    manifest,
    alone=machines,
)
