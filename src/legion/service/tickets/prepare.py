"""Prepares new tickets: checks them, resolves their teams and programs, and fetches what they start from.

Nothing is stored here. `dispatch.create` stores what was prepared, in the transaction of its caller.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from legion.config.files.project import ProjectConfig
from legion.domain.agents.agent import STANDING, Agent
from legion.domain.agents.teams import Crew, narrowed
from legion.domain.checks import HookKind
from legion.domain.errors import BadInput, NotAllowed, NotFound
from legion.domain.projects import Project
from legion.domain.scheduling.program_choice import ProgramChoice, best_program
from legion.domain.tickets.spec import StartPoint
from legion.git.core.errors import BranchGone
from legion.git.person.adopted import adopt_branch
from legion.jobs import person_hooks
from legion.jobs.agent.spec import NoProgram, choose_program
from legion.jobs.board import Board
from legion.jobs.landing import target
from legion.jobs.trees import ProjectContext, Trees, settings_of
from legion.service.projects import epic_branches, registry, trust
from legion.service.projects.sessions import session_notes
from legion.service.shared.repeats import refuse_other_operation
from legion.service.tickets import crews
from legion.service.tickets.new_tickets import keys_of, missing_programs, refuse_circles, refuse_faults, refuse_unfit
from legion.store import epic_sessions
from legion.store.board import past_tickets, projects
from legion.store.database.transactions import ReadTransaction
from legion.store.work import idempotency
from legion.wire.dispatch import Dispatch, Dispatched, NewTicket


@dataclass(frozen=True, kw_only=True)
class PreparedTicket:
    new: NewTicket
    """With its team, program and model."""
    crew: Crew | None
    """None for a checkpoint, which has no agent."""
    climbs: bool
    """Whether the ladder continues after the last attempt."""
    choice: ProgramChoice | None
    """Why it got its program, where it named none."""


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """New tickets that were checked and can be created."""

    request: Dispatch
    found: Project
    """The project of the request's folder, where its id is remembered."""
    by: Agent | None = None
    """The agent that dispatches; None: a person does."""
    first: Dispatched | None = None
    """The answer that the same request had before. Nothing is created again, so nothing else was prepared."""
    record: Project
    """The project or session that gets the tickets."""
    attempts: int = 1
    depends_on: tuple[str, ...] = ()
    tickets: tuple[PreparedTicket, ...] = ()
    starts: Mapping[str, StartPoint] = field(default_factory=dict)
    """Of tickets that start from a branch, by its name."""
    notes: tuple[str, ...] = ()


def prepare(context: Trees, request: Dispatch, by: Agent | None = None) -> Prepared:
    """Check the tickets of a request and everything they need. Raises BadInput, NotAllowed or StateConflict."""
    found = registry.find(context, request.cwd)
    if not request.tickets:
        raise BadInput("The request has no ticket. Send at least one.")
    # Before anything is checked: what was dispatched stays dispatched, whatever would be refused by now.
    with context.store.read() as tx:
        first = recalled(tx, found.id, request.request)
    if first is not None:
        return Prepared(request=request, found=found, record=found, first=first)
    request = crews.with_driver(request)
    record = _session_for(context, found, request)
    project = context.project_of(record)
    target.fetch(context, project)
    config = settings_of(record, origin="legion.toml")
    refuse_circles(request.tickets, keys_of(request.tickets))
    for new in request.tickets:
        refuse_faults(new)
    teams = _teams(context, project, request.tickets, by)
    fitted = [
        crews.with_role_defaults(context, new, crew, by_a_person=by is None)
        for new, crew in zip(request.tickets, teams, strict=True)
    ]
    fitted, chosen = _with_programs(context, config, record.id, fitted, by_a_person=by is None)
    for new in fitted:
        refuse_unfit(context, config, Path(record.root), new)
    _refuse_by_hook(context, record, fitted)
    with context.store.read() as tx:
        notes = [*_notes(context, tx, record), *_session_notes(tx, found, record, request.cwd)]
    notes += [*crews.untrusted_notes(context, project, teams), *missing_programs(context, config, fitted)]
    return Prepared(
        request=replace(request, tickets=fitted),
        found=found,
        by=by,
        record=record,
        attempts=config.agents.attempts,
        depends_on=tuple(config.project.depends_on),
        tickets=tuple(
            PreparedTicket(
                new=new,
                crew=crew,
                # The ladder leads to models that an agent may not give.
                climbs=by is None and _climbs(context, config, new),
                choice=chosen.get(position),
            )
            for position, (new, crew) in enumerate(zip(fitted, teams, strict=True))
        ),
        starts=_starts(project, fitted, by_a_person=by is None),
        notes=tuple(notes),
    )


