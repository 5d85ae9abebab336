"""Tickets: their specs, their states, and the edges between them.

Lists (`live`, `recent`) leave out the four long texts; `get`, `get_many` and `move` bring everything.
No function here costs more because many tickets have ended, but `edges`, which is about all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from sqlalchemy import Select, bindparam, delete, func, insert, literal_column, select, update

from legion.domain.errors import NotFound, StateConflict
from legion.domain.events import EventKind
from legion.domain.questions import QuestionKind
from legion.domain.rules import Rule, rule_of
from legion.domain.tickets import ticket as rules
from legion.domain.tickets.evidence import Bound
from legion.domain.tickets.offers import may
from legion.domain.tickets.spec import TicketSpec
from legion.domain.tickets.ticket import (
    AskReview,
    Cause,
    Change,
    Fail,
    Park,
    Parked,
    ParkReason,
    Prove,
    State,
    Step,
    Stop,
    Submit,
    Ticket,
    TryAgain,
    Unpark,
    stored_name,
)
from legion.store.board import past_tickets, questions, verdicts
from legion.store.database import schema
from legion.store.database.fixed_query import FixedQuery, QueryByIds, Stored
from legion.store.database.prepared import inserting, new, updating
from legion.store.database.transactions import ReadTransaction, Transaction

_TABLE = schema.tickets.c
_TEXTS = schema.ticket_details.c
_LIVE = _TABLE.live == literal_column("1")
"""Spelt as in the partial index: a bound value would hide the index from the planner."""
_ENDED = _TABLE.live == literal_column("0")
_NOTED = _TABLE.reason != literal_column("''")
_ON_BOARD = _TABLE.dropped_at.is_(None)
_CARED_FOR = _TABLE.project.in_(select(schema.projects.c.id).where(schema.projects.c.removed_at.is_(None)))
"""Tickets of projects that were removed are history: no action is possible on them."""
_TEXT_COLUMNS = ("text", "context", "criteria", "plan")
"""Long texts, which are in a table of their own."""
_WHOLE: Select[Any] = (
    select(schema.tickets, *(_TEXTS[name] for name in _TEXT_COLUMNS))
    .select_from(schema.tickets.join(schema.ticket_details, _TEXTS.ticket == _TABLE.id))
    .where(_ON_BOARD)
)
_ALL_LIVE = select(schema.tickets).where(_LIVE).order_by(_TABLE.id)
_PATIENCE = 7 * 86_400.0
"""Seconds that a question about a ticket waits, which costs nothing as long as it does."""
_MOST_FEEDBACK = 2000
_SPEC_COLUMNS = tuple(field.name for field in fields(TicketSpec) if field.name not in _TEXT_COLUMNS)
"""Columns that are named like the fields of a spec."""
_MOVING_COLUMNS = tuple(
    field.name
    for field in fields(Ticket)
    if field.name not in ("id", "project", "created_at", "spec", "parked", "change")
)
"""Columns that are named like the fields of a ticket and that a step may change."""
_ABOUT_THE_CHANGE = (QuestionKind.CHANGE, QuestionKind.REVIEW, QuestionKind.GATE)


def create(
    tx: Transaction, project: int, spec: TicketSpec, *, rule: Rule | None = None, draft_because: str = ""
) -> Ticket:
    """Store the ticket and submit it. The tickets it comes after must exist. `rule`: why, if no caller asked.

    `draft_because`: it is stored as a draft, for this reason, and submitted later.
    """
    draft = Ticket(
        id=tx.next("ticket"), project=project, spec=spec, created_at=tx.now, moved_at=tx.now, reason=draft_because
    )
    ticket = draft if draft_because else rules.move(draft, Submit(), tx.now)
    texts = {"ticket": ticket.id} | {name: getattr(spec, name) for name in _TEXT_COLUMNS}
    tx.run(_INSERT, _spec_values(ticket) | _moving_values(ticket))
    tx.run(_INSERT_TEXTS, texts)
    if spec.after:
        tx.execute(insert(schema.edges), [{"ticket": ticket.id, "after": other} for other in set(spec.after)])
    data: dict[str, object] = {"title": spec.title, "after": list(spec.after), "state": ticket.state.value}
    if rule is not None:
        data["rule"] = rule.value
    tx.record(EventKind.TICKET_CREATED, project=project, ticket=ticket.id, data=data)
    return get(tx, ticket.id)


def mirror(tx: Transaction, ticket: Ticket) -> None:
    """A ticket of another store, under its number there. Repeating it changes nothing."""
    if tx.execute(select(schema.tickets.c.id).where(schema.tickets.c.id == ticket.id)).first() is not None:
        return
    texts = {"ticket": ticket.id} | {name: getattr(ticket.spec, name) for name in _TEXT_COLUMNS}
    tx.run(_INSERT, _spec_values(ticket) | _moving_values(ticket))
    tx.run(_INSERT_TEXTS, texts)


def get(tx: ReadTransaction, ticket: int) -> Ticket:
    found = _GET.first(tx, wanted=ticket)
    if found is None:
        raise NotFound(f"There is no ticket {ticket}: see `legion status`.")
    return found


def get_many(tx: ReadTransaction, ids: Iterable[int]) -> tuple[Ticket, ...]:
    """In the order asked for. Raises NotFound for the first that is not there."""
    asked = tuple(ids)
    found = {ticket.id: ticket for ticket in _GET_MANY.all(tx, asked)}
    for ticket in asked:
        if ticket not in found:
            raise NotFound(f"There is no ticket {ticket}: see `legion status`.")
    return tuple(found[ticket] for ticket in asked)


def criteria(tx: ReadTransaction, ids: Iterable[int]) -> dict[int, str]:
    """Of tickets that were read without their long texts."""
    return dict(_CRITERIA.all(tx, ids))


def move(
    tx: Transaction, ticket: int, step: Step, *, expected_version: int | None = None, rule: Rule | None = None
) -> Ticket:
    """Take the step. Raises StateConflict where the rules forbid it or the version is no longer `expected_version`.

    `rule` says why, where the step alone does not.
    """
    before = get(tx, ticket)
    if expected_version is not None and before.version != expected_version:
        raise StateConflict(f"Ticket {ticket} has moved on to {before.state.value} meanwhile: look at it again.")
    moved = rules.move(before, step, tx.now)
    if tx.run(_MOVE, {"this": ticket, "seen": before.version, **new(_moving_values(moved))}) != 1:
        raise StateConflict(f"Ticket {ticket} was moved meanwhile: look at it again.")
    if before.ended or moved.ended:
        past_tickets.count(tx, before, -1)
        past_tickets.count(tx, moved, 1)
    data = {
        "step": stored_name(step),
        "from": before.state.value,
        "to": moved.state.value,
        "attempt": moved.attempt,
        "reason": moved.reason,
        "rule": (rule or rule_of(step)).value,
        **({"cause": step.cause.value} if isinstance(step, TryAgain | Fail) else {}),
    }
    tx.record(EventKind.TICKET_MOVED, project=moved.project, ticket=ticket, data=data)
    _ask_the_person(tx, before, moved, step)
    if isinstance(step, AskReview | Prove):
        for reader in step.readers:
            verdicts.ask(tx, moved, reader, binding=isinstance(step, AskReview), why=step.why)
    return moved


def _ask_the_person(tx: Transaction, before: Ticket, moved: Ticket, step: Step) -> None:
    """What only a person can settle becomes a question with the move that leads there, and goes with the next one."""
    if before.state in (State.PARKED, State.FAILED):
        # A ticket that is only woken returns to the question about its change, which is still open.
        still = _ABOUT_THE_CHANGE if isinstance(step, Unpark) else ()
        questions.withdraw(tx, ticket=moved.id, why="the ticket continued by other means", but=still)
    elif isinstance(step, Stop | Fail):
        # What a run asks ends with the run.
        for kind in _ABOUT_THE_CHANGE:
            questions.withdraw(tx, ticket=moved.id, kind=kind, why=f"the ticket is {moved.state.value}")
    elif isinstance(step, TryAgain):
        for kind in (QuestionKind.REVIEW, QuestionKind.GATE):
            questions.withdraw(tx, ticket=moved.id, kind=kind, why="the ticket was sent back")
    if isinstance(step, Park) and step.reason is ParkReason.BUDGET:
        kind, words = QuestionKind.BUDGET, "It has spent its budget and is not done. Shall it get as much again?"
    elif isinstance(step, Fail) and step.cause is Cause.CONFLICT and moved.spec.undoes is None:
        kind, words = (
            QuestionKind.CONFLICT,
            "Its agent could not solve the conflicts with what landed. Shall it try again?",
        )
    else:
        return
    questions.ask(
        tx,
        key=f"{kind.value}:{moved.id}:{moved.version}",
        kind=kind,
        project=moved.project,
        ticket=moved.id,
        words=words,
        facts={"why": moved.reason, **({"feedback": moved.feedback[:_MOST_FEEDBACK]} if moved.feedback else {})},
        deadline=tx.now + _PATIENCE,
    )


def live(tx: ReadTransaction, project: int | None = None) -> tuple[Ticket, ...]:
    """All that have neither ended nor been dropped, oldest first, without their long texts."""
    return _LIST_LIVE.all(tx) if project is None else _LIST_LIVE_OF.all(tx, wanted=project)


def how_many_live(tx: ReadTransaction, project: int) -> int:
    return _HOW_MANY_LIVE.all(tx, wanted=project)[0]


def recent(
    tx: ReadTransaction,
    project: int | None,
    limit: int,
    before: Ticket | None = None,
    state: State | None = None,
    since: float | None = None,
) -> tuple[Ticket, ...]:
    """Those that ended last, newest first, without their long texts; `before` is the last one of the page before.

    `state`: only those that ended so. `since`: at that moment or later.
    """
    found = select(schema.tickets).where(_ON_BOARD).order_by(_TABLE.moved_at.desc(), _TABLE.id.desc())
    found = found.where(_CARED_FOR if project is None else _TABLE.project == project)
    # One condition or the other, so that the index of states is used for states.
    found = found.where(_ENDED if state is None else _TABLE.state == state)
    if since is not None:
        found = found.where(_TABLE.moved_at >= since)
    if before is not None:
        # The first condition is what the index can use, the second what is meant.
        found = found.where(_TABLE.moved_at <= before.moved_at)
        found = found.where((_TABLE.moved_at < before.moved_at) | (_TABLE.id < before.id))
    return tuple(_ticket(row) for row in tx.execute(found.limit(limit)))


def states_of(tx: ReadTransaction, ids: Iterable[int]) -> dict[int, State]:
    """Dropped and unknown ones are left out."""
    return dict(_STATES.all(tx, ids))


def dropped(tx: ReadTransaction, ids: Iterable[int]) -> set[int]:
    """Those that were taken off the board."""
    return set(_DROPPED.all(tx, ids))


def counts(tx: ReadTransaction, project: int | None = None) -> dict[State, int]:
    """How many tickets are in each state; states without any are left out."""
    kept = select(schema.projects.c.id).where(schema.projects.c.removed_at.is_(None))
    mine = [project] if project is not None else [int(row.id) for row in tx.execute(kept)]
    counted: dict[State, int] = {}
    # Live ones are on the board. A condition that says so, or names a project, would walk an index over ended ones.
    for row in tx.execute(select(_TABLE.project, _TABLE.state).where(_LIVE)):
        if row.project in mine:
            counted[row.state] = counted.get(row.state, 0) + 1
    return counted | past_tickets.counts(tx, mine)


def edges(tx: ReadTransaction, project: int | None = None) -> dict[int, tuple[int, ...]]:
    """What every ticket of the board comes after, in one project or in all."""
    mine = _CARED_FOR if project is None else _TABLE.project == project
    found = select(_TABLE.id, _TABLE.after).where(mine, _ON_BOARD).order_by(_TABLE.id)
    return {row.id: tuple(row.after) for row in tx.execute(found)}


def dependants(tx: ReadTransaction, ticket: int) -> tuple[int, ...]:
    """The live tickets that come after this one."""
    later = schema.edges.c
    found = select(_TABLE.id).join(schema.edges, later.ticket == _TABLE.id).where(later.after == ticket, _LIVE)
    return tuple(tx.execute(found.order_by(_TABLE.id)).scalars())


def of_epic(tx: ReadTransaction, project: int, epic: str) -> tuple[Ticket, ...]:
    """Those on the board that are followed together, oldest first, with their long texts."""
    found = select(_TABLE.id).where(_TABLE.project == project, _TABLE.epic == epic, _ON_BOARD).order_by(_TABLE.id)
    return get_many(tx, tx.execute(found).scalars())


def undoing(tx: ReadTransaction, ticket: int) -> tuple[Ticket, ...]:
    """Those on the board that take this one back, oldest first, without their long texts."""
    found = select(schema.tickets).where(_TABLE.undoes == ticket, _ON_BOARD).order_by(_TABLE.id)
    return tuple(_ticket(row) for row in tx.execute(found))


def landed(tx: ReadTransaction, project: int, *, noted: bool) -> tuple[Ticket, ...]:
    """Those whose change has landed there, oldest first, without their long texts: with or without a note."""
    found = select(schema.tickets).where(_TABLE.project == project, _ENDED).order_by(_TABLE.id)
    found = found.where(_NOTED if noted else _TABLE.reason == "")
    rows = [row for row in tx.execute(found) if row.state is State.DONE and row.dropped_at is None]
    return tuple(_ticket(row) for row in rows if not row.checkpoint)


def with_proofs(tx: ReadTransaction, project: int) -> tuple[Ticket, ...]:
    """Landed ones whose proofs still run for later changes, the last first, without their long texts."""
    return tuple(one for one in _WITH_PROOFS.all(tx, wanted=project) if one.state is State.DONE and not one.retired)


def note(tx: Transaction, ticket: int, reason: str) -> None:
    """What a person has to know of a ticket that has ended. It is no move: nothing starts or ends by it."""
    tx.execute(update(schema.tickets).where(_TABLE.id == ticket).values(reason=reason))


def come_after(tx: Transaction, ticket: int, other: int) -> None:
    """One more that must have landed before. Who adds it sees that no circle comes of it."""
    before = get(tx, ticket)
    values = {"after": [*before.spec.after, other]}
    tx.execute(update(schema.tickets).where(_TABLE.id == ticket).values(values))
    tx.execute(insert(schema.edges), [{"ticket": ticket, "after": other}])


def replace_after(tx: Transaction, ticket: int, old: int, new: Sequence[int]) -> None:
    """Others take the place of one that it comes after. The caller sees that no circle comes of it."""
    before = get(tx, ticket)
    kept = [other for other in before.spec.after if other != old]
    added = [other for other in new if other not in kept]
    tx.execute(update(schema.tickets).where(_TABLE.id == ticket).values(after=[*kept, *added]))
    tx.execute(delete(schema.edges).where(schema.edges.c.ticket == ticket, schema.edges.c.after == old))
    if added:
        tx.execute(insert(schema.edges), [{"ticket": ticket, "after": other} for other in added])


def edit(tx: Transaction, ticket: int, values: Mapping[str, Any], *, feedback: str | None = None) -> Ticket:
    """Fields of its spec as a person changed them; the version says that a decision about it is outdated. `feedback`:
    what its next attempt has to know of that. The caller sees that no circle comes of new edges.
    """
    before = get(tx, ticket)
    texts = {name: value for name, value in values.items() if name in _TEXT_COLUMNS}
    columns = {name: value for name, value in values.items() if name not in _TEXT_COLUMNS}
    if "bound" in columns:
        columns["bound"] = [[one.criterion, one.by] for one in columns["bound"]]
    if feedback is not None:
        columns["feedback"] = feedback
    columns["version"] = before.version + 1
    tx.execute(update(schema.tickets).where(_TABLE.id == ticket).values(columns))
    if texts:
        tx.execute(update(schema.ticket_details).where(_TEXTS.ticket == ticket).values(texts))
    if "after" in values:
        tx.execute(delete(schema.edges).where(schema.edges.c.ticket == ticket))
        if values["after"]:
            tx.execute(insert(schema.edges), [{"ticket": ticket, "after": other} for other in values["after"]])
    named = sorted(name for name in values if name != "bound")
    tx.record(EventKind.TICKET_EDITED, project=before.project, ticket=ticket, data={"fields": named})
    return get(tx, ticket)


def set_place(tx: Transaction, ticket: int, place: int) -> None:
    """Where a person put it in the merge queue. It is no move: a test of its change stays valid."""
    tx.execute(update(schema.tickets).where(_TABLE.id == ticket).values(place=place))
    tx.tell()


def change_program(tx: Transaction, ticket: int, *, driver: str, model: str, budget: float | None) -> None:
    """Of a ticket that has not started: its program, its model, its budget. It climbs no ladder then."""
    values = {"driver": driver, "model": model, "budget": budget, "climbs": False}
    tx.execute(update(schema.tickets).where(_TABLE.id == ticket).values(values))


def drop(tx: Transaction, ticket: int) -> None:
    """Remove it from the board. Refused while it is in progress or a live ticket comes after it."""
    dropped = get(tx, ticket)
    if not may("drop", dropped):
        raise StateConflict(f"Ticket {ticket} is {dropped.state.value}: stop it first with `legion stop {ticket}`.")
    waiting = dependants(tx, ticket)
    if waiting:
        listed = ", ".join(str(other) for other in waiting)
        raise StateConflict(f"Ticket {ticket} is waited for by {listed}: drop those first.")
    values = {"dropped_at": tx.now, "live": False, "version": dropped.version + 1}
    tx.execute(update(schema.tickets).where(_TABLE.id == ticket).values(values))
    past_tickets.count(tx, dropped, -1)
    questions.withdraw(tx, ticket=ticket, why="the ticket was dropped")
    tx.record(EventKind.TICKET_DROPPED, project=dropped.project, ticket=ticket, data={"title": dropped.spec.title})


def _spec_values(ticket: Ticket) -> dict[str, Any]:
    """The columns that never change after dispatch."""
    spec = ticket.spec
    values = {name: getattr(spec, name) for name in _SPEC_COLUMNS}
    values["bound"] = [[one.criterion, one.by] for one in spec.bound]
    return values | {"id": ticket.id, "project": ticket.project, "created_at": ticket.created_at}


def _moving_values(ticket: Ticket) -> dict[str, Any]:
    """The columns that a step may change."""
    return {name: getattr(ticket, name) for name in _MOVING_COLUMNS} | {
        "live": not ticket.ended,
        "parked": None if ticket.parked is None else _parked_json(ticket.parked),
        "change_base": None if ticket.change is None else ticket.change.base,
        "change_commit": None if ticket.change is None else ticket.change.commit,
    }


def _parked_json(parked: Parked) -> dict[str, object]:
    return {
        "reason": parked.reason.value,
        "detail": parked.detail,
        "back_to": parked.back_to.value,
        "until": parked.until,
    }


def _parked(data: dict[str, Any]) -> Parked:
    reason, back_to = ParkReason(data["reason"]), State(data["back_to"])
    return Parked(reason=reason, detail=data["detail"], back_to=back_to, until=data["until"])


def _ticket(row: Stored) -> Ticket:
    """From a row of tickets, with the long texts where the statement asked for them."""
    spec: dict[str, Any] = {name: getattr(row, name) for name in _SPEC_COLUMNS}
    spec |= {name: tuple(value) for name, value in spec.items() if isinstance(value, list)}
    spec["bound"] = tuple(Bound(criterion=criterion, by=by) for criterion, by in spec["bound"])
    spec |= {name: getattr(row, name, "") for name in _TEXT_COLUMNS}
    return Ticket(
        id=row.id,
        project=row.project,
        created_at=row.created_at,
        spec=TicketSpec(**spec),
        parked=None if row.parked is None else _parked(row.parked),
        change=None if row.change_commit is None else Change(base=row.change_base, commit=row.change_commit),
        claims=tuple(row.claims),
        **{name: getattr(row, name) for name in _MOVING_COLUMNS if name != "claims"},
    )


_GET = FixedQuery(_WHOLE.where(_TABLE.id == bindparam("wanted")), _ticket, remember=200)
_GET_MANY = QueryByIds(_WHOLE, _TABLE.id, _ticket, remember=200)
_CRITERIA = QueryByIds(
    select(_TEXTS.ticket, _TEXTS.criteria), _TEXTS.ticket, lambda row: (row.ticket, row.criteria), remember=100
)
_STATES = QueryByIds(
    select(_TABLE.id, _TABLE.state).where(_ON_BOARD), _TABLE.id, lambda row: (row.id, row.state), remember=1000
)
_DROPPED = QueryByIds(select(_TABLE.id).where(~_ON_BOARD), _TABLE.id, lambda row: int(row.id), remember=100)
_HOW_MANY_LIVE = FixedQuery(
    select(func.count().label("many")).select_from(schema.tickets).where(_LIVE, _TABLE.project == bindparam("wanted")),
    lambda row: int(row.many),
    remember=10,
)
_WITH_PROOFS = FixedQuery(
    select(schema.tickets)
    .where(_ENDED, _ON_BOARD, _TABLE.proofs != literal_column("'[]'"), _TABLE.project == bindparam("wanted"))
    .order_by(_TABLE.id.desc())
    .limit(500),
    _ticket,
    remember=None,
)
_INSERT, _INSERT_TEXTS = inserting(schema.tickets), inserting(schema.ticket_details)
_MOVE = updating(
    schema.tickets,
    _TABLE.id == bindparam("this"),
    _TABLE.version == bindparam("seen"),
    columns=(*_MOVING_COLUMNS, "live", "parked", "change_base", "change_commit"),
)
_LIST_LIVE = FixedQuery(_ALL_LIVE, _ticket, remember=None)
_LIST_LIVE_OF = FixedQuery(_ALL_LIVE.where(_TABLE.project == bindparam("wanted")), _ticket, remember=None)
