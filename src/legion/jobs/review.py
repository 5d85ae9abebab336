"""The review job: one reader reads a ticket's change in a checkout of its own, and its verdict is weighed.

Steps, each of which may find its work done already: checkout, setup, spec, runner, wait, conclude. The run's row is
written in the transaction that claims the job. What the reader leaves in its checkout is thrown away; only its last
message counts. Where nobody is left to read, the job only says what the readings come to.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from legion.domain.errors import Conflict
from legion.domain.jobs import Claim
from legion.domain.runs import MOST_GENERATIONS, Outcome, Run
from legion.domain.teams import Part
from legion.domain.tickets import Park, ParkReason, State, Step, Ticket
from legion.domain.verdicts import OVERRULED, Malformed, Reading, Weighed, findings_of, parse, weigh
from legion.jobs import (
    asking,
    attending,
    claude,
    climbing,
    environment,
    judging,
    listening,
    pacing,
    quota,
    readers,
    reading,
    rounds,
    sight,
)
from legion.jobs.access import NoAccess
from legion.jobs.agents import NoProgram
from legion.jobs.world import Workshop, World
from legion.runner.launch import Ended, Lost
from legion.store import jobs, runs, tickets, verdicts
from legion.store.database import ReadTransaction, Transaction
from legion.system import crash
from legion.system.crash import Point

_READ = (State.REVIEWING, State.LANDING, State.DONE)
"""Where a change may be read: before it lands, while it does and after."""
_MOST_REFUSED = 2
"""Answers that cannot be used: after the first the reader is asked once more."""
_TOO_LATE = "stopped before its program was started"
_OPENED_NOTHING = "it opened no file, and judged by the difference in its prompt alone"


@dataclass(frozen=True, kw_only=True)
class _End:
    """How a reader's run ended, and what came of it."""

    outcome: Outcome
    detail: str
    weighed: Weighed | None = None
    refused: str = ""
    """Why its answer cannot be used."""
    final: bool = False
    """Nobody asks again."""
    waits: Park | None = None
    """What keeps it from reading now."""


def begin(tx: Transaction, ticket_id: int) -> None:
    """The run of the next reader, unless one has begun. Raises Conflict where there is nothing to do."""
    if _run(tx, ticket_id) is not None:
        return
    ticket = tickets.get(tx, ticket_id)
    pending = verdicts.pending(tx, ticket) if ticket.state in _READ else ()
    if pending:
        runs.start(tx, ticket_id, pending[0].attempt, role=pending[0].reader, part=Part.READ)
    elif ticket.state is not State.REVIEWING:
        raise Conflict(f"There is nothing to read of ticket {ticket_id}.")


def review(world: World, claim: Claim) -> None:
    with world.store.read() as tx:
        ticket = tickets.get(tx, claim.subject)
        this_run = _run(tx, ticket.id)
        mine = _reading(tx, ticket, this_run) if this_run is not None else None
    shop = world.workshop(ticket.project)
    end = None
    if this_run is not None:
        end = _end(world, shop, ticket, mine, this_run)
        environment.release(world, this_run, end.outcome)
        claude.let_go(world, this_run)
        asking.close_all(world, this_run)
    _conclude(world, shop, claim, this_run, mine, end)
    if this_run is not None:
        shop.worktrees.discard(this_run.seat)


def _run(tx: ReadTransaction, ticket_id: int) -> Run | None:
    """The reader at work."""
    return next((run for run in runs.active_of(tx, ticket_id) if run.part is Part.READ), None)


def _reading(tx: ReadTransaction, ticket: Ticket, this_run: Run) -> Reading | None:
    """What the run is for; None where its ticket has gone on without it."""
    pending = verdicts.pending(tx, ticket) if ticket.state in _READ else ()
    return next((one for one in pending if one.reader == this_run.role and one.attempt == this_run.attempt), None)


def _end(world: World, shop: Workshop, ticket: Ticket, mine: Reading | None, this_run: Run) -> _End:
    try:
        ended = _until_end(world, shop, ticket, mine, this_run)
    except NoProgram as missing:
        return _End(outcome=Outcome.NOT_STARTED, detail=missing.message, refused=missing.message, final=True)
    except NoAccess as missing:
        wait = Park(ParkReason.PROVIDER, missing.message)
        return _End(outcome=Outcome.REFUSED, detail=missing.message, waits=wait)
    if ended is None:
        return _End(outcome=Outcome.STOPPED, detail=_TOO_LATE)
    return _judge(world, shop, ticket, mine, this_run, ended)


def _until_end(
    world: World, shop: Workshop, ticket: Ticket, mine: Reading | None, this_run: Run
) -> Ended | Lost | None:
    def prepare() -> None:
        assert mine is not None, "only what is wanted is prepared"
        reading.prepare(world, shop, ticket, mine, this_run)

    def start() -> None:
        crash.reach(Point.REVIEW_BEFORE_LAUNCH)
        world.launcher.start(world.data.runs / this_run.name)
        crash.reach(Point.REVIEW_AFTER_LAUNCH)

    asker = asking.Asker(project=ticket.project, ticket=ticket.id)
    return attending.until_end(
        world,
        this_run,
        wanted=lambda: mine is not None and _wanted(world, mine),
        prepare=prepare,
        start=start,
        hear=listening.listener(world, asker, this_run),
    )


