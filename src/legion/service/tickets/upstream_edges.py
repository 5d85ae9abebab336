"""Edges between projects: new tickets come after the open ones of every project that theirs depends on."""

from __future__ import annotations

from dataclasses import replace

from legion.config.files.project import ProjectConfig
from legion.domain.errors import BadInput
from legion.domain.projects import Project
from legion.jobs.workspace import linked_projects
from legion.jobs.workspace.linked_projects import LinkedTickets
from legion.store.board import tickets
from legion.store.database.transactions import ReadTransaction
from legion.wire.dispatch import NewTicket

_MOST_NAMED = 10


def with_upstream(
    tx: ReadTransaction, record: Project, config: ProjectConfig, new: list[NewTicket]
) -> tuple[list[NewTicket], list[str]]:
    """The tickets with these edges, and notes about them. A ticket that comes after another of the request has none."""
    names = config.project.depends_on
    if not names:
        return new, []
    by_epic = {epic: linked_projects.open_tickets(tx, record, names, epic) for epic in {one.epic for one in new}}
    there = {linked.project for found in by_epic.values() for linked in found}
    notes = [
        f"legion.toml depends on {name}, which is no project here: run `legion init` in it."
        for name in names
        if name not in there
    ]
    notes += dict.fromkeys(_note(linked) for found in by_epic.values() for linked in found if linked.open)

    def placed(one: NewTicket) -> NewTicket:
        numbers = [ticket.id for linked in by_epic[one.epic] for ticket in linked.open]
        return one if one.after_keys else replace(one, after=[*one.after, *numbers])

    return [placed(one) for one in new], notes


def _note(linked: LinkedTickets) -> str:
    listed = ", ".join(str(ticket.id) for ticket in linked.open[:_MOST_NAMED])
    more = ", ..." if len(linked.open) > _MOST_NAMED else ""
    return f"Starts after the open tickets of {linked.project}: {listed}{more}."


def refuse_foreign(tx: ReadTransaction, project: Project, new: list[NewTicket]) -> None:
    """An agent knows the tickets of its own project only."""
    for ticket in tickets.get_many(tx, sorted({number for one in new for number in one.after})):
        if ticket.project != project.id:
            raise BadInput(
                f"Ticket {ticket.id} belongs to another project: an agent's ticket comes after tickets of its own."
            )
