"""Dispatches tickets, and stops, retries, drops, pauses and resumes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from legion.config.files.project import ProjectConfig
from legion.domain.agents.agent import STANDING
from legion.domain.agents.teams import Crew, RolePart
from legion.domain.errors import BadInput, Retryable, StateConflict
from legion.domain.hooks import HookKind
from legion.domain.projects import Project
from legion.domain.rules import Rule
from legion.domain.runs import Run, seated
from legion.domain.scheduling.decide import JobKind
from legion.domain.text import count
from legion.domain.tickets import board
from legion.domain.tickets.evidence import bind
from legion.domain.tickets.offers import may
from legion.domain.tickets.policy import LandingGate, ReviewPolicy
from legion.domain.tickets.spec import TicketSpec
from legion.domain.tickets.ticket import Park, ParkReason, Retry, State, Stop, Ticket, Unpark
from legion.jobs import person_hooks
from legion.jobs.agent import plan_approval
from legion.jobs.agent.spec import choose_program
from legion.jobs.context import Context, ProjectContext, settings_of
from legion.jobs.landing import upstream
from legion.jobs.run.job import run_dir
from legion.runner import launch
from legion.runner.spec import RunnerError
from legion.service.projects import epic_branches, registry, trust
from legion.service.projects.session_notes import session_notes
from legion.service.shared.repeats import refuse_other_operation
from legion.service.tickets import crews, start_points, upstream_edges
from legion.service.tickets.dry_run import DryRun, undone_if_dry
from legion.service.tickets.new_tickets import keys_of, missing_programs, refuse_circles, refuse_faults, refuse_unfit
from legion.service.tickets.program_choices import choose_programs, record_choices
from legion.store import epic_sessions
from legion.store.board import crews as stored_crews
from legion.store.board import landings, plan_approvals, projects, tickets
from legion.store.database.transactions import ReadTransaction, Transaction
from legion.store.work import idempotency, runs
from legion.wire.dispatch import TICKET_FIELDS, Dispatch, Dispatched, NewTicket
from legion.wire.tickets import Acted

_STOP_GRACE = 1.0
_DERIVED = {"title", "after", "max_attempts", "review", "gate"}
_TAKEN_OVER = {field.name for field in fields(TicketSpec)} & set(TICKET_FIELDS) - _DERIVED
"""Fields that a ticket's spec has as the request has them."""
_Item = TypeVar("_Item")


@dataclass(frozen=True, kw_only=True)
class Dispatcher:
    """An agent that dispatches tickets, and the rights that it passes on."""

    id: str
    tools: frozenset[str] | None
    allow: Callable[[ReadTransaction, float], None]
    """Raises NotAllowed if its budget is too small; called in the transaction that takes the money."""
    narrow: Callable[[Crew, Crew | None], Crew]
    """The crew with no more rights than the agent may give. Raises NotAllowed for a crew that it may not choose.

    The second argument is the project's default crew, where the ticket names another."""


def dispatch(
    context: Context,
    request: Dispatch,
    by: Dispatcher | None = None,
    also: Callable[[Transaction, Dispatched], None] | None = None,
    drafts: Mapping[str, str] = MappingProxyType({}),
) -> Dispatched:
    """Create all tickets of the request, or none. `also` is called in the same transaction.

    `drafts`: by key, why a ticket is not submitted yet.
    """
    found = registry.find(context, request.cwd)
    if not request.tickets:
        raise BadInput("The request has no ticket. Send at least one.")
    if (first := _first_answer(context, found, request)) is not None:
        return first
    record = _session_for(context, found, request)
    project = context.project_of(record)
    upstream.fetch(context, project)
    config = settings_of(record, origin="legion.toml")
    keys = keys_of(request.tickets)
    refuse_circles(request.tickets, keys)
    for new in request.tickets:
        refuse_faults(new)
    teams = _teams(context, project, request.tickets, by)
    fitted = [
        crews.with_role_defaults(context, new, crew, by_a_person=by is None)
        for new, crew in zip(request.tickets, teams, strict=True)
    ]
    fitted, chosen = choose_programs(context, config, record.id, fitted, by_a_person=by is None)
    request = replace(request, tickets=fitted)
    for new in request.tickets:
        refuse_unfit(context, config, Path(record.root), new)
    _refuse_by_hook(context, record, request.tickets)
    told = [*crews.untrusted_notes(context, project, teams), *missing_programs(context, config, request.tickets)]
    starts = start_points.of_branches(project, request.tickets, by_a_person=by is None)
    with undone_if_dry(request) as dry, context.store.write() as tx:
        if (first := recalled(tx, found.id, request.request)) is not None:
            return first
        board.refuse_unknown(
            {number for new in request.tickets for number in new.after}, tickets.states_of(tx, _mentioned(request))
        )
        if by is not None:
            upstream_edges.refuse_foreign(tx, record, request.tickets)
            by.allow(tx, sum(new.budget or 0.0 for new in request.tickets))
        kept = ["" if crew is None else stored_crews.keep(tx, crew) for crew in teams]
        placed, linked = upstream_edges.with_upstream(tx, record, config, request.tickets)
        ids = _create(context, tx, record, config, placed, kept, by, drafts)
        for position, new in enumerate(request.tickets):
            start_points.apply(tx, starts, ids[position], new.branch)
        explained = record_choices(tx, record.id, {ids[position]: one for position, one in chosen.items()})
        answer = Dispatched(
            ids=[ids[position] for position in range(len(request.tickets))],
            keys={key: ids[position] for key, position in keys.items()},
            notes=[
                *_notes(context, tx, record),
                *_session_notes(tx, found, record, request.cwd),
                *linked,
                *told,
                *explained,
            ],
        )
        if also is not None:
            also(tx, answer)
        if request.dry_run:
            raise DryRun(tx, answer)
        if request.request:
            idempotency.remember(tx, found.id, request.request, asdict(answer))
    return dry[0] if dry else answer


