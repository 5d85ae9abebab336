"""`legion status` and `legion status projects`: the daemon, its projects and tickets on one screen."""

from __future__ import annotations

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.row_command import row_command
from legion.cli.board.status_screen import screen_of
from legion.client.text.catalog import project_rows
from legion.client.text.tickets import about as about
from legion.client.text.tickets import dollars as dollars
from legion.wire.projects import ProjectRows


@command("status", example="legion status -w")
@click.argument("id", metavar="[ID]", default="")
@click.option("-w", "--watch", is_flag=True, help="Stay and redraw on every event; Ctrl-C ends it.")
@click.option("--all", "all_tickets", is_flag=True, help="Also show tickets that ended long ago.")
def status(call: CommandCall, id: str, watch: bool, all_tickets: bool) -> None:
    """Show you, your mail and your agents, then the project and its tickets; with ID one agent.

    In a folder that belongs to no project: the tickets of all projects.
    """
    if id:
        from legion.client.text.agents import page_rows

        page = call.legion().agent(id)
        call.show(page, page_rows)
        return
    if watch:
        from legion.cli.base.live import follow_status

        follow_status(call, all_tickets, screen_of)
        return
    now = call.legion().status(call.cwd, all_tickets)
    call.answer(now, lambda: screen_of(now, call.screen, everything=all_tickets))


projects = row_command("projects", ProjectRows.projects, "legion status projects", shows=project_rows)