def recalled(tx: ReadTransaction, project: int, request: str) -> Dispatched | None:
    """The answer to a dispatch that was made with this id in the folder's project."""
    first = idempotency.recall(tx, project, request) if request else None
    refuse_other_operation(first, "schema", Dispatched.schema)
    return None if first is None else Dispatched(**first)


def _session_for(context: Trees, found: Project, request: Dispatch) -> Project:
    """Tickets of an epic with a branch of its own go to its session, but for the one that lands that branch."""
    if epic_sessions.lands_a_branch(request.request):
        return found
    return epic_branches.redirected(context, found, request.tickets, dry_run=request.dry_run)


def _teams(context: Board, project: ProjectContext, new: Sequence[NewTicket], by: Agent | None) -> list[Crew | None]:
    """Of each ticket. A team is read and checked once, and the first ticket that names it is the one to complain of."""
    alike = {(one.team, one.checkpoint): one for one in reversed(new)}
    team_of = {key: _team(context, project, one, by) for key, one in reversed(alike.items())}
    return [team_of[one.team, one.checkpoint] for one in new]


def _team(context: Board, project: ProjectContext, new: NewTicket, by: Agent | None) -> Crew | None:
    crew = crews.resolve_crew(context, project, new)
    if by is None or crew is None:
        return crew
    return narrowed(crew, by, crews.default_crew(context, project) if new.team else None)


def _with_programs(
    context: Board, config: ProjectConfig, project: int, new: list[NewTicket], *, by_a_person: bool
) -> tuple[list[NewTicket], dict[int, ProgramChoice]]:
    """With `models.learn`: program and model of tickets that name neither, from what landed before."""
    open_ones = [n for n, one in enumerate(new) if not (one.checkpoint or one.command or one.driver or one.model)]
    if not by_a_person or not context.user.models.learn or not open_ones:
        return new, {}
    with context.store.read() as tx:
        past = past_tickets.of_project(tx, project)
    usable = {one.driver for one in past if _can_start(context, config, one.driver)}
    found = {n: best_program(new[n].labels, new[n].files, past, usable) for n in open_ones}
    chosen = {n: one for n, one in found.items() if one is not None}
    return [
        replace(one, driver=chosen[n].driver, model=chosen[n].model) if n in chosen else one
        for n, one in enumerate(new)
    ], chosen


def _can_start(context: Board, config: ProjectConfig, driver: str) -> bool:
    try:
        choose_program(context, config, "", driver)
    except NoProgram:
        return False
    return True


def _climbs(context: Board, config: ProjectConfig, new: NewTicket) -> bool:
    """Whether the ladder continues after the last attempt: not with a limit of attempts or a plain program."""
    if new.max_attempts is not None or new.checkpoint or new.driver == STANDING:
        return False
    return choose_program(context, config, new.command, new.driver).capabilities.models


def _refuse_by_hook(context: Trees, project: Project, new: list[NewTicket]) -> None:
    for ticket in new:
        facts: dict[str, object] = {"task_id": "", "task_subject": ticket.title, "task_description": ticket.text}
        text = person_hooks.refusal(context, project, HookKind.TASK_CREATED, facts)
        if text is not None:
            raise BadInput(f"Ticket {crews.shown_name(ticket)!r}: your hook refuses it: {text}")


def _starts(project: ProjectContext, new: Sequence[NewTicket], *, by_a_person: bool) -> dict[str, StartPoint]:
    """What tickets start from, by the name of the person's branch. Raises NotFound for one that does not exist."""
    named = {one.branch: one for one in new if one.branch}
    if named and not by_a_person:
        raise NotAllowed("Only a person starts a ticket from a branch of theirs. Leave `branch` out.")
    return {branch: _start(project, branch, one) for branch, one in named.items()}


def _start(project: ProjectContext, branch: str, one: NewTicket) -> StartPoint:
    try:
        work = adopt_branch(project.hub, Path(project.record.common_dir), branch, target=project.target)
    except BranchGone:
        shown = one.key or one.title
        raise NotFound(f"Ticket {shown!r}: there is no branch {branch}. See `git branch --all`.") from None
    return StartPoint(base=work.base, tree=work.tree)


def _notes(context: Trees, tx: ReadTransaction, project: Project) -> list[str]:
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


def _session_notes(tx: ReadTransaction, found: Project, record: Project, cwd: str) -> list[str]:
    """Where the ticket goes, if the person's checkout has another branch, or its epic one of its own."""
    if found.id != record.id:
        return [f"It goes to session {record.session_name}: its epic lands on {record.branch}."]
    return [f"{note[0].upper()}{note[1:]}." for note in session_notes(tx, record, cwd)]