def _teams(
    context: Context, project: ProjectContext, new: Sequence[NewTicket], by: Dispatcher | None
) -> list[Crew | None]:
    """Of each ticket. A team is read and checked once, and the first ticket that names it is the one to complain of."""
    alike = {(one.team, one.checkpoint): one for one in reversed(new)}
    team_of = {key: _team(context, project, one, by) for key, one in reversed(alike.items())}
    return [team_of[one.team, one.checkpoint] for one in new]


def _refuse_by_hook(context: Context, project: Project, new: list[NewTicket]) -> None:
    for ticket in new:
        facts: dict[str, object] = {"task_id": "", "task_subject": ticket.title, "task_description": ticket.text}
        text = person_hooks.refusal(context, project, HookKind.TASK_CREATED, facts)
        if text is not None:
            raise BadInput(f"Ticket {crews.shown_name(ticket)!r}: your hook refuses it: {text}")


def _team(context: Context, project: ProjectContext, new: NewTicket, by: Dispatcher | None) -> Crew | None:
    crew = crews.resolve_crew(context, project, new)
    if by is None or crew is None:
        return crew
    return by.narrow(crew, crews.default_crew(context, project) if new.team else None)


def stop(context: Context, ticket_id: int, *, by: str = "") -> Acted:
    """`by` names the agent that stops it; empty: the person does."""
    with context.store.write() as tx:
        ticket = get_ticket(tx, ticket_id)
        refuse_mid_landing(tx, ticket)
        tickets.move(tx, ticket_id, Stop(reason=f"stopped by the agent {by}") if by else Stop())
        active = active_runs(tx, ticket_id)
    end_runs(context, active)
    return Acted(
        tickets=[ticket_id], message=f"Ticket {ticket_id} is stopped; `legion retry {ticket_id}` starts it again."
    )


def stop_all(context: Context, cwd: str) -> Acted:
    project = registry.find(context, cwd)
    active: list[Run] = []
    stopped: list[int] = []
    with context.store.write() as tx:
        landing = _mid_landing(tx, project.id)
        for ticket in tickets.live(tx, project=project.id):
            if ticket.id not in landing:
                tickets.move(tx, ticket.id, Stop())
                active += active_runs(tx, ticket.id)
                stopped.append(ticket.id)
    end_runs(context, active)
    return Acted(tickets=stopped, message=_stop_message(stopped, sorted(landing)))


def _stop_message(stopped: list[int], landing: list[int]) -> str:
    parts = [f"{count(len(stopped), 'ticket is', 'tickets are')} stopped."] if stopped else []
    if landing:
        which = f"Ticket {landing[0]} was" if len(landing) == 1 else f"Tickets {', '.join(map(str, landing))} were"
        parts.append(f"{which} not stopped: a ticket that is just landing cannot be; `legion undo N` reverts it.")
    return " ".join(parts) or "No open tickets."


def retry(context: Context, ticket_id: int, feedback: str) -> Acted:
    with context.store.write() as tx:
        get_ticket(tx, ticket_id)
        tickets.move(tx, ticket_id, Retry(feedback))
    return Acted(tickets=[ticket_id], message=f"Ticket {ticket_id} is queued again.")


