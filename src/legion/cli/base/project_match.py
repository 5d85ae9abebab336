"""Compares the project of a ticket with that of the folder: numbers count over all projects, so a slip hits another."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from legion.cli.base.output import sanitize
from legion.wire.errors import NotAllowed

if TYPE_CHECKING:
    from legion.cli.base.command import CommandCall


def confirm_project(call: CommandCall, ticket: int) -> None:
    """A ticket of another project is asked about, by project and title; without a terminal it is refused."""
    legion = call.legion()
    if legion.address.session:
        # An agent: its token says what it may do.
        return
    status = legion.status(call.cwd)
    here = status.project
    if here is None or len(status.projects) < 2:
        return
    found = legion.ticket(ticket).ticket
    if found.project == here.name:
        return
    root = next((one.root for one in status.projects if one.name == found.project), "")
    text = (
        f"Ticket {ticket} ({sanitize(found.title)}) is of project {sanitize(found.project)}, not {sanitize(here.name)}."
    )
    if not sys.stdin.isatty():
        raise NotAllowed(f"{text} Run it in {root}.")
    if not click.confirm(f"{text} Go on?", err=True):
        raise NotAllowed(f"Nothing was done to ticket {ticket}.")
