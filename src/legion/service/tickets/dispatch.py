"""Creates prepared tickets in the transaction of a caller, or in one of its own: all of a request, or none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from types import MappingProxyType
from typing import Any, TypeVar

from legion.domain.agents.agent import Agent
from legion.domain.errors import BadInput
from legion.domain.events import EventKind
from legion.domain.projects import Project
from legion.domain.tickets import board
from legion.domain.tickets.evidence import bind
from legion.domain.tickets.spec import LandingGate, ReviewPolicy, TicketSpec
from legion.domain.tickets.ticket import Rewind
from legion.jobs.trees import Trees
from legion.jobs.workspace import linked_projects
from legion.jobs.workspace.linked_projects import LinkedTickets
from legion.service.tickets.crews import to_agent
from legion.service.tickets.new_tickets import keys_of
from legion.service.tickets.prepare import Prepared, PreparedTicket, prepare, recalled
from legion.store.board import crews, plan_approvals, tickets
from legion.store.database.transactions import ReadTransaction, Transaction
from legion.store.staff import agents
from legion.store.work import idempotency
from legion.wire.dispatch import TICKET_FIELDS, Dispatch, Dispatched, NewTicket

_DERIVED = {"title", "after", "max_attempts", "review", "gate", "retires"}
_TAKEN_OVER = {field.name for field in fields(TicketSpec)} & set(TICKET_FIELDS) - _DERIVED
"""Fields that a ticket's spec has as the request has them."""
_MOST_NAMED = 10
_CONTINUE = (
    "The worktree already holds the work of the branch {branch}. Read it with `git status` and `git diff` first, and "
    "continue from there."
)
_Item = TypeVar("_Item")


@dataclass(frozen=True, kw_only=True)
class Created:
    answer: Dispatched
    new: bool = True
    """False where the same request created them before: nothing is added to these."""


def dispatch(context: Trees, request: Dispatch, by: Agent | None = None) -> Dispatched:
    """Create the tickets of the request. A dry run creates them, describes them and takes all of it back."""
    prepared = prepare(context, request, by)
    with context.store.write() as tx:
        made = create(tx, prepared)
        if not request.dry_run or not made.new:
            return made.answer
        tx.take_back()
        return replace(made.answer, ids=[], keys={}, planned=_planned(tx, sorted(made.answer.ids)))


def create(tx: Transaction, prepared: Prepared, drafts: Mapping[str, str] = MappingProxyType({})) -> Created:
    """Store the tickets, or give a repeated request its first answer.

    `drafts`: by key, why a ticket is not submitted yet.
    """
    request, record = prepared.request, prepared.record
    if (first := prepared.first or recalled(tx, prepared.found.id, request.request)) is not None:
        return Created(answer=first, new=False)
    mentioned = sorted({number for new in request.tickets for number in new.after})
    board.refuse_unknown(mentioned, tickets.states_of(tx, mentioned))
    if prepared.by is not None:
        _refuse_foreign(tx, record, mentioned)
        agents.refuse_expense(tx, prepared.by.id, sum(new.budget or 0.0 for new in request.tickets))
    placed, linked = _with_linked(tx, prepared)
    ids = _store(tx, prepared, placed, drafts)
    for position, one in enumerate(prepared.tickets):
        if one.new.branch:
            start = Rewind(prepared.starts[one.new.branch], "", _CONTINUE.format(branch=one.new.branch))
            tickets.move(tx, ids[position], start)
    answer = Dispatched(
        ids=[ids[position] for position in range(len(prepared.tickets))],
        keys={key: ids[position] for key, position in keys_of(request.tickets).items()},
        notes=[*prepared.notes, *linked, *_record_choices(tx, prepared, ids)],
    )
    if request.to:
        answer.notes.append(to_agent(tx, prepared.found, request, answer.ids[0]))
    if request.request and not request.dry_run:
        idempotency.remember(tx, prepared.found.id, request.request, asdict(answer))
    return Created(answer=answer)


def _store(
    tx: Transaction, prepared: Prepared, placed: Sequence[NewTicket], drafts: Mapping[str, str]
) -> dict[int, int]:
    """Create tickets after those that they depend on; returns ids by position in the request."""
    keys = keys_of(prepared.request.tickets)
    edges = {position: [keys[key] for key in new.after_keys] for position, new in enumerate(placed)}
    kept = ["" if one.crew is None else crews.keep(tx, one.crew) for one in prepared.tickets]
    ids: dict[int, int] = {}
    for position in board.topological(edges):
        new = placed[position]
        after = [*new.after, *(ids[keys[key]] for key in new.after_keys)]
        spec = _spec(prepared, prepared.tickets[position], after, kept[position])
        ids[position] = tickets.create(tx, prepared.record.id, spec, draft_because=drafts.get(new.key, "")).id
        if new.plan_first:
            plan_approvals.want(tx, ids[position])
    return ids


