"""`legion agents` and `legion tell all`: standing agents, and messages as text."""

from __future__ import annotations

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.row_command import row_command
from legion.client.text.agents import rows
from legion.wire.mail import MailRows


@command("agents", example="legion agents --tree")
@click.option("--tree", "as_tree", is_flag=True, help="As a tree: which agent reports to which.")
@click.option("--all", "with_fired", is_flag=True, help="Also agents that were fired.")
def agents(call: CommandCall, as_tree: bool, with_fired: bool) -> None:
    """List standing agents: what each is doing, and what waits for it."""
    found = call.legion().agents(with_fired)
    call.show(found, lambda found, width: rows(found, width, "`legion agents hire TASK`", tree=as_tree))


broadcast = row_command("broadcast", MailRows.broadcast, "legion tell all 'The release is on Friday.'")
