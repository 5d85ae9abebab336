"""Lessons of a project: list them with their effect, and accept proposed ones."""

from __future__ import annotations

from legion.domain.agents.agent import ROOT
from legion.domain.leader.lessons import EndedTicket, effect
from legion.domain.memories import Memory
from legion.jobs.context import Context
from legion.service.leader.roles import own_project
from legion.store.board import memories, tickets
from legion.store.database.transactions import ReadTransaction
from legion.store.staff import agents
from legion.wire.lessons import AcceptLesson, LessonLine, Lessons

_MOST_ENDED = 2000
"""Ended tickets that an effect is measured on, the last ones."""


def listed(context: Context, caller: str, cwd: str | None) -> Lessons:
    project = own_project(context, caller, cwd or "")
    with context.store.read() as tx:
        found = memories.lessons(tx, project.id)
        ended = _ended(tx, project.id) if any(not one.proposed for one in found) else []
        return Lessons(lessons=[_line(tx, one, ended) for one in found])


def accept(context: Context, caller: str, lesson: int, wanted: AcceptLesson) -> Lessons:
    """Briefings of tickets that it fits carry it from now on."""
    project = own_project(context, caller, wanted.cwd)
    with context.store.write() as tx:
        accepted = memories.accept(tx, project.id, lesson, by=caller)
        return Lessons(lessons=[_line(tx, accepted, [])])


def _ended(tx: ReadTransaction, project: int) -> list[EndedTicket]:
    return [
        EndedTicket(id=one.id, files=one.spec.files, labels=one.spec.labels, attempts=one.attempt)
        for one in tickets.recent(tx, project, _MOST_ENDED)
        if one.attempt > 0
    ]


def _line(tx: ReadTransaction, one: Memory, ended: list[EndedTicket]) -> LessonLine:
    seen = effect(one, memories.carriers(tx, one.id), ended)
    by = "you" if one.accepted_by == ROOT else agents.names(tx).get(one.accepted_by, one.accepted_by)
    return LessonLine(
        id=one.id,
        text=one.text,
        ticket=one.ticket,
        files=list(one.files),
        labels=list(one.labels),
        proposed=one.proposed,
        accepted_by=by,
        created_at=one.created_at,
        carried=seen.carried,
        attempts=seen.attempts,
        without=seen.without,
        attempts_without=seen.attempts_without,
    )