def drop(context: Context, ticket_id: int) -> Acted:
    """Remove a ticket from the board. Its worktrees move to the trash; what landed stays landed."""
    with context.store.write() as tx:
        ticket = get_ticket(tx, ticket_id)
        if not may("drop", ticket):
            raise StateConflict(f"Ticket {ticket_id} is {ticket.state.value}. Run `legion stop {ticket_id}` first.")
        if active_runs(tx, ticket_id):
            raise Retryable(f"The agent of ticket {ticket_id} is still stopping. Try again in a moment.")
        waiting = tickets.dependants(tx, ticket_id)
        if waiting and ticket.state is not State.DONE:
            listed = ", ".join(str(other) for other in waiting)
            raise StateConflict(f"Other tickets come after ticket {ticket_id}: {listed}. Drop them first.")
        tickets.drop(tx, ticket_id)
    project = context.project(ticket.project)
    for name in project.worktrees.names():
        if (seated(name) or ("", 0))[:2] == ("ticket", ticket_id):
            project.worktrees.discard(name)
    return Acted(tickets=[ticket_id], message=f"Ticket {ticket_id} is dropped; its files are in {project.trash}.")


def pause(context: Context, ticket_id: int) -> Acted:
    with context.store.write() as tx:
        ticket = get_ticket(tx, ticket_id)
        refuse_mid_landing(tx, ticket)
        tickets.move(tx, ticket_id, Park(ParkReason.PAUSED, "paused by a person"))
        active = active_runs(tx, ticket_id)
    end_runs(context, active)
    return Acted(tickets=[ticket_id], message=f"Ticket {ticket_id} is paused; `legion resume {ticket_id}` resumes it.")


def resume(context: Context, ticket_id: int) -> Acted:
    with context.store.write() as tx:
        ticket = get_ticket(tx, ticket_id)
        if not may("resume_ticket", ticket):
            raise StateConflict(f"Ticket {ticket_id} is {ticket.state.value}, not paused; there is nothing to resume.")
        plan_approval.refuse_unapproved(tx, ticket)
        if ticket.parked is not None and ticket.parked.reason is ParkReason.RED_BASELINE:
            project = projects.get(tx, ticket.project)
            projects.save(tx, replace(project, baseline_commit=None, baseline_verdict=None))
        tickets.move(tx, ticket_id, Unpark(), rule=Rule.PERSON)
    return Acted(tickets=[ticket_id], message=f"Ticket {ticket_id} is resumed.")


def _mentioned(request: Dispatch) -> list[int]:
    return sorted({number for new in request.tickets for number in new.after})


def _climbs(context: Context, config: ProjectConfig, new: NewTicket) -> bool:
    """Whether the ladder continues after the last attempt: not with a limit of attempts or a plain program."""
    if new.max_attempts is not None or new.checkpoint or new.driver == STANDING:
        return False
    return choose_program(context, config, new.command, new.driver).capabilities.models


def _create(
    context: Context,
    tx: Transaction,
    project: Project,
    config: ProjectConfig,
    new: list[NewTicket],
    kept: list[str],
    by: Dispatcher | None,
    drafts: Mapping[str, str],
) -> dict[int, int]:
    """Create tickets after those that they depend on; returns ids by position in the request."""
    keys = keys_of(new)
    edges = {position: [keys[key] for key in ticket.after_keys] for position, ticket in enumerate(new)}
    ids: dict[int, int] = {}
    for position in board.topological(edges):
        ticket = new[position]
        after = [*ticket.after, *(ids[keys[key]] for key in ticket.after_keys)]
        spec = _spec(context, config, ticket, after, kept[position], by)
        ids[position] = tickets.create(tx, project.id, spec, draft_because=drafts.get(ticket.key, "")).id
        if ticket.plan_first:
            plan_approvals.want(tx, ids[position])
    return ids


