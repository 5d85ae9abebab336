"""The report of `legion usage`: tokens, money and time by ticket, model, day and so on. Read only."""

from __future__ import annotations

from legion.domain.errors import BadInput
from legion.domain.events import EventKind
from legion.domain.scheduling.usage import UsageBy, UsageSlice, clipped, report, summed
from legion.domain.tickets.ticket import Cause, ParkReason, State, Ticket
from legion.jobs.board import Board
from legion.jobs.supervise.usage import day_of
from legion.jobs.trees import Trees
from legion.service.plans import pages
from legion.service.projects import registry
from legion.service.projects.collect import ahead
from legion.service.shared.fragments import shaped, start_of
from legion.service.views.ticket_line import TicketLines
from legion.store import events
from legion.store.board import goals, questions, tickets
from legion.store.work import usage
from legion.wire.history import UsageReport, UsageShare, WorkSummary
from legion.wire.tickets import UsageLine


def usage_report(context: Board, cwd: str | None, by: str, since: str = "") -> UsageReport:
    """The usage of the folder's project, or of all projects if the folder belongs to none. `since`: a day of UTC."""
    cut = _cut(by)
    start = start_of(since)
    here = registry.find_or_none(context, cwd) if cwd and cut is not UsageBy.PROJECT else None
    with context.store.read() as tx:
        work = usage.work(tx, here.id if here else None, since=start)
        spending = usage.spending(tx, here.id if here else None, since=since)
    now = context.clock()
    if start is not None:
        work = clipped(work, start) if start <= now else ()
    titles = {str(one.ticket): one.title for one in work} if cut is UsageBy.TICKET else {}
    shares = report(cut, work, spending, now=now, day_of=day_of)
    return UsageReport(
        by=cut.value,
        since=since,
        project=here.name if here else None,
        total=share_line(summed(shares)),
        shares=[share_line(share, titles.get(share.key, "")) for share in shares],
    )


def _cut(word: str) -> UsageBy:
    try:
        return UsageBy(word)
    except ValueError:
        known = ", ".join(by.value for by in UsageBy)
        raise BadInput(f"There is no usage by {word!r}: choose one of {known}.") from None


def share_line(share: UsageSlice, title: str = "") -> UsageShare:
    usage, wasted = shaped(UsageLine, share.usage), shaped(UsageLine, share.wasted)
    return shaped(UsageShare, share, title=title, usage=usage, wasted=wasted)


_MOST = 2000
_HOUR = 3600.0
_FOR_A_PERSON = (ParkReason.QUESTION, ParkReason.BUDGET, ParkReason.PROVIDER, ParkReason.RED_BASELINE)


def stretch(context: Trees, cwd: str, hours: float | None) -> WorkSummary:
    """Summarize the work since the person last collected, or of the last `hours`."""
    project = registry.find(context, cwd)
    now = context.clock()
    with context.store.read() as tx:
        collected = events.latest(tx, project.id, EventKind.COLLECTED)
        if hours is not None:
            since, because = now - hours * _HOUR, f"the last {hours:g} hours"
        elif collected is not None:
            since, because = collected.at, "since you collected last"
        else:
            since, because = project.created_at, "since `legion init`"
        live = tickets.live(tx, project=project.id)
        ended = tickets.recent(tx, project.id, limit=_MOST, since=since)
        asking = {question.ticket for question in questions.open_ones(tx)}
        waiting = [one for one in live if one.id in asking or _waits(one)]
        lines = TicketLines(context, tx, [*live, *ended])
        moves = events.since(tx, project.id, EventKind.TICKET_MOVED, since)
        read = [one for one in goals.of_project(tx, project.id) if one.points and (one.moved_at >= since or one.open)]
        lines_of_goals = [pages.line(tx, one) for one in read]
        work = [one for one in usage.work(tx, project.id, since=since) if one.started_at >= since]
        spent = usage.spending(tx, project.id, first=work[0].run) if work else ()
    back = [event.data for event in moves if event.data.get("cause") and event.data.get("step") == "tryagain"]
    by_state = {
        state: [lines.line(one) for one in ended if one.state is state]
        for state in (State.DONE, State.FAILED, State.STOPPED)
    }
    shares = report(UsageBy.TICKET, work, spent, now=now, day_of=day_of)
    return WorkSummary(
        project=project.name,
        since=since,
        because=because,
        landed=by_state[State.DONE],
        failed=by_state[State.FAILED],
        stopped=by_state[State.STOPPED],
        waiting=[lines.line(one) for one in waiting],
        open=len(live),
        to_collect=ahead(context, project),
        goals=lines_of_goals,
        usage=share_line(summed(shares)),
        sent_back=len(back),
        conflicts=sum(1 for data in back if data["cause"] == Cause.CONFLICT.value),
    )


def _waits(ticket: Ticket) -> bool:
    return ticket.parked is not None and ticket.parked.reason in _FOR_A_PERSON
