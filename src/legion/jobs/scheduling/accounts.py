"""Resolves which tickets and agents need a model for their next run, and which accounts they would use.

A route may lead a request to several providers, so one agent may have several accounts. Limits are read elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from legion.config.files.project import ProjectConfig
from legion.config.files.user import CLAUDE
from legion.domain.agents.agent import STANDING
from legion.domain.agents.teams import Crew, RolePart
from legion.domain.errors import LegionError
from legion.domain.runs import PLANNER, agent_seat, plan_seat
from legion.domain.scheduling.admission import StartCandidate
from legion.domain.tickets.ticket import State, Ticket
from legion.drivers import registry
from legion.gateway.access.routing import Route, route_for
from legion.gateway.files.passes import Pass
from legion.jobs.agent import model_access, spec, teams
from legion.jobs.agent.model_access import OWN_LOGIN, GatewayAccess
from legion.jobs.attempts import escalation
from legion.jobs.trees import Trees
from legion.store.board import crews, goals, verdicts
from legion.store.database.transactions import ReadTransaction
from legion.store.staff import agents

_MAY_START = (State.QUEUED, State.WORKING, State.REVIEWING)
_SOME_MODEL = "claude-"
"""If no model is named, Claude Code uses its default."""


@dataclass(frozen=True, kw_only=True)
class ModelUser:
    """A ticket, a standing agent or a plan whose next run needs a model."""

    candidate: StartCandidate
    project: int
    epic: str = ""
    cut_off: bool
    standing: bool = False
    accounts: tuple[str, ...]
    """Those that may be asked, the first choice first."""


def resolve_all(
    context: Trees, tx: ReadTransaction, live: Iterable[Ticket], configs: Mapping[int, ProjectConfig]
) -> tuple[ModelUser, ...]:
    seen = _AccountResolver(context, tx, configs)
    found = (seen.ticket(ticket) for ticket in live if ticket.state in _MAY_START)
    return (*(one for one in found if one is not None), *seen.agents(), *seen.plans())


@dataclass(frozen=True, kw_only=True)
class _RunPreview:
    """What routes and drivers need to know of a run before it starts."""

    command: str = ""
    driver: str = ""
    provider: str = ""
    model: str = ""
    agent: str = ""
    role: str = ""
    team: str = ""


class _AccountResolver:
    """For one decision. What many tickets share is looked up once."""

    def __init__(self, context: Trees, tx: ReadTransaction, configs: Mapping[int, ProjectConfig]) -> None:
        self._context = context
        self._tx = tx
        self._configs = configs
        self._routes = _routes()
        self._crews: dict[str, Crew] = {}
        self._accounts: dict[_RunPreview, tuple[str, ...]] = {}
        self._known: dict[tuple[int, str, str], bool] = {}

    def ticket(self, ticket: Ticket) -> ModelUser | None:
        spec = ticket.spec
        if spec.checkpoint or spec.undoes is not None:
            return None
        seat = self._reader(ticket) if ticket.state is State.REVIEWING else self._worker(ticket)
        if seat is None or not self._needs_model(ticket.project, seat):
            return None
        return ModelUser(
            candidate=ticket.id,
            project=ticket.project,
            epic=spec.epic,
            cut_off=ticket.interrupted,
            accounts=self._accounts_of(seat),
        )

    def agents(self) -> Iterator[ModelUser]:
        for one in agents.standing(self._tx):
            accounts = self._accounts_of(_RunPreview(driver=one.driver, model=one.model, agent=one.id, role=one.role))
            yield ModelUser(
                candidate=agent_seat(one.number),
                project=one.project,
                cut_off=one.owes,
                standing=True,
                accounts=accounts,
            )

    def plans(self) -> Iterator[ModelUser]:
        wanted = self._context.user.planner
        for one in goals.being_planned(self._tx):
            seat = _RunPreview(driver=wanted.driver or CLAUDE, model=one.model or wanted.model, role=PLANNER)
            if self._needs_model(one.project, seat):
                accounts = self._accounts_of(seat)
                yield ModelUser(
                    candidate=plan_seat(one.id), project=one.project, cut_off=False, standing=True, accounts=accounts
                )

    def _worker(self, ticket: Ticket) -> _RunPreview | None:
        spec, crew = ticket.spec, self._crew(ticket)
        stage = teams.at_turn(self._tx, ticket, crew)
        role, advises = stage.role, stage.part is RolePart.ADVISE
        if spec.driver == STANDING and not advises:
            return None
        return _RunPreview(
            command="" if advises else spec.command,
            driver=(role.driver if advises else escalation.driver(self._context, ticket)) or spec.driver,
            provider=role.provider,
            model=role.model if advises else escalation.model(self._context, ticket),
            role=role.name,
            team=crew.team,
        )

    def _reader(self, ticket: Ticket) -> _RunPreview | None:
        pending = verdicts.pending(self._tx, ticket)
        if not pending:
            return None
        crew, wanted = self._crew(ticket), self._context.user.reviewer
        stage = crew.stage(pending[0].reviewer)
        if stage is None:
            # The project's policy added it; its role is read from files when it starts.
            return _RunPreview(
                driver=wanted.driver or CLAUDE, model=wanted.model, role=pending[0].reviewer, team=crew.team
            )
        role = stage.role
        return _RunPreview(
            driver=role.driver or wanted.driver or CLAUDE,
            provider=role.provider,
            model=role.model or wanted.model,
            role=role.name,
            team=crew.team,
        )

    def _crew(self, ticket: Ticket) -> Crew:
        name = ticket.spec.crew
        if name not in self._crews:
            self._crews[name] = crews.get(self._tx, name)
        return self._crews[name]

    def _needs_model(self, project: int, seat: _RunPreview) -> bool:
        key = (project, seat.command, seat.driver)
        if key not in self._known:
            try:
                chosen = spec.choose_program(self._context, self._configs[project], seat.command, seat.driver)
                self._known[key] = chosen.capabilities.models
            except (LegionError, KeyError):
                self._known[key] = False
        return self._known[key]

    def _accounts_of(self, seat: _RunPreview) -> tuple[str, ...]:
        if seat not in self._accounts:
            self._accounts[seat] = _accounts(self._context, self._routes, seat)
        return self._accounts[seat]


def _accounts(context: Trees, routes: tuple[Route, ...], seat: _RunPreview) -> tuple[str, ...]:
    try:
        way = model_access.choose(context, seat.provider)
    except LegionError:
        # The run would not start, and reports then what is missing.
        return (OWN_LOGIN,)
    if not isinstance(way, GatewayAccess):
        return (OWN_LOGIN,)
    model = seat.model or context.user.claude.model
    pass_ = Pass(run="", ticket=0, project=0, agent=seat.agent, provider=way.provider, role=seat.role, team=seat.team)
    route = route_for(routes, pass_, registry.default().model_pattern(model) if model else _SOME_MODEL)
    return tuple(dict.fromkeys(target.provider for target in route.to))


def _routes() -> tuple[Route, ...]:
    try:
        return model_access.known_routes()
    except LegionError:
        # A file that cannot be read is reported elsewhere.
        return ()