def _spec(
    context: Context, config: ProjectConfig, new: NewTicket, after: list[int], crew: str, by: Dispatcher | None
) -> TicketSpec:
    """The ticket as it is stored. Fields that are not named here are taken as they are, lists without repeats."""
    proofs, bound = bind(new.criteria, new.prove)
    taken_over: dict[str, Any] = {name: getattr(new, name) for name in _TAKEN_OVER}
    taken_over |= {name: _distinct(value) for name, value in taken_over.items() if isinstance(value, list)}
    return TicketSpec(
        title=" ".join(new.title.split()),
        after=_distinct(after),
        proofs=proofs,
        bound=bound,
        acceptance=_distinct(new.accept),
        max_attempts=new.max_attempts or config.agents.attempts,
        # The ladder leads to models that an agent may not give.
        climbs=by is None and _climbs(context, config, new),
        asks=new.ask,
        review=ReviewPolicy(new.review) if new.review else None,
        # An agent's ticket keeps the gate of its epic or project.
        gate=LandingGate(new.gate) if new.gate and (by is None or new.gate == LandingGate.PERSON.value) else None,
        dispatcher="" if by is None else by.id,
        tools=None if by is None or by.tools is None else tuple(sorted(by.tools)),
        crew=crew,
        **taken_over,
    )


def _distinct(values: Iterable[_Item]) -> tuple[_Item, ...]:
    return tuple(dict.fromkeys(values))


def _notes(context: Context, tx: Transaction, project: Project) -> list[str]:
    notes = []
    if not projects.is_trusted(tx, project.id, project.config_hash):
        notes.append("legion.toml is not trusted, so nothing starts. Read it and run `legion trust`.")
    elif trust.stale(project):
        notes.append("legion.toml changed since you trusted it and is not in force. Run `legion trust`.")
    if project.paused:
        notes.append(f"The project is paused. Run `{project.resumed_by}` to resume it.")
    if project.baseline_red:
        notes.append("The target itself fails its checks; no ticket is blamed for that. `legion status` shows why.")
    if not context.sandbox.works:
        notes.append(f"Agents run without a sandbox: {context.sandbox.why}")
    return notes


def _first_answer(context: Context, found: Project, request: Dispatch) -> Dispatched | None:
    """Before anything is checked: what was dispatched stays dispatched, whatever would be refused by now."""
    with context.store.read() as tx:
        return recalled(tx, found.id, request.request)


def recalled(tx: ReadTransaction, project: int, request: str) -> Dispatched | None:
    """The answer to a dispatch that was made with this id in the folder's project."""
    first = idempotency.recall(tx, project, request) if request else None
    refuse_other_operation(first, "schema", Dispatched.schema)
    return None if first is None else Dispatched(**first)


def _session_for(context: Context, found: Project, request: Dispatch) -> Project:
    """Tickets of an epic with a branch of its own go to its session, but for the one that lands that branch."""
    if epic_sessions.lands_a_branch(request.request):
        return found
    return epic_branches.redirected(context, found, request.tickets, dry_run=request.dry_run)


def _session_notes(tx: ReadTransaction, found: Project, record: Project, cwd: str) -> list[str]:
    """Where the ticket goes, if the person's checkout has another branch, or its epic one of its own."""
    if found.id != record.id:
        return [f"It goes to session {record.session_name}: its epic lands on {record.branch}."]
    return [f"{note[0].upper()}{note[1:]}." for note in session_notes(tx, record, cwd)]


def get_ticket(tx: ReadTransaction, ticket_id: int) -> Ticket:
    """The ticket. Raises StateConflict if its project was removed."""
    ticket = tickets.get(tx, ticket_id)
    project = projects.get(tx, ticket.project)
    if project.removed_at is not None:
        raise StateConflict(f"Project {project.name} was removed. Run `legion init` to add it again.")
    return ticket


def active_runs(tx: ReadTransaction, ticket_id: int) -> tuple[Run, ...]:
    """The running builds and reviews of a ticket."""
    return runs.active_of(tx, ticket_id)


def end_runs(context: Context, active: Iterable[Run]) -> None:
    """Ask every runner to stop. One that does not answer is named at the end, and asked again by the job that waits."""
    silent: list[RunnerError] = []
    for run in active:
        kind = JobKind.REVIEW if run.part is RolePart.READ else JobKind.RUN
        context.live.scheduler.backoffs.remove([(kind, run.ticket or 0)])
        try:
            launch.stop(run_dir(context, run), grace=_STOP_GRACE)
        except RunnerError as error:
            silent.append(error)
    if silent:
        raise RunnerError(" ".join(error.message for error in silent))


def _mid_landing(tx: ReadTransaction, project: int) -> set[int]:
    return {number for intent in landings.open_ones(tx, project) for number in dict(intent.tickets)}


def refuse_mid_landing(tx: ReadTransaction, ticket: Ticket) -> None:
    if ticket.state is State.LANDING and ticket.id in _mid_landing(tx, ticket.project):
        raise Retryable(f"Ticket {ticket.id} is just landing. Try again in a second.")
