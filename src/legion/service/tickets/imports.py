"""Creates tickets for work of another tool: each once, paused unless wanted otherwise, from its files where it has any.

Which ticket came from where is remembered with the request's key, so a second import changes nothing, and one that was
interrupted continues.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from legion.domain.errors import BadInput, LegionError, Retryable
from legion.domain.rules import Rule
from legion.domain.tickets.spec import StartPoint
from legion.domain.tickets.ticket import Park, ParkReason, Rewind, State, Unpark
from legion.git.person.adopted import AdoptedWork, adopt_branch, adopt_checkout
from legion.jobs.board import Board
from legion.jobs.trees import ProjectContext, Trees
from legion.service.projects import registry
from legion.service.tickets.dispatch import create
from legion.service.tickets.prepare import prepare
from legion.store.board import tickets
from legion.store.database.transactions import ReadTransaction, Transaction
from legion.store.work import idempotency
from legion.wire.dispatch import Dispatch, Dispatched, Imported, ImportedTicket, ImportTicket, ImportTickets

MOST = 2000
_LONGEST_ORIGIN = 500


@dataclass(frozen=True, kw_only=True)
class _Start:
    ground: StartPoint | None
    note: str


def import_tickets(context: Trees, wanted: ImportTickets) -> Imported:
    """All new tickets of the request, or none."""
    _refuse_faults(wanted)
    record = registry.find(context, wanted.cwd)
    with context.store.read() as tx:
        known = _known(tx, record.id, wanted)
    fresh = [one for one in wanted.tickets if one.origin not in known]
    _refuse_unknown(wanted, known)
    if wanted.dry_run:
        return Imported(tickets=[_line(one, known, {}) for one in wanted.tickets])
    project = context.project_of(record)
    starts = {one.origin: _start(project, one) for one in fresh if one.folder or one.branch}
    notes: list[str] = []
    if fresh:
        made = _create(context, record.id, wanted, fresh, known, starts)
        known |= {one.origin: number for one, number in zip(fresh, made.ids, strict=True)}
        notes = made.notes
    if wanted.start:
        _start_paused(context, [known[one.origin] for one in wanted.tickets], wanted.tool)
    new = {one.origin for one in fresh}
    lines = [replace(_line(one, known, starts), new=one.origin in new) for one in wanted.tickets]
    return Imported(tickets=lines, notes=notes)


def _refuse_faults(wanted: ImportTickets) -> None:
    if not wanted.tool or not wanted.tickets:
        raise BadInput("An import names its tool and at least one ticket.")
    if len(wanted.tickets) > MOST:
        raise BadInput(f"An import has at most {MOST:,} tickets; this one has {len(wanted.tickets):,}. Split the file.")
    origins = [one.origin for one in wanted.tickets]
    if len({*origins}) < len(origins) or not all(0 < len(one) <= _LONGEST_ORIGIN for one in origins):
        raise BadInput(f"Each imported ticket needs an origin of its own, of at most {_LONGEST_ORIGIN} characters.")


def _refuse_unknown(wanted: ImportTickets, known: Mapping[str, int]) -> None:
    there = {one.origin for one in wanted.tickets} | {*known}
    for one in wanted.tickets:
        if unknown := [other for other in one.after if other not in there]:
            raise BadInput(f"{one.origin!r} comes after {unknown[0]!r}, which is not part of the import.")


def _key(wanted: ImportTickets, origin: str) -> str:
    return "/".join(("import", wanted.tool, *filter(None, [wanted.source]), origin))


def _known(tx: ReadTransaction, project: int, wanted: ImportTickets) -> dict[str, int]:
    """Ticket numbers of what was imported before, also of those that were dropped since."""
    origins = dict.fromkeys(name for one in wanted.tickets for name in (one.origin, *one.after))
    found = {origin: idempotency.recall(tx, project, _key(wanted, origin)) for origin in origins}
    return {origin: int(answer["ticket"]) for origin, answer in found.items() if answer is not None}


def _line(one: ImportTicket, known: Mapping[str, int], starts: Mapping[str, _Start]) -> ImportedTicket:
    number = known.get(one.origin)
    note = starts[one.origin].note if one.origin in starts else ""
    return ImportedTicket(origin=one.origin, id=number, new=number is None, note=note)


def _start(project: ProjectContext, one: ImportTicket) -> _Start:
    """The files that a ticket starts from. Without them it starts from the target, and says why."""
    common_dir, hub, target = Path(project.record.common_dir), project.hub, project.target
    try:
        if one.folder:
            work = adopt_checkout(hub, common_dir, Path(one.folder), target=target)
        else:
            work = adopt_branch(hub, common_dir, one.branch, target=target)
    except LegionError as trouble:
        return _Start(ground=None, note=f"starts without its work: {trouble.message}")
    if work.tree == hub.tree_of(target):
        return _Start(ground=None, note="had changed nothing that the target lacks")
    return _Start(ground=StartPoint(base=work.base, tree=work.tree), note=_what(work, one))


def _what(work: AdoptedWork, one: ImportTicket) -> str:
    rest = ", uncommitted files included" if work.uncommitted else ""
    return f"starts from the work in {one.folder or f'branch {one.branch}'}{rest}"


def _create(
    context: Trees,
    project: int,
    wanted: ImportTickets,
    fresh: list[ImportTicket],
    known: Mapping[str, int],
    starts: Mapping[str, _Start],
) -> Dispatched:
    keys = {one.origin: f"i{position}" for position, one in enumerate(fresh)}
    with context.store.read() as tx:
        there = tickets.states_of(tx, list(known.values()))
    new = [
        replace(
            one.ticket,
            key=keys[one.origin],
            after=[known[other] for other in one.after if other in known and known[other] in there],
            after_keys=[keys[other] for other in one.after if other in keys],
        )
        for one in fresh
    ]

    prepared = prepare(context, Dispatch(cwd=wanted.cwd, tickets=new))
    with context.store.write() as tx:
        made = create(tx, prepared).answer
        for one, number in zip(fresh, made.ids, strict=True):
            _record(tx, project, wanted, one, number, starts.get(one.origin))
    return made


def _record(
    tx: Transaction, project: int, wanted: ImportTickets, one: ImportTicket, number: int, start: _Start | None
) -> None:
    key = _key(wanted, one.origin)
    if idempotency.recall(tx, project, key) is not None:
        raise Retryable("Another import of the same source runs now. Try again in a moment.")
    idempotency.remember(tx, project, key, {"ticket": number})
    if start is not None and start.ground is not None and not one.ticket.checkpoint:
        tickets.move(tx, number, Rewind(start.ground, "", _BRIEFING))
    if not wanted.start:
        tickets.move(tx, number, Park(ParkReason.PAUSED, _detail(wanted.tool)))


_BRIEFING = (
    "The worktree already holds work on this ticket, which another tool made. Read it with `git status` and `git diff` "
    "first, keep what is right, and continue from there."
)


def _detail(tool: str) -> str:
    return f"imported from {tool}"


def _start_paused(context: Board, numbers: list[int], tool: str) -> None:
    """Start those that are still as the import left them."""
    with context.store.write() as tx:
        for ticket in tickets.get_many(tx, tickets.states_of(tx, numbers)):
            if ticket.state is State.PARKED and ticket.parked and ticket.parked.detail == _detail(tool):
                tickets.move(tx, ticket.id, Unpark(), rule=Rule.PERSON)