def _spec(prepared: Prepared, one: PreparedTicket, after: list[int], crew: str) -> TicketSpec:
    """The ticket as it is stored. Fields that are not named here are taken as they are, lists without repeats."""
    new, by = one.new, prepared.by
    proofs, bound = bind(new.criteria, new.prove)
    taken_over: dict[str, Any] = {name: getattr(new, name) for name in _TAKEN_OVER}
    taken_over |= {name: _distinct(value) for name, value in taken_over.items() if isinstance(value, list)}
    return TicketSpec(
        title=" ".join(new.title.split()),
        after=_distinct(after),
        proofs=proofs,
        bound=bound,
        acceptance=_distinct(new.accept),
        max_attempts=new.max_attempts or prepared.attempts,
        climbs=one.climbs,
        retires=_distinct(new.retires) if by is None else (),
        asks=new.ask,
        review=ReviewPolicy(new.review) if new.review else None,
        # An agent's ticket keeps the gate of its epic or project.
        gate=LandingGate(new.gate) if new.gate and (by is None or new.gate == LandingGate.PERSON.value) else None,
        dispatcher="" if by is None else by.id,
        tools=None if by is None or by.rights.tools is None else tuple(sorted(by.rights.tools)),
        crew=crew,
        **taken_over,
    )


def _distinct(values: Iterable[_Item]) -> tuple[_Item, ...]:
    return tuple(dict.fromkeys(values))


def _record_choices(tx: Transaction, prepared: Prepared, ids: Mapping[int, int]) -> list[str]:
    """Record the chosen programs. Returns a sentence for each."""
    notes = []
    for position, one in enumerate(prepared.tickets):
        if (choice := one.choice) is not None:
            facts = {"driver": choice.driver, "model": choice.model, "why": choice.why}
            tx.record(EventKind.TICKET_PROGRAM_CHOSEN, project=prepared.record.id, ticket=ids[position], data=facts)
            notes.append(f"Ticket {ids[position]} goes to {choice}.")
    return notes


def _refuse_foreign(tx: ReadTransaction, project: Project, mentioned: list[int]) -> None:
    """An agent knows the tickets of its own project only."""
    for ticket in tickets.get_many(tx, mentioned):
        if ticket.project != project.id:
            raise BadInput(
                f"Ticket {ticket.id} belongs to another project: an agent's ticket comes after tickets of its own."
            )


def _with_linked(tx: ReadTransaction, prepared: Prepared) -> tuple[list[NewTicket], list[str]]:
    """The tickets after the open ones of every project that theirs depends on, and notes about these edges.

    A ticket that comes after another of the request has none.
    """
    new, names = prepared.request.tickets, prepared.depends_on
    if not names:
        return new, []
    epics = {one.epic for one in new}
    by_epic = {epic: linked_projects.open_tickets(tx, prepared.record, names, epic) for epic in epics}
    there = {linked.project for found in by_epic.values() for linked in found}
    notes = [
        f"legion.toml depends on {name}, which is no project here: run `legion init` in it."
        for name in names
        if name not in there
    ]
    notes += dict.fromkeys(_linked_note(linked) for found in by_epic.values() for linked in found if linked.open)

    def placed(one: NewTicket) -> NewTicket:
        numbers = [ticket.id for linked in by_epic[one.epic] for ticket in linked.open]
        return one if one.after_keys else replace(one, after=[*one.after, *numbers])

    return [placed(one) for one in new], notes


def _linked_note(linked: LinkedTickets) -> str:
    listed = ", ".join(str(ticket.id) for ticket in linked.open[:_MOST_NAMED])
    more = ", ..." if len(linked.open) > _MOST_NAMED else ""
    return f"Starts after the open tickets of {linked.project}: {listed}{more}."


def _planned(tx: ReadTransaction, ids: list[int]) -> list[str]:
    """In the order of their numbers, which follows their edges; those of the request are counted from 1."""
    position = {id: place for place, id in enumerate(ids, start=1)}
    lines = []
    for ticket in tickets.get_many(tx, ids):
        spec = ticket.spec
        after = [f"number {position[one]}" if one in position else f"ticket {one}" for one in spec.after]
        facts = [f"after {', '.join(after)}"] if after else []
        facts += ["checkpoint"] if spec.checkpoint else [f"team {spec.team}"] if spec.team else []
        facts += [f"{spec.max_attempts} attempts"] if not spec.checkpoint else []
        lines.append(f"{position[ticket.id]}. {spec.title} ({', '.join(facts)})")
    return lines
