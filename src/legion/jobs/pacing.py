"""What says when agents may begin, and what they may cost: limits of providers, budgets, and the person's rhythm.

Also ends runs whose budget is spent while they are at it. What they left is saved like any other's.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from legion.config import rhythm as config
from legion.config.project import ProjectConfig
from legion.domain import governor
from legion.domain.budgets import Budgets, Purse, purse, scope_of
from legion.domain.governor import Governing
from legion.domain.questions import Matter, Question, Settler
from legion.domain.rhythm import Beginner, Hold, Rhythm
from legion.domain.rules import Rule
from legion.domain.runs import Run
from legion.domain.tickets import ParkReason, Ticket
from legion.jobs import customers
from legion.jobs.customers import Customer
from legion.jobs.spending import day_of
from legion.jobs.world import World
from legion.runner import launch
from legion.store import questions, runs, tickets, usage
from legion.store.database import ReadTransaction
from legion.system import files

log = logging.getLogger(__name__)

_FOR_A_PERSON = (ParkReason.QUESTION, ParkReason.BUDGET, ParkReason.PROVIDER)
_DAY = 86_400.0


def rhythm(world: World, tx: ReadTransaction, live: Iterable[Ticket], configs: Mapping[int, ProjectConfig]) -> Rhythm:
    """As the settings and the store say at this moment."""
    user, now = world.user, world.clock()
    limits = usage.limits(tx) if user.governor.on else {}
    if not limits and not _budgets(world) and user.rhythm == config.Rhythm():
        return Rhythm()
    known = tuple(live)
    served = customers.all_of(world, tx, known, configs) if limits or _budgets(world) else ()
    begun = {_who(run): run.started_at for run in runs.active(tx)}
    asking = {question.ticket for question in questions.open_ones(tx)}
    pace = Rhythm(
        stagger=user.rhythm.stagger,
        quiet_until=_quiet_until(world, now),
        waiting=sum(1 for ticket in known if _waits_for_person(ticket) or ticket.id in asking),
        most_waiting=user.rhythm.waiting,
        last_start=max(begun.values(), default=None),
        # An attempt that a limit cut off has a wake of its own, and a person may have asked for it before.
        accounts={one.who: one.accounts for one in served if one.who in begun or not one.cut_off},
        at_work=frozenset(begun),
        readings={
            name: governor.read(limit, _governing(world), _room(world, name, served, configs), now)
            for name, limit in limits.items()
        },
        broke=_broke(world, tx, served, now),
    )
    return replace(pace, last_starts=_last_starts(pace, begun))


def _room(world: World, account: str, served: Iterable[Customer], configs: Mapping[int, ProjectConfig]) -> int:
    """How many agents could use it at once."""
    mine = [one for one in served if account in one.accounts]
    room = sum(configs[project].agents.parallel for project in {one.project for one in mine if not one.stands})
    return min(room + sum(1 for one in mine if one.stands), world.user.daemon.slots)


def _last_starts(pace: Rhythm, begun: Mapping[Beginner, float]) -> Mapping[str, float]:
    last: dict[str, float] = {}
    for who, started_at in begun.items():
        account = pace.serving(who)
        if account is not None:
            last[account] = max(started_at, last.get(account, started_at))
    return last


def _who(run: Run) -> Beginner:
    return run.ticket if run.ticket is not None else run.seat


def _governing(world: World) -> Governing:
    wanted = world.user.governor
    return Governing(on=wanted.on, slow_from=wanted.slow_from, stop_at=wanted.stop_at)


def enforce(world: World) -> None:
    """End every run whose budget is spent."""
    if not _budgets(world):
        return
    with world.store.read() as tx:
        left = _purse(world, tx)
        active = [(run, _epic(tx, run)) for run in runs.active(tx) if run.access]
    for run, epic in active:
        empty = left.empty(run.project, epic)
        if empty is not None and not _mark(world, run).exists():
            # The word comes first: whoever concludes the run must find it.
            files.write_whole(_mark(world, run), empty.words)
            log.warning("run %s is stopped: %s", run.name, empty.words)
            if not launch.stop(world.data.runs / run.name):
                _mark(world, run).unlink(missing_ok=True)


class Purser:
    """Asks the person once for each budget that is spent while somebody waits for it."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._open = True
        """Whether a question may wait; a new daemon does not know."""

    def ask(self, held: Mapping[Beginner, Hold]) -> None:
        wanted = {hold.empty.key: hold.empty for hold in held.values() if hold.empty is not None}
        if not wanted and not self._open:
            return
        with self._world.store.read() as tx:
            waiting = [one for one in questions.open_ones(tx) if _is_of_many(one)]
            new = [one for key, one in wanted.items() if questions.by_key(tx, key) is None]
            left = _purse(self._world, tx)
        over = [one.id for one in waiting if one.key not in wanted and not _still_empty(left, one)]
        self._open = bool(waiting or new)
        if not new and not over:
            return
        with self._world.store.write() as tx:
            for one in new:
                questions.ask(
                    tx,
                    key=one.key,
                    kind=Matter.BUDGET,
                    project=one.project,
                    words=one.question,
                    facts={"usd": f"{one.usd:g}"},
                    deadline=tx.now + self._world.user.questions.answer_within,
                )
            for number in over:
                if (question := questions.get(tx, number)).settled_at is None:
                    why = "there is something to spend again"
                    questions.settle(tx, number, question.fallback, why, by=Settler.END)


def _is_of_many(question: Question) -> bool:
    """Not a ticket's own budget, and not an agent's."""
    return question.kind is Matter.BUDGET and question.ticket is None and not question.agent


def _still_empty(left: Purse, question: Question) -> bool:
    kind, _, rest = scope_of(question.key).partition(":")
    epic = rest.partition(":")[2] if kind == "epic" else ""
    return any(one.key == question.key for one in left.empties(question.project, epic))


def _epic(tx: ReadTransaction, run: Run) -> str:
    return tickets.get(tx, run.ticket).wish.epic if run.ticket is not None else ""


def stopped_for_budget(world: World, run: Run) -> str:
    """Why the run was told to stop, where a budget was the reason."""
    with contextlib.suppress(FileNotFoundError):
        return _mark(world, run).read_text()
    return ""


def _mark(world: World, run: Run) -> Path:
    return world.data.runs / run.name / "over-budget"


def _waits_for_person(ticket: Ticket) -> bool:
    return ticket.parked is not None and ticket.parked.reason in _FOR_A_PERSON


def _quiet_until(world: World, now: float) -> float | None:
    quiet = world.user.rhythm.quiet
    if quiet is None:
        return None
    local = datetime.fromtimestamp(now).astimezone()
    left = quiet.left(local.hour * 60 + local.minute + local.second / 60)
    return None if left is None else now + left * 60


def _budgets(world: World) -> Budgets:
    wanted = world.user.budgets
    return Budgets(day=wanted.day_usd, project=wanted.project_usd, epic=wanted.epic_usd)


def _purse(world: World, tx: ReadTransaction) -> Purse:
    return purse(_budgets(world), usage.spent(tx), day_of(world.clock()), questions.more_money(tx))


def _broke(world: World, tx: ReadTransaction, served: Iterable[Customer], now: float) -> dict[Beginner, Hold]:
    if not _budgets(world):
        return {}
    left = _purse(world, tx)
    midnight = (now // _DAY + 1) * _DAY
    return {
        one.who: Hold(rule=Rule.BUDGET, why=empty.words, until=midnight if empty.daily else None, empty=empty)
        for one in served
        if (empty := left.empty(one.project, one.epic)) is not None
    }
