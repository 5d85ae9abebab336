"""Resolves the team of a new ticket, applies its defaults, and describes it for a ticket's page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from legion.config.files.project import ProjectConfig
from legion.config.files.teams import DefinitionKind
from legion.domain.agents.agent import ROOT, STANDING
from legion.domain.agents.teams import Crew, RolePart, TeamStage
from legion.domain.errors import BadInput, LegionError, NotFound, StateConflict
from legion.domain.projects import Project
from legion.domain.runs import Run
from legion.domain.tickets import board, ladder
from legion.domain.tickets.ticket import Ticket
from legion.jobs.agent import preparation, teams
from legion.jobs.agent.spec import NoProgram, choose_program
from legion.jobs.board import Board
from legion.jobs.trees import ProjectContext
from legion.jobs.turn import claimed_tickets
from legion.service.shared.fragments import shaped
from legion.store.board import crews, tickets
from legion.store.board.crews import digest
from legion.store.database.transactions import Transaction
from legion.store.staff import agents, ticket_holders
from legion.wire.dispatch import Dispatch, NewTicket
from legion.wire.ticket_pages import AdviceLine, CrewLine, StageLine


def shown_name(new: NewTicket) -> str:
    """A new ticket's name for messages: it has no number yet."""
    return new.key or " ".join(new.title.split())[:40] or "without a title"


def resolve_crew(context: Board, project: ProjectContext, new: NewTicket) -> Crew | None:
    """The team that works on the ticket; None for a checkpoint, which has no agent."""
    if new.checkpoint:
        return None
    crew = teams.crew(context, project, new.team)
    _refuse_no_program(context, project.config, crew)
    return crew


def default_crew(context: Board, project: ProjectContext) -> Crew:
    """The project's default team."""
    return teams.crew(context, project, "")


def with_role_defaults(context: Board, new: NewTicket, crew: Crew | None, *, by_a_person: bool) -> NewTicket:
    """The ticket with model and driver of the building role, unless the ticket itself names them."""
    if crew is None:
        return new
    # The ladder of a label leads to models that an agent may not give.
    ladders = dict(context.user.models.by_label) if by_a_person else {}
    label = ladder.label_of(new.labels, ladders)
    role = crew.builder.role
    program, model = ladder.parts(ladders[label][0]) if label else ("", role.model)
    return replace(
        new,
        team=crew.team,
        model=new.model or model,
        driver=new.driver or ("" if new.command else program or role.driver),
    )


def untrusted_notes(context: Board, project: ProjectContext, crews: list[Crew | None]) -> list[str]:
    """Notes about definitions of the repository that would apply to these crews if they were trusted."""
    there = [crew for crew in crews if crew is not None]
    names = {(DefinitionKind.TEAM, crew.team) for crew in there}
    names |= {(DefinitionKind.ROLE, stage.role.name) for crew in there for stage in crew.stages}
    return [
        f"{one.file} has no effect before you trust it. Read it and run `legion trust`."
        for one in teams.untrusted(context, project)
        if (one.kind, one.name) in names
    ]


def crew_line(context: Board, project: ProjectContext, ticket: Ticket, all_runs: Sequence[Run]) -> CrewLine | None:
    """For the ticket's page; None where no team works on it."""
    if not ticket.spec.crew:
        return None
    crew = teams.of_ticket(context, ticket)
    with context.store.read() as tx:
        given = crews.advice_of(tx, ticket.id)
    return CrewLine(
        team=crew.team,
        stages=[_stage(stage, ticket, all_runs) for stage in crew.stages],
        advice=[shaped(AdviceLine, one) for one in given],
        changed="" if ticket.ended or ticket.spec.dispatcher else _changed(context, project, ticket),
    )


def _stage(stage: TeamStage, ticket: Ticket, all_runs: Sequence[Run]) -> StageLine:
    builds = stage.part is RolePart.BUILD
    mine = [run.id for run in all_runs if run.role == ("" if builds else stage.key)]
    model = ticket.spec.model if builds else stage.role.model
    return StageLine(role=stage.key, part=stage.part.value, model=model, runs=mine)


def _changed(context: Board, project: ProjectContext, ticket: Ticket) -> str:
    try:
        now = teams.crew(context, project, ticket.spec.team)
    except LegionError as gone:
        return gone.message
    if digest(now) == ticket.spec.crew:
        return ""
    return "its definition has changed since; this ticket keeps the one from its dispatch"


def _refuse_no_program(context: Board, config: ProjectConfig, crew: Crew) -> None:
    for stage in crew.stages:
        if not stage.role.driver:
            continue
        try:
            choose_program(context, config, "", stage.role.driver)
        except NoProgram as missing:
            raise BadInput(f"The role {stage.role.name} in {stage.role.file}: {missing.message}") from missing


def with_driver(request: Dispatch) -> Dispatch:
    """The request with the driver of a standing agent, where it names one. Raises BadInput where it cannot."""
    if not request.to:
        return request
    if len(request.tickets) != 1:
        raise BadInput("--to takes one ticket: dispatch the others without it.")
    (new,) = request.tickets
    if new.checkpoint or new.command or new.driver not in ("", STANDING):
        raise BadInput("--to names the agent, so the ticket takes no --checkpoint, --command or --driver.")
    return replace(request, tickets=[replace(new, driver=STANDING)])


def to_agent(tx: Transaction, project: Project, request: Dispatch, ticket_id: int) -> str:
    """Claim the new ticket for the agent of the request. Returns a sentence about it."""
    agent = agents.find(tx, request.to, by=ROOT)
    if agent.fired_at is not None or agent.project != project.id:
        raise NotFound(f"{request.to[:40]!r} is no agent of this project: `legion agents` lists them.")
    ticket = tickets.get(tx, ticket_id)
    held = ticket_holders.current(tx, agent.id)
    if held is not None:
        raise StateConflict(f"{agent.name} holds ticket {held.ticket}: wait for it, or choose another agent.")
    if request.tickets[0].plan_first and not preparation.can_limit_tools(agent):
        raise StateConflict(
            f"{agent.name} works with {agent.driver}, which cannot be limited to reading: leave out --plan-first."
        )
    if not board.ready(ticket.spec.after, tickets.states_of(tx, ticket.spec.after)):
        raise StateConflict("The ticket comes after others that have not landed: dispatch it without --to.")
    claimed_tickets.claim(tx, agent, ticket)
    return f"{agent.name} gets it with its next turn."