def _wanted(world: World, mine: Reading) -> bool:
    with world.store.read() as tx:
        ticket = tickets.get(tx, mine.ticket)
        return ticket.state in _READ and any(one.id == mine.id for one in verdicts.pending(tx, ticket))


def _judge(
    world: World, shop: Workshop, ticket: Ticket, mine: Reading | None, this_run: Run, ended: Ended | Lost
) -> _End:
    outcome, detail = judging.outcome(ended)
    plain = _End(outcome=outcome, detail=detail)
    match outcome:
        case Outcome.LOST if this_run.generation >= MOST_GENERATIONS:
            return _End(outcome=outcome, detail=detail, refused=f"{detail} {this_run.generation} times", final=True)
        case Outcome.STOPPED if (over := quota.exceeded(world, this_run)) is not None:
            return _End(outcome=outcome, detail=over.reason, refused=over.reason)
        case Outcome.STOPPED if empty := pacing.stopped_for_budget(world, this_run):
            # Nothing is begun again before there is something to spend, and the question is about that budget.
            return _End(outcome=outcome, detail=empty)
        case Outcome.LOST | Outcome.STOPPED | Outcome.INTERRUPTED:
            return plain
        case Outcome.LIMITED:
            until = judging.limit_ends(world, this_run, ended)
            wait = Park(ParkReason.LIMIT, f"the provider does not serve {this_run.role} for now: {detail}", until)
            return _End(outcome=outcome, detail=detail, waits=wait)
        case Outcome.OUT_OF_BUDGET:
            wait = Park(ParkReason.BUDGET, f"{detail}: `legion resume {ticket.id}` gives it as much again")
            return _End(outcome=outcome, detail=detail, waits=wait)
        case Outcome.REFUSED:
            wait = Park(ParkReason.PROVIDER, f"{detail}: mend it, then `legion resume {ticket.id}`")
            return _End(outcome=outcome, detail=detail, waits=wait)
        case Outcome.NOT_STARTED:
            return _End(outcome=outcome, detail=detail, refused=detail, final=True)
        case Outcome.FAILED | Outcome.TIMED_OUT | Outcome.GAVE_UP:
            return _End(outcome=outcome, detail=detail, refused=f"the program did not come to its end ({detail})")
        case Outcome.FINISHED:
            return plain if mine is None else _read(world, shop, ticket, mine, this_run, plain)


def _read(world: World, shop: Workshop, ticket: Ticket, mine: Reading, this_run: Run, plain: _End) -> _End:
    """The verdict in its last message, weighed against what the same reader said before."""
    with world.store.read() as tx:
        said = verdicts.said_by(tx, ticket.id, mine.reader)
    try:
        verdict = parse(reading.last_words(world, this_run), reading.subject(world, shop, ticket, mine, this_run))
        weighed = weigh(verdict, findings_of(said), reading.since(shop, said[-1] if said else None, mine))
    except Malformed as wrong:
        return _End(outcome=plain.outcome, detail=f"no verdict: {wrong}", refused=str(wrong))
    if sight.opened(world, shop, mine, this_run) == frozenset():
        weighed = replace(weighed, notes=(*weighed.notes, _OPENED_NOTHING))
    but = f", though {OVERRULED}" if OVERRULED in weighed.notes else ""
    return _End(outcome=plain.outcome, detail=f"verdict: {weighed.verdict.ruling.value}{but}", weighed=weighed)


def _conclude(
    world: World, shop: Workshop, claim: Claim, this_run: Run | None, mine: Reading | None, end: _End | None
) -> None:
    """Run, verdict, ticket and claim change together. A person who took the ticket away meanwhile is not overruled."""
    with world.store.read() as tx:
        most = readers.rounds(world, shop, tickets.get(tx, claim.subject))
    crash.reach(Point.REVIEW_BEFORE_CONCLUDE)
    with world.store.write() as tx:
        if not jobs.still_mine(tx, claim):
            return
        if this_run is not None and end is not None:
            runs.end(tx, this_run.id, end.outcome, end.detail)
        ticket = tickets.get(tx, claim.subject)
        wanted = mine is not None and any(one.id == mine.id for one in verdicts.pending(tx, ticket))
        if wanted and mine is not None and end is not None:
            _write_down(tx, ticket, mine, end)
        if ticket.state is State.REVIEWING:
            waits: Step | None = end.waits if end is not None and wanted else None
            step = waits or rounds.next_step(tx, ticket, most=most, within=world.user.questions.answer_within)
            if step is not None:
                climbing.take(world, tx, ticket, judging.staggered(tx, step))
        jobs.finish(tx, claim)
    crash.reach(Point.REVIEW_AFTER_CONCLUDE)


def _write_down(tx: Transaction, ticket: Ticket, mine: Reading, end: _End) -> None:
    if end.weighed is not None:
        verdicts.give(tx, mine.id, end.weighed.verdict, end.weighed.notes)
        return
    # A ticket that does not wait for the reading cannot be parked for it either.
    aside = end.waits.detail if end.waits is not None and ticket.state is not State.REVIEWING else ""
    if why := end.refused or aside:
        refused = verdicts.refuse(tx, mine.id, why)
        if end.final or aside or refused.refused >= _MOST_REFUSED:
            verdicts.give(tx, mine.id, None)
