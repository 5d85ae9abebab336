"""The part of the stand-in about what work costs and what happened."""

from __future__ import annotations

from legion.wire.history import Events, HistoryLine
from legion.wire.tickets import Acted, Action, RewindTo, TicketLine, UsageLine
from legion.wire.usage import UsageReport, UsageShare, WorkSummary


def a_share(key: str, usd: float, **told: object) -> UsageShare:
    spent = UsageLine(requests=2, failed=0, input=1200, output=300, cache_read=0, cache_write=0, usd=usd, unpriced=0)
    nothing = UsageLine(requests=0, failed=0, input=0, output=0, cache_read=0, cache_write=0, usd=0.0, unpriced=0)
    share = UsageShare(
        key=key,
        title="",
        usage=spent,
        seconds=90.0,
        runs=1,
        landed=1,
        usd_per_landed=usd,
        wasted=nothing,
        wasted_seconds=0.0,
        wasted_runs=0,
    )
    for name, value in told.items():
        setattr(share, name, value)
    return share


class WorkStandIn:
    def reset_work(self) -> None:
        self.shares: list[UsageShare] = []
        self.happenings: list[HistoryLine] = []

    def _ask(self, name: str) -> None:
        raise NotImplementedError

    def _line(self, id: int) -> TicketLine:
        raise NotImplementedError

    def review(self, id: int, /) -> Acted:
        self._ask("review")
        return Acted(tickets=[id], message=f"Ticket {id} is being read.")

    def bounce(self, id: int, action: Action, /) -> Acted:
        self._ask("bounce")
        return Acted(tickets=[id], message=f"Ticket {id} goes back: {action.feedback}")

    def history(self, cwd: str | None, ticket: int | None, run: int | None, after: str, last: int, /) -> Events:
        self._ask("history")
        wanted = [one for one in self.happenings if ticket in (None, one.ticket) and run in (None, one.run)]
        shown = wanted[-last:] if last else wanted
        return Events(lines=shown, omitted=len(wanted) - len(shown), cursor="9:0:0")

    def stretch(self, cwd: str, hours: float | None, /) -> WorkSummary:
        self._ask("stretch")
        return WorkSummary(
            project="shop",
            since=1000.0,
            because="since you collected last",
            landed=[],
            failed=[],
            stopped=[],
            waiting=[],
            open=0,
            to_collect=0,
            usage=a_share("", 0.5),
            sent_back=0,
            conflicts=0,
        )

    def rewind(self, id: int, wanted: RewindTo, /) -> Acted:
        self._ask("rewind")
        self._line(id)
        return Acted(tickets=[id], message=f"Ticket {id} goes on from {wanted.to}.")

    def undo(self, id: int, /) -> Acted:
        self._ask("undo")
        self._line(id)
        return Acted(tickets=[id + 1], message=f"Ticket {id + 1} takes ticket {id} back.")

    def usage(self, cwd: str | None, by: str, /) -> UsageReport:
        self._ask("usage")
        return UsageReport(by=by, project="shop", total=a_share("", 0.5), shares=self.shares)
