"""`legion machine`: the group of commands about one machine."""

from __future__ import annotations

from legion.cli.base.command import group
from legion.cli.machines.manifest import manifest

machine = group(
    "machine",
    """Machines that work for this Legion: invite, pause, resume, drain, update, remove.

A machine dials in to this Legion, the head; nothing has to be reachable on the machine.
""",
    "legion machine manifest systemd",
    manifest,
)
