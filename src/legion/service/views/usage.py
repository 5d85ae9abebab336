"""The report of `legion usage`: tokens, money and time by ticket, model, day and so on. Read only."""

from __future__ import annotations

from legion.domain.errors import BadInput
from legion.domain.scheduling.usage import UsageBy, UsageSlice, clipped, report, summed
from legion.jobs.board import Board
from legion.jobs.supervise.usage import day_of
from legion.service.projects import registry
from legion.service.shared.fragments import shaped
from legion.service.views.days import start_of
from legion.store.work import usage
from legion.wire.history import UsageReport, UsageShare
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
