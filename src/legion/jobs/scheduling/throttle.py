"""Reads what holds starts (provider limits, budgets, the person's settings), and stops runs whose budget is spent.

The work of a stopped run is saved like that of any other.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from legion.config.files.project import ProjectConfig
from legion.config.files.user import CLAUDE
from legion.config.sections.limits import StartSettings
from legion.domain.agents.agent import STANDING
from legion.domain.agents.teams import Crew, RolePart, TeamStage
from legion.domain.errors import LegionError
from legion.domain.plans.plan import PlanSource
from legion.domain.questions import Question, QuestionKind, SettledBy
from legion.domain.rules import Rule
from legion.domain.runs import PLANNER, Run, agent_seat, plan_seat
from legion.domain.scheduling import throttle
from legion.domain.scheduling.admission import AdmissionState, HoldReason, StartCandidate
from legion.domain.scheduling.budgets import BudgetBalance, scope_of
from legion.domain.scheduling.job_places import JobKind
from legion.domain.scheduling.throttle import ThrottleSettings
from legion.domain.tickets.ticket import ParkReason, State, Ticket
from legion.drivers import registry
from legion.gateway.access.routing import Route, route_for
from legion.gateway.files.passes import Pass
from legion.jobs.agent import model_access, spec, teams
from legion.jobs.agent.model_access import OWN_LOGIN, GatewayAccess
from legion.jobs.attempts import escalation
from legion.jobs.board import Board
from legion.jobs.supervise.usage import budgets, over_budget_file, purse
from legion.jobs.trees import Trees
from legion.runner import launch
from legion.store.board import crews, goals, questions, tickets, verdicts
from legion.store.database.transactions import ReadTransaction
from legion.store.staff import agents
from legion.store.work import runs, usage
from legion.system import files

log = logging.getLogger(__name__)

_FOR_A_PERSON = (ParkReason.QUESTION, ParkReason.BUDGET, ParkReason.PROVIDER)
_DAY = 86_400.0


def admission_state(
    context: Trees, tx: ReadTransaction, live: Iterable[Ticket], configs: Mapping[int, ProjectConfig]
) -> AdmissionState:
    """What the settings and the store say now."""
    user, now, limited = context.user, context.clock(), budgets(context, tx)
    limits = usage.limits(tx) if user.governor.on else {}
    if not limits and not limited and user.rhythm == StartSettings():
        return AdmissionState()
    known = tuple(live)
    served = resolve_all(context, tx, known, configs) if limits or limited else ()
    started = {_candidate(run): run.started_at for run in runs.active(tx)}
    asking = {question.ticket for question in questions.open_ones(tx)}
    state = AdmissionState(
        stagger=user.rhythm.stagger,
        quiet_until=_quiet_until(context, now),
        waiting=sum(1 for ticket in known if _waits_for_person(ticket) or ticket.id in asking),
        most_waiting=user.rhythm.waiting,
        last_start=max(started.values(), default=None),
        # An attempt that a limit interrupted has a wake time of its own, and a person may have resumed it earlier.
        accounts={one.candidate: one.accounts for one in served if one.candidate in started or not one.cut_off},
        at_work=frozenset(started),
        throttles={
            name: throttle.read(limit, _settings(context), _room(context, name, served, configs), now)
            for name, limit in limits.items()
        },
        over_budget=_over_budget(context, tx, served, now),
    )
    return replace(state, last_starts=_last_starts(state, started))


def _room(context: Board, account: str, served: Iterable[ModelUser], configs: Mapping[int, ProjectConfig]) -> int:
    """How many agents could use the account at once."""
    mine = [one for one in served if account in one.accounts]
    building = {one.project for one in mine if not one.standing} & configs.keys()
    room = sum(configs[project].agents.parallel for project in building)
    return min(room + sum(1 for one in mine if one.standing), context.user.daemon.room)


def _last_starts(state: AdmissionState, started: Mapping[StartCandidate, float]) -> Mapping[str, float]:
    last: dict[str, float] = {}
    for candidate, started_at in started.items():
        account = state.account_of(candidate)
        if account is not None:
            last[account] = max(started_at, last.get(account, started_at))
    return last


def _candidate(run: Run) -> StartCandidate:
    return run.ticket if run.ticket is not None else run.seat


def _settings(context: Board) -> ThrottleSettings:
    wanted = context.user.governor
    return ThrottleSettings(on=wanted.on, slow_from=wanted.slow_from, stop_at=wanted.stop_at)


def enforce(context: Board) -> None:
    """Stop every run whose budget is spent."""
    with context.store.read() as tx:
        if not budgets(context, tx):
            return
        left = purse(context, tx)
        active = [(run, _epic(tx, run)) for run in runs.active(tx) if run.access]
    for run, epic in active:
        empty = left.empty(run.project, epic)
        if empty is not None and not over_budget_file(context, run).exists():
            # Before the stop: the job that concludes the run reads the reason there.
            files.write_atomic(over_budget_file(context, run), empty.words)
            log.warning("budget: stopping run %s: %s", run.name, empty.words)
            if not launch.stop(context.data.runs / run.name):
                over_budget_file(context, run).unlink(missing_ok=True)


class BudgetAsker:
    """Asks the person once for each spent budget that holds a start."""

    def __init__(self, context: Board) -> None:
        self._context = context
        self._open = True
        """Whether a question may be open; a new daemon does not know."""

    def ask(self, held: Mapping[StartCandidate, HoldReason]) -> None:
        wanted = {hold.empty.key: hold.empty for hold in held.values() if hold.empty is not None}
        if not wanted and not self._open:
            return
        with self._context.store.read() as tx:
            waiting = [one for one in questions.open_ones(tx) if _is_of_many(one)]
            new = [one for key, one in wanted.items() if questions.by_key(tx, key) is None]
            left = purse(self._context, tx)
        over = [one.id for one in waiting if one.key not in wanted and not _still_empty(left, one)]
        self._open = bool(waiting or new)
        if not new and not over:
            return
        with self._context.store.write() as tx:
            for one in new:
                questions.ask(
                    tx,
                    key=one.key,
                    kind=QuestionKind.BUDGET,
                    project=one.project,
                    words=one.question,
                    facts={"usd": f"{one.usd:g}"},
                    deadline=tx.now + self._context.user.questions.answer_within,
                )
            for number in over:
                if (question := questions.get(tx, number)).settled_at is None:
                    why = "the budget has money again"
                    questions.settle(tx, number, question.fallback, why, by=SettledBy.END)


def _is_of_many(question: Question) -> bool:
    """The question is about the budget of a day, a project or an epic, not about that of a ticket or an agent."""
    return question.kind is QuestionKind.BUDGET and question.ticket is None and not question.agent


def _still_empty(left: BudgetBalance, question: Question) -> bool:
    kind, _, rest = scope_of(question.key).partition(":")
    epic = rest.partition(":")[2] if kind == "epic" else ""
    return any(one.key == question.key for one in left.empties(question.project, epic))


def _epic(tx: ReadTransaction, run: Run) -> str:
    return tickets.get(tx, run.ticket).spec.epic if run.ticket is not None else ""


def _waits_for_person(ticket: Ticket) -> bool:
    return ticket.parked is not None and ticket.parked.reason in _FOR_A_PERSON


def _quiet_until(context: Board, now: float) -> float | None:
    quiet = context.user.rhythm.quiet
    if quiet is None:
        return None
    local = datetime.fromtimestamp(now).astimezone()
    left = quiet.left(local.hour * 60 + local.minute + local.second / 60)
    return None if left is None else now + left * 60


def _over_budget(
    context: Board, tx: ReadTransaction, served: Iterable[ModelUser], now: float
) -> dict[StartCandidate, HoldReason]:
    if not budgets(context, tx):
        return {}
    left = purse(context, tx)
    midnight = (now // _DAY + 1) * _DAY
    return {
        one.candidate: HoldReason(
            rule=Rule.BUDGET, why=empty.words, until=midnight if empty.daily else None, empty=empty
        )
        for one in served
        if (empty := left.empty(one.project, one.epic)) is not None
    }


# Resolves which tickets and agents need a model for their next run, and which accounts they would use.
#
# A route may lead a request to several providers, so one agent may have several accounts. Limits are read elsewhere.

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
        wanted, reader = self._context.user.planner, self._context.user.reviewer
        for one in goals.being_planned(self._tx):
            own = reader if one.source is PlanSource.READ else wanted
            driver, model = own.driver or wanted.driver or CLAUDE, one.model or own.model or wanted.model
            seat = _RunPreview(driver=driver, model=model, role=PLANNER)
            if self._needs_model(one.project, seat):
                accounts = self._accounts_of(seat)
                yield ModelUser(
                    candidate=plan_seat(one.id), project=one.project, cut_off=False, standing=True, accounts=accounts
                )

    def _worker(self, ticket: Ticket) -> _RunPreview | None:
        spec, crew = ticket.spec, self._crew(ticket)
        stage = teams.at_turn(self._tx, ticket, crew)
        role, advises = stage.role, stage.part is RolePart.ADVISE
        own = replace(role, driver="", model="") if stage.part is RolePart.BUILD else role
        if spec.driver == STANDING and not advises:
            return None
        return _RunPreview(
            command="" if advises else spec.command,
            driver=own.driver or ("" if advises else escalation.driver(self._context, ticket)) or spec.driver,
            provider=role.provider,
            model=own.model if advises else own.model or escalation.model(self._context, ticket),
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


# Which jobs may run on machines, and the labels that roles ask for.

TRAVELS = frozenset({JobKind.RUN, JobKind.REVIEW, JobKind.PLAN})
"""The jobs whose runner may be on a machine."""
_NEEDS_NO_MODEL = frozenset({JobKind.RUN})
"""Those of them that may work without a model: a ticket's own command."""


