"""Memories of a project, which its agents should know: remember, list and forget them."""

from __future__ import annotations

from collections.abc import Iterable

from legion.domain.errors import BadInput, StateConflict
from legion.domain.memories import LONGEST, MOST, Memory, fitting, is_for
from legion.domain.review.path_patterns import glob_fault
from legion.jobs.context import Context
from legion.service.projects import registry
from legion.store.board import memories, tickets
from legion.wire.memories import Forget, Memories, MemoryLine, Remember
from legion.wire.projects import Done
from legion.wire.ticket_fields import label_fault


def remember(context: Context, wanted: Remember) -> Memories:
    project = registry.find(context, wanted.cwd)
    text = " ".join(wanted.text.split())
    if not text or len(text) > LONGEST:
        raise BadInput(f"A memory has 1 to {LONGEST:,} characters. Put longer texts into the repository.")
    for glob in wanted.files:
        if fault := glob_fault(glob):
            raise BadInput(f"--files has {glob[:40]!r}, which {fault}.")
    for label in wanted.labels:
        if fault := label_fault(label):
            raise BadInput(f"--label has {label[:40]!r}, which {fault}.")
    with context.store.write() as tx:
        if wanted.ticket is not None and tickets.get(tx, wanted.ticket).project != project.id:
            raise BadInput(f"Ticket {wanted.ticket} belongs to another project.")
        if len(memories.of_project(tx, project.id)) >= MOST:
            raise StateConflict(f"There are {MOST} memories already. Run `legion note forget N` for one of them.")
        made = memories.add(tx, project.id, text, files=wanted.files, labels=wanted.labels, ticket=wanted.ticket)
        left_out = _left_out(memories.of_project(tx, project.id))
    return Memories(memories=[_line(made)], left_out=left_out)


def listed(context: Context, cwd: str) -> Memories:
    project = registry.find(context, cwd)
    with context.store.read() as tx:
        known = [one for one in memories.of_project(tx, project.id) if not one.proposed]
        return Memories(memories=[_line(one) for one in known], left_out=_left_out(known))


def _left_out(known: Iterable[Memory]) -> list[int]:
    general = [one for one in known if is_for(one, (), ()) and not one.proposed]
    carried = fitting(general, (), ())
    return [one.id for one in general if one not in carried]


def forget(context: Context, memory: int, wanted: Forget) -> Done:
    project = registry.find(context, wanted.cwd)
    with context.store.write() as tx:
        gone = memories.forget(tx, project.id, memory)
    return Done(message=f"Memory {memory} is forgotten: {gone.text}")


def _line(one: Memory) -> MemoryLine:
    return MemoryLine(
        id=one.id,
        text=one.text,
        files=list(one.files),
        labels=list(one.labels),
        ticket=one.ticket,
        created_at=one.created_at,
        lesson=one.lesson,
    )
