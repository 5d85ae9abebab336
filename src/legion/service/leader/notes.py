"""Notes of a project: add, close and list them, for the person or for a leader."""

from __future__ import annotations

from legion.domain.agents.agent import ROOT
from legion.domain.errors import BadInput, StateConflict
from legion.domain.leader.notes import LONGEST, MOST, Note, NoteKind
from legion.domain.projects import Project
from legion.jobs.context import Context
from legion.service.leader.roles import own_project
from legion.service.shared.repeats import remembered, repeated
from legion.store.board import notes, tickets
from legion.store.database.transactions import ReadTransaction
from legion.store.staff import agents
from legion.wire.notes import AddNote, CloseNote, NoteLine, Notes

_LONGEST_OUTCOME = 300


def listed(context: Context, caller: str, cwd: str | None, all: bool = False) -> Notes:
    project = own_project(context, caller, cwd or "")
    with context.store.read() as tx:
        return _shown(tx, notes.of_project(tx, project.id, closed=all))


def add(context: Context, caller: str, wanted: AddNote) -> Notes:
    project = own_project(context, caller, wanted.cwd)
    kind, text = _kind(wanted.kind), " ".join(wanted.text.split())
    if not text or len(text) > LONGEST:
        raise BadInput(f"A note has 1 to {LONGEST} characters. Put longer texts into a ticket or the repository.")
    with context.store.write() as tx:
        if (first := repeated(tx, caller, wanted.request, Notes)) is not None:
            return _from_record(first)
        _refuse_ticket(tx, project, wanted.ticket)
        if len(notes.of_project(tx, project.id)) >= MOST:
            raise StateConflict(f"{MOST} notes are open already. Close one: `legion note close N`.")
        made = notes.add(tx, project.id, kind, text, author=caller, ticket=wanted.ticket)
        answer = _shown(tx, [made])
        remembered(tx, caller, wanted.request, answer)
    return answer


def close(context: Context, caller: str, note: int, wanted: CloseNote) -> Notes:
    project = own_project(context, caller, wanted.cwd)
    outcome = " ".join(wanted.outcome.split())
    if len(outcome) > _LONGEST_OUTCOME:
        raise BadInput(f"An outcome has at most {_LONGEST_OUTCOME} characters.")
    with context.store.write() as tx:
        if (first := repeated(tx, caller, wanted.request, Notes)) is not None:
            return _from_record(first)
        answer = _shown(tx, [notes.close(tx, project.id, note, by=caller, outcome=outcome)])
        remembered(tx, caller, wanted.request, answer)
    return answer


def _kind(word: str) -> NoteKind:
    try:
        return NoteKind(word.strip().lower())
    except ValueError:
        names = ", ".join(kind.value for kind in NoteKind)
        raise BadInput(f"There is no kind of note {word[:40]!r}: use one of {names}.") from None


def _refuse_ticket(tx: ReadTransaction, project: Project, ticket: int | None) -> None:
    if ticket is not None and tickets.get(tx, ticket).project != project.id:
        raise BadInput(f"Ticket {ticket} belongs to another project.")


def _shown(tx: ReadTransaction, found: tuple[Note, ...] | list[Note]) -> Notes:
    names = agents.names(tx)
    return Notes(
        notes=[
            NoteLine(
                id=one.id,
                kind=one.kind.value,
                text=one.text,
                author="you" if one.author == ROOT else names.get(one.author, one.author),
                ticket=one.ticket,
                created_at=one.created_at,
                closed_at=one.closed_at,
                outcome=one.outcome,
            )
            for one in found
        ]
    )


def _from_record(first: dict[str, object]) -> Notes:
    lines = first["notes"]
    assert isinstance(lines, list), "as `remembered` stored it"
    return Notes(notes=[NoteLine(**line) for line in lines])
