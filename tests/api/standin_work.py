"""The part of the stand-in about what work costs."""

from __future__ import annotations

from legion.wire.tickets import UsageLine
from legion.wire.usage import UsageReport, UsageShare


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

    def _ask(self, name: str) -> None:
        raise NotImplementedError

    def usage(self, cwd: str | None, by: str, /) -> UsageReport:
        self._ask("usage")
        return UsageReport(by=by, project="shop", total=a_share("", 0.5), shares=self.shares)
