"""The head and its machines as placement sees them, with what runs there now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime

from legion.config.sections.limits import hours_of
from legion.domain.agents.teams import Crew, TeamStage
from legion.domain.machines.condition import condition
from legion.domain.machines.leases import LeaseTimes
from legion.domain.machines.machine import Machine
from legion.domain.machines.placement import RunPlace
from legion.domain.scheduling.job_kinds import READS, TAKES_A_SLOT, JobKind
from legion.domain.tickets.ticket import State, Ticket
from legion.jobs.agent import model_access, teams
from legion.jobs.context import Context
from legion.store.board import crews, verdicts
from legion.store.database.transactions import ReadTransaction
from legion.store.work import machines

TRAVELS = frozenset({JobKind.RUN, JobKind.REVIEW, JobKind.PLAN})
"""The jobs whose runner may be on a machine."""
_NEEDS_NO_MODEL = frozenset({JobKind.RUN})
"""Those of them that may work without a model: a ticket's own command."""


def travels(context: Context) -> frozenset[JobKind]:
    """The person's own login stays on the head, and so do reviews and plans where it is the only access to a model."""
    try:
        access = model_access.choose(context, "")
    except model_access.NoModelAccess:
        return _NEEDS_NO_MODEL
    return _NEEDS_NO_MODEL if isinstance(access, model_access.OwnLogin) else TRAVELS


def places(
    context: Context, tx: ReadTransaction, at: Mapping[tuple[JobKind, int], str], now: float
) -> tuple[RunPlace, ...]:
    """The head first. `at`: the machine of each job that runs."""
    builders = Counter(machine for (kind, _), machine in at.items() if kind in TAKES_A_SLOT and kind not in READS)
    readers = Counter(machine for (kind, _), machine in at.items() if kind in READS)
    settings = context.user.daemon
    head = RunPlace(
        name=context.machine,
        head=True,
        slots=settings.slots,
        labels=frozenset(settings.labels),
        builders=builders[context.machine],
        readers=readers[context.machine],
    )
    others = [
        _place(one, context.machines.times, now, builders=builders[one.name], readers=readers[one.name])
        for one in machines.all(tx)
        if one.name != context.machine
    ]
    return (head, *others)


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
    return JobKind.REVIEW, crew.stage(pending[0].reader) if pending else None


def _place(machine: Machine, times: LeaseTimes, now: float, *, builders: int, readers: int) -> RunPlace:
    quiet_until = _quiet_until(machine.quiet_hours, now)
    return RunPlace(
        name=machine.name,
        slots=machine.slots,
        labels=frozenset(machine.labels),
        state=condition(machine, now=now, quiet=quiet_until is not None, silent_after=times.quiet),
        quiet_until=quiet_until,
        mirrors=frozenset(machine.mirrors),
        toolchain=machine.toolchain,
        builders=builders,
        readers=readers,
    )


def _quiet_until(hours: str, now: float) -> float | None:
    quiet = hours_of(hours)
    if quiet is None:
        return None
    local = datetime.fromtimestamp(now).astimezone()
    left = quiet.left(local.hour * 60 + local.minute + local.second / 60)
    return None if left is None else now + left * 60
