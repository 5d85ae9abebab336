"""Notes of a project: decisions, promises and threads of leaders, memories and lessons for agents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from legion.domain.agents.agent import ROOT
from legion.domain.errors import BadInput, NotFound, StateConflict
from legion.domain.leader.lessons import effect
from legion.domain.notes import (
    FOR_AGENTS,
    FOR_LEADERS,
    LONGEST,
    LONGEST_FOR_AGENTS,
    MOST,
    MOST_FOR_AGENTS,
    Note,
    NoteKind,
    fitting,
    is_for,
)
from legion.domain.projects import Project
from legion.domain.review.path_patterns import glob_fault
from legion.jobs.background.lesson_proposals import ended_tickets
from legion.jobs.board import Board
from legion.service.leader.chat import own_project
from legion.service.projects import registry
from legion.service.shared.fragments import shaped
from legion.service.shared.repeats import remembered, repeated
from legion.store.board import notes, tickets
from legion.store.database.transactions import ReadTransaction
from legion.store.staff import agents
from legion.wire.notes import AddNote, CloseNote, Lessons, Memories, NoteLine, Notes
from legion.wire.projects import Done
from legion.wire.ticket_fields import label_fault

_LONGEST_OUTCOME = 300


def listed(context: Board, caller: str, cwd: str | None, all: bool = False) -> Notes:
    project = own_project(context, caller, cwd or "")
    with context.store.read() as tx:
        return Notes(notes=_lines(tx, notes.for_leaders(tx, project.id, closed=all)))


def add(context: Board, caller: str, wanted: AddNote) -> Notes:
    project = own_project(context, caller, wanted.cwd)
    kind, text = _kind(wanted.kind), " ".join(wanted.text.split())
    if not text or len(text) > LONGEST:
        raise BadInput(f"A note has 1 to {LONGEST} characters. Put longer texts into a ticket or the repository.")
    with context.store.write() as tx:
        if (first := repeated(tx, caller, wanted.request, Notes)) is not None:
            return _from_record(first)
        _refuse_ticket(tx, project, wanted.ticket)
        if len(notes.for_leaders(tx, project.id)) >= MOST:
            raise StateConflict(f"{MOST} notes are open already. Close one: `legion note close N`.")
        made = notes.add(tx, project.id, kind, text, author=caller, ticket=wanted.ticket, pinned=wanted.pinned)
        answer = Notes(notes=_lines(tx, [made]))
        remembered(tx, caller, wanted.request, answer)
    return answer


def close(context: Board, caller: str, note: int, wanted: CloseNote) -> Notes:
    project = own_project(context, caller, wanted.cwd)
    outcome = " ".join(wanted.outcome.split())
    if len(outcome) > _LONGEST_OUTCOME:
        raise BadInput(f"An outcome has at most {_LONGEST_OUTCOME} characters.")
    with context.store.write() as tx:
        if (first := repeated(tx, caller, wanted.request, Notes)) is not None:
            return _from_record(first)
        if notes.get(tx, project.id, note).kind in FOR_AGENTS and caller != ROOT:
            raise NotFound(f"Note {note} is one for agents, which only a person closes.")
        closed = notes.close(tx, project.id, note, by=caller, outcome=outcome)
        answer = Notes(notes=_lines(tx, [closed]))
        remembered(tx, caller, wanted.request, answer)
    return answer


def remember(context: Board, wanted: AddNote) -> Memories:
    """A memory: what the agents of the project should know."""
    project = registry.find(context, wanted.cwd)
    text = " ".join(wanted.text.split())
    if not text or len(text) > LONGEST_FOR_AGENTS:
        raise BadInput(f"A memory has 1 to {LONGEST_FOR_AGENTS:,} characters. Put longer texts into the repository.")
    for option, names, fault_of in (("files", wanted.files, glob_fault), ("label", wanted.labels, label_fault)):
        for one in names:
            if fault := fault_of(one):
                raise BadInput(f"--{option} has {one[:40]!r}, which {fault}.")
    with context.store.write() as tx:
        _refuse_ticket(tx, project, wanted.ticket)
        if len(notes.for_agents(tx, project.id)) >= MOST_FOR_AGENTS:
            raise StateConflict(
                f"There are {MOST_FOR_AGENTS} memories already. Run `legion note forget N` for one of them."
            )
        given = {one: getattr(wanted, one) for one in ("ticket", "files", "labels", "pinned")}
        made = notes.add(tx, project.id, NoteKind.MEMORY, text, author=ROOT, **given)
        left_out = _left_out(notes.for_agents(tx, project.id))
        return Memories(memories=_lines(tx, [made]), left_out=left_out)


def memories(context: Board, cwd: str) -> Memories:
    project = registry.find(context, cwd)
    with context.store.read() as tx:
        known = [one for one in notes.for_agents(tx, project.id) if not one.proposed]
        return Memories(memories=_lines(tx, known), left_out=_left_out(known))


def forget(context: Board, note: int, wanted: CloseNote) -> Done:
    """Close a memory or a lesson: no briefing carries it any more."""
    project = registry.find(context, wanted.cwd)
    with context.store.write() as tx:
        if all(one.id != note for one in notes.for_agents(tx, project.id)):
            raise NotFound(f"There is no memory {note} in this project: see `legion note memories`.")
        gone = notes.close(tx, project.id, note, by=ROOT)
    return Done(message=f"Memory {note} is forgotten: {gone.text}")


def lessons(context: Board, caller: str, cwd: str | None) -> Lessons:
    project = own_project(context, caller, cwd or "")
    with context.store.read() as tx:
        return Lessons(lessons=_lines(tx, notes.lessons(tx, project.id)))


def accept(context: Board, caller: str, lesson: int, wanted: CloseNote) -> Lessons:
    """Briefings of tickets that it fits carry it from now on."""
    project = own_project(context, caller, wanted.cwd)
    with context.store.write() as tx:
        accepted = notes.accept(tx, project.id, lesson, by=caller)
        return Lessons(lessons=_lines(tx, [accepted]))


def _left_out(known: Iterable[Note]) -> list[int]:
    general = [one for one in known if is_for(one, (), ()) and not one.proposed]
    carried = fitting(general, (), ())
    return [one.id for one in general if one not in carried]


def _kind(word: str) -> NoteKind:
    try:
        kind = NoteKind(word.strip().lower())
    except ValueError:
        kind = NoteKind.MEMORY
    if kind not in FOR_LEADERS:
        names = ", ".join(kind.value for kind in NoteKind if kind in FOR_LEADERS)
        raise BadInput(f"There is no kind of note {word[:40]!r}: use one of {names}.") from None
    return kind


def _refuse_ticket(tx: ReadTransaction, project: Project, ticket: int | None) -> None:
    if ticket is not None and tickets.get(tx, ticket).project != project.id:
        raise BadInput(f"Ticket {ticket} belongs to another project.")


def _lines(tx: ReadTransaction, found: Sequence[Note]) -> list[NoteLine]:
    names = agents.names(tx)
    ended = ended_tickets(tx, found[0].project) if any(one.is_lesson and not one.proposed for one in found) else []

    def line(one: Note) -> NoteLine:
        seen = effect(one, notes.users(tx, one.id), ended) if one.is_lesson else None
        by = "you" if one.accepted_by == ROOT else names.get(one.accepted_by, one.accepted_by)
        return shaped(
            NoteLine,
            one,
            author="you" if one.author == ROOT else names.get(one.author, one.author),
            lesson=one.is_lesson,
            accepted_by=by,
            carried=seen.carried if seen else 0,
            attempts=seen.attempts if seen else None,
            without=seen.without if seen else 0,
            attempts_without=seen.attempts_without if seen else None,
        )

    return [line(one) for one in found]


def _from_record(first: dict[str, object]) -> Notes:
    lines = first["notes"]
    assert isinstance(lines, list), "as `remembered` stored it"
    return Notes(notes=[NoteLine(**line) for line in lines])
