"""`legion done`: what came of a stretch of work. Read only."""

from __future__ import annotations

from legion.domain.events import Kind
from legion.domain.tickets import Cause, ParkReason, State, Ticket
from legion.domain.usage import By, report, summed
from legion.jobs.spending import day_of
from legion.jobs.world import World
from legion.service import projects as project_cases
from legion.service import usage as usage_cases
from legion.service import views
from legion.service.board import Lines
from legion.store import events, questions, tickets, usage
from legion.wire.stretch import Stretch

_MOST = 2000
_HOUR = 3600.0
_FOR_A_PERSON = (ParkReason.QUESTION, ParkReason.BUDGET, ParkReason.PROVIDER, ParkReason.RED_BASELINE)


def stretch(world: World, cwd: str, hours: float | None) -> Stretch:
    """Since the person last collected, or for so many hours."""
    project = project_cases.find(world, cwd)
    now = world.clock()
    with world.store.read() as tx:
        collected = events.latest(tx, project.id, Kind.COLLECTED)
        if hours is not None:
            since, because = now - hours * _HOUR, f"the last {hours:g} hours"
        elif collected is not None:
            since, because = collected.at, "since you collected last"
        else:
            since, because = project.created_at, "since `legion init`"
        live = tickets.live(tx, project=project.id)
        ended = [one for one in tickets.recent(tx, project.id, limit=_MOST) if one.moved_at >= since]
        asking = {question.ticket for question in questions.open_ones(tx)}
        waiting = [one for one in live if one.id in asking or _waits(one)]
        lines = Lines(world, tx, [*live, *ended])
        moves = events.since(tx, project.id, Kind.TICKET_MOVED, since)
        work = [one for one in usage.work(tx, project.id) if one.started_at >= since]
        spent = usage.spending(tx, project.id)
    back = [event.data for event in moves if event.data.get("cause") and event.data.get("step") == "tryagain"]
    by_state = {
        state: [lines.line(one) for one in ended if one.state is state]
        for state in (State.DONE, State.FAILED, State.STOPPED)
    }
    shares = report(By.TICKET, work, spent, now=now, day_of=day_of)
    return Stretch(
        project=project.name,
        since=since,
        because=because,
        landed=by_state[State.DONE],
        failed=by_state[State.FAILED],
        stopped=by_state[State.STOPPED],
        waiting=[lines.line(one) for one in waiting],
        open=len(live),
        to_collect=views.ahead(world, project),
        usage=usage_cases.share_line(summed(shares)),
        sent_back=len(back),
        conflicts=sum(1 for data in back if data["cause"] == Cause.CONFLICT.value),
    )


def _waits(ticket: Ticket) -> bool:
    return ticket.parked is not None and ticket.parked.reason in _FOR_A_PERSON
