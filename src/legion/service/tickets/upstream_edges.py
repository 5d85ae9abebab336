"""Edges between projects: new tickets come after the open ones of every project that theirs depends on."""

from __future__ import annotations

from dataclasses import replace

from legion.config.files.project import ProjectConfig
from legion.domain.errors import BadInput
from legion.domain.projects import Project
from legion.jobs.workspace import linked_projects
from legion.store.board import tickets
from legion.store.database.transactions import ReadTransaction
from legion.wire.tickets import NewTicket

_MOST_NAMED = 10


def with_upstream(
    tx: ReadTransaction, record: Project, config: ProjectConfig, new: list[NewTicket]
) -> tuple[list[NewTicket], list[str]]:
    """The tickets with these edges, and notes about them. A ticket that comes after another of the request has none."""
    names = config.project.depends_on
    if not names:
        return new, []
    linked = linked_projects.open_tickets(tx, record, names)
    missing = [name for name in names if name not in {one.project for one in linked}]
    notes = [f"legion.toml depends on {name}, which is no project here: run `legion init` in it." for name in missing]
    for one in linked:
        if one.open:
            listed = ", ".join(str(ticket.id) for ticket in one.open[:_MOST_NAMED])
            more = ", ..." if len(one.open) > _MOST_NAMED else ""
            notes.append(f"Starts after the open tickets of {one.project}: {listed}{more}.")
    numbers = [ticket.id for one in linked for ticket in one.open]
    return [one if one.after_keys else replace(one, after=[*one.after, *numbers]) for one in new], notes


def refuse_foreign(tx: ReadTransaction, project: Project, new: list[NewTicket]) -> None:
    """An agent knows the tickets of its own project only."""
    for ticket in tickets.get_many(tx, sorted({number for one in new for number in one.after})):
        if ticket.project != project.id:
            raise BadInput(
                f"Ticket {ticket.id} belongs to another project: an agent's ticket comes after tickets of its own."
            )
