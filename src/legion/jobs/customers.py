"""Who of those that could begin needs a model, and at whose account: what governors and budgets are about.

Knows nothing of limits. A route may lead a request to several providers, so an agent may have several accounts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from legion.config.project import ProjectConfig
from legion.config.user import CLAUDE
from legion.domain.agents import STANDING
from legion.domain.errors import LegionError
from legion.domain.rhythm import Beginner
from legion.domain.runs import agent_seat
from legion.domain.teams import Crew, Part
from legion.domain.tickets import State, Ticket
from legion.gateway.passes import Pass
from legion.gateway.routing import Route, route_for
from legion.jobs import access, agents, claude, climbing, teams
from legion.jobs.access import OWN_LOGIN, Served
from legion.jobs.world import World
from legion.store import agents as staff
from legion.store import crews, verdicts
from legion.store.database import ReadTransaction

_BEGINS = (State.QUEUED, State.WORKING, State.REVIEWING)
_SOME_MODEL = "claude-"
"""Where nobody named one: Claude Code asks for what its makers think best."""


@dataclass(frozen=True, kw_only=True)
class Customer:
    """A ticket or a standing agent whose next run needs a model."""

    who: Beginner
    project: int
    epic: str = ""
    cut_off: bool
    stands: bool = False
    accounts: tuple[str, ...]
    """Those that may be asked, the first choice first."""


def all_of(
    world: World, tx: ReadTransaction, live: Iterable[Ticket], configs: Mapping[int, ProjectConfig]
) -> tuple[Customer, ...]:
    seen = _Look(world, tx, configs)
    found = (seen.ticket(ticket) for ticket in live if ticket.state in _BEGINS)
    return (*(one for one in found if one is not None), *seen.agents())


@dataclass(frozen=True, kw_only=True)
class _Seat:
    """What is known of a run before it begins, as far as routes and drivers go."""

    command: str = ""
    driver: str = ""
    provider: str = ""
    model: str = ""
    agent: str = ""
    role: str = ""
    team: str = ""


class _Look:
    """One look at the board. What many tickets share is looked up once."""

    def __init__(self, world: World, tx: ReadTransaction, configs: Mapping[int, ProjectConfig]) -> None:
        self._world = world
        self._tx = tx
        self._configs = configs
        self._routes = _routes()
        self._crews: dict[str, Crew] = {}
        self._accounts: dict[_Seat, tuple[str, ...]] = {}
        self._known: dict[tuple[int, str, str], bool] = {}

    def ticket(self, ticket: Ticket) -> Customer | None:
        wish = ticket.wish
        if wish.checkpoint or wish.undoes is not None:
            return None
        seat = self._reader(ticket) if ticket.state is State.REVIEWING else self._worker(ticket)
        if seat is None or not self._needs_model(ticket.project, seat):
            return None
        return Customer(
            who=ticket.id,
            project=ticket.project,
            epic=wish.epic,
            cut_off=ticket.interrupted,
            accounts=self._of(seat),
        )

    def agents(self) -> Iterator[Customer]:
        for one in staff.standing(self._tx):
            accounts = self._of(_Seat(model=one.model, agent=one.id, role=one.role))
            who = agent_seat(one.number)
            yield Customer(who=who, project=one.project, cut_off=one.owes, stands=True, accounts=accounts)

    def _worker(self, ticket: Ticket) -> _Seat | None:
        wish, crew = ticket.wish, self._crew(ticket)
        stage = teams.at_turn(self._tx, ticket, crew)
        role, advises = stage.role, stage.part is Part.ADVISE
        if wish.driver == STANDING and not advises:
            return None
        return _Seat(
            command="" if advises else wish.command,
            driver=(role.driver if advises else "") or wish.driver,
            provider=role.provider,
            model=role.model if advises else climbing.model(self._world, ticket),
            role=role.name,
            team=crew.team,
        )

    def _reader(self, ticket: Ticket) -> _Seat | None:
        pending = verdicts.pending(self._tx, ticket)
        if not pending:
            return None
        crew, wanted = self._crew(ticket), self._world.user.reviewer
        stage = crew.stage(pending[0].reader)
        if stage is None:
            # The project's policy added it; its role is read from files when it begins.
            return _Seat(driver=wanted.driver or CLAUDE, model=wanted.model, role=pending[0].reader, team=crew.team)
        role = stage.role
        return _Seat(
            driver=role.driver or wanted.driver or CLAUDE,
            provider=role.provider,
            model=role.model or wanted.model,
            role=role.name,
            team=crew.team,
        )

    def _crew(self, ticket: Ticket) -> Crew:
        name = ticket.wish.crew
        if name not in self._crews:
            self._crews[name] = crews.get(self._tx, name)
        return self._crews[name]

    def _needs_model(self, project: int, seat: _Seat) -> bool:
        key = (project, seat.command, seat.driver)
        if key not in self._known:
            try:
                chosen = agents.agent(self._world, self._configs[project], seat.command, seat.driver)
                self._known[key] = chosen.argv is None
            except (LegionError, KeyError):
                self._known[key] = False
        return self._known[key]

    def _of(self, seat: _Seat) -> tuple[str, ...]:
        if seat not in self._accounts:
            self._accounts[seat] = _accounts(self._world, self._routes, seat)
        return self._accounts[seat]


def _accounts(world: World, routes: tuple[Route, ...], seat: _Seat) -> tuple[str, ...]:
    try:
        way = access.choose(world, seat.provider)
    except LegionError:
        # Nothing begins without a way to a model, and what is missing is told then.
        return (OWN_LOGIN,)
    if not isinstance(way, Served):
        return (OWN_LOGIN,)
    model = seat.model or world.user.claude.model
    pass_ = Pass(run="", ticket=0, project=0, agent=seat.agent, provider=way.provider, role=seat.role, team=seat.team)
    route = route_for(routes, pass_, claude.pattern(model) if model else _SOME_MODEL)
    return tuple(dict.fromkeys(target.provider for target in route.to))


def _routes() -> tuple[Route, ...]:
    try:
        return access.known_routes()
    except LegionError:
        # A file that cannot be read is told of by others.
        return ()
