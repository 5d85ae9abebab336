"""Reads what holds starts (provider limits, budgets, the person's settings), and stops runs whose budget is spent.

The work of a stopped run is saved like that of any other.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from legion.config.files.project import ProjectConfig
from legion.config.sections import limits as config
from legion.domain.questions import Question, QuestionKind, SettledBy
from legion.domain.rules import Rule
from legion.domain.runs import Run
from legion.domain.scheduling import throttle
from legion.domain.scheduling.admission import AdmissionState, HoldReason, StartCandidate
from legion.domain.scheduling.budgets import BudgetBalance, scope_of
from legion.domain.scheduling.throttle import ThrottleSettings
from legion.domain.tickets.ticket import ParkReason, Ticket
from legion.jobs.board import Board
from legion.jobs.scheduling import accounts
from legion.jobs.scheduling.accounts import ModelUser
from legion.jobs.supervise.usage import budgets, over_budget_file, purse
from legion.jobs.trees import Trees
from legion.runner import launch
from legion.store.board import questions, tickets
from legion.store.database.transactions import ReadTransaction
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
    if not limits and not limited and user.rhythm == config.StartSettings():
        return AdmissionState()
    known = tuple(live)
    served = accounts.resolve_all(context, tx, known, configs) if limits or limited else ()
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