def travels(context: Trees) -> frozenset[JobKind]:
    """The person's own login stays on the head, and so do reviews and plans where it is the only access to a model."""
    try:
        access = model_access.choose(context, "")
    except model_access.NoModelAccess:
        return _NEEDS_NO_MODEL
    return _NEEDS_NO_MODEL if isinstance(access, model_access.OwnLogin) else TRAVELS


def staying(context: Trees, configs: Mapping[int, ProjectConfig]) -> frozenset[int]:
    """Projects with git filters: what those need is in the person's repository, which no machine has."""
    found = (context.project(project) for project in configs)
    return frozenset(project.id for project in found if project.hub.filters(project.target) is not None)


def role_labels(tx: ReadTransaction, live: Iterable[Ticket]) -> dict[tuple[JobKind, int], frozenset[str]]:
    """The labels that the role which works next on each ticket asks for."""
    choosy: dict[str, Crew | None] = {}
    """Crews with a role that asks for labels, by digest."""
    found: dict[tuple[JobKind, int], frozenset[str]] = {}
    for ticket in live:
        if ticket.spec.crew not in choosy:
            crew = crews.get(tx, ticket.spec.crew)
            choosy[ticket.spec.crew] = crew if any(stage.role.on for stage in crew.stages) else None
        if (mine := choosy[ticket.spec.crew]) is not None:
            kind, stage = _next_stage(tx, ticket, mine)
            found[kind, ticket.id] = frozenset(stage.role.on if stage else ())
    return found


def _next_stage(tx: ReadTransaction, ticket: Ticket, crew: Crew) -> tuple[JobKind, TeamStage | None]:
    if ticket.state is not State.REVIEWING:
        return JobKind.RUN, teams.at_turn(tx, ticket, crew)
    pending = verdicts.pending(tx, ticket)
    return JobKind.REVIEW, crew.stage(pending[0].reviewer) if pending else None
