"""Opens a tree with changes that have not landed, for a person to try. No agent uses it, and nothing of it lands."""

from __future__ import annotations

from collections.abc import Iterable

from legion.domain.errors import BadInput, LegionError, StateConflict
from legion.domain.tickets.ticket import State, Ticket
from legion.git.merge.candidates import MergeConflict
from legion.jobs.board import Board
from legion.jobs.checks.candidates import candidate
from legion.jobs.context import Context
from legion.jobs.landing.queue import waiting_entries
from legion.jobs.trees import ProjectContext, Trees
from legion.jobs.workspace import setup
from legion.service.projects import registry
from legion.store.board import tickets
from legion.wire.board import TriedChanges, TryChanges

PREFIX = "try-"
_ALL = "next"
_MOST = 200


def try_changes(context: Context, wanted: TryChanges) -> TriedChanges:
    """The target with the changes of these tickets, or with all that passed and have not landed.

    A tree of an earlier call goes to the trash, with everything that was done in it.
    """
    project = context.project_of(registry.find(context, wanted.cwd))
    if not registry.is_trusted(context, project.record):
        raise StateConflict("legion.toml is not trusted: read it and run `legion trust`.")
    chosen = _chosen(context, project, wanted.tickets)
    commit, merged, left_out = _merged(context, project, chosen, named=bool(wanted.tickets))
    name = PREFIX + ("-".join(map(str, wanted.tickets)) if wanted.tickets else _ALL)[:_MOST]
    project.hub.keep(name, commit)
    project.worktrees.discard(name)
    place = project.worktrees.acquire(name, commit, f"legion/{name}")
    notes = ""
    try:
        setup.ensure(context, project, place)
    except LegionError as trouble:
        notes = f" [setup] failed in it: {trouble.message}"
    return TriedChanges(
        path=str(place),
        commit=commit,
        target=project.target,
        tickets=merged,
        left_out={str(number): why for number, why in left_out.items()},
        message=_message(merged, str(place)) + notes,
    )


def _chosen(context: Trees, project: ProjectContext, numbers: Iterable[int]) -> tuple[Ticket, ...]:
    """In the order of the merge queue where the person named none."""
    asked = tuple(dict.fromkeys(numbers))
    with context.store.read() as tx:
        if asked:
            return tuple(_with_change(project, one) for one in tickets.get_many(tx, asked))
        live = tickets.live(tx, project=project.id)
        queued = [one.ticket for one in waiting_entries(context, tx, project.id, live)]
        aside = [one.id for one in live if one.parked is not None and one.parked.back_to is State.LANDING]
        return tickets.get_many(tx, [*queued, *aside])


def _with_change(project: ProjectContext, ticket: Ticket) -> Ticket:
    if ticket.project != project.id:
        raise BadInput(f"Ticket {ticket.id} belongs to another project: run it in that project's folder.")
    if ticket.change is None:
        raise StateConflict(
            f"Ticket {ticket.id} is {ticket.state.value} and has proposed no change: `legion ticket {ticket.id}`."
        )
    return ticket


def _merged(
    context: Board, project: ProjectContext, chosen: Iterable[Ticket], *, named: bool
) -> tuple[str, list[int], dict[int, str]]:
    """The commit with all changes that can be merged one after the other. A conflict of a named one is refused."""
    commit, merged, left_out = project.target, list[int](), dict[int, str]()
    for ticket in chosen:
        if ticket.landed is not None:
            left_out[ticket.id] = "it has landed"
            continue
        built = candidate(context, project, commit, ticket)
        if not isinstance(built, MergeConflict):
            commit = built.commit
            merged.append(ticket.id)
            continue
        files = ", ".join(file.path for file in built.files[:3])
        left_out[ticket.id] = f"it conflicts in {files}"
        if named:
            others = f" with {', '.join(map(str, merged))}" if merged else " with the target"
            raise StateConflict(f"Ticket {ticket.id} conflicts{others} in {files}: leave one of them out.")
    return commit, merged, left_out


def _message(merged: list[int], place: str) -> str:
    if not merged:
        return f"No green change waits: {place} shows the target as it is."
    many = f"the change of ticket {merged[0]}" if len(merged) == 1 else f"the changes of tickets {_list(merged)}"
    return f"{place} holds the target with {many}. It is yours; the next try replaces it."


def _list(numbers: list[int]) -> str:
    return f"{', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"
