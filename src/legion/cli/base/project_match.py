"""Compares the project of a ticket, plan or question with that of the folder: numbers count over all projects."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from legion.cli.base.output import sanitize
from legion.wire.errors import NotAllowed

if TYPE_CHECKING:
    from legion.cli.base.command import CommandCall
    from legion.client.legion import Legion

NUMBERED = ("/v1/tickets/{id}/", "/v1/plans/{id}/", "/v1/questions/{id}/")
"""Paths of requests that act on what they name by a number alone."""


def confirm_project(call: CommandCall, path: str, number: int) -> None:
    """What is of another project is asked about, by project and title; without a terminal it is refused."""
    legion = call.legion()
    if legion.address.session:
        # An agent: its token says what it may do.
        return
    status = legion.status(call.cwd)
    here = status.project
    if here is None or len(status.projects) < 2:
        return
    name, project, title = _find(legion, path, number)
    if project in (here.name, ""):
        return
    root = next((one.root for one in status.projects if one.name == project), "")
    text = f"{name} ({sanitize(title)}) is of project {sanitize(project)}, not {sanitize(here.name)}."
    if not sys.stdin.isatty():
        raise NotAllowed(f"{text} Run it in {root}.")
    if not click.confirm(f"{text} Go on?", err=True):
        raise NotAllowed(f"Nothing was done to {name[0].lower()}{name[1:]}.")


def _find(legion: Legion, path: str, number: int) -> tuple[str, str, str]:
    """Its name, project and title. A question that no longer waits has none: the daemon says so."""
    if path.startswith("/v1/tickets/"):
        ticket = legion.ticket(number).ticket
        return f"Ticket {number}", ticket.project, ticket.title
    if path.startswith("/v1/plans/"):
        plan = legion.plan_page(number).plan
        return f"Plan {plan.id}", plan.project, plan.goal
    asked = next((one for one in legion.inbox().questions if one.id == number), None)
    return f"Question {number}", asked.project if asked else "", asked.words if asked else ""
