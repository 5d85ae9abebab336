"""Usage of agents: tokens, money, requests and time, and its sums. Requests without a price are counted apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Sums over requests. Counts are tokens; `seconds` is the time that the model took."""

    requests: int = 0
    failed: int = 0
    """Requests that the provider or the gateway refused."""
    unpriced: int = 0
    """Requests to models without a known price: `usd` is without them."""
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    usd: float = 0.0
    seconds: float = 0.0

    @property
    def known_usd(self) -> float | None:
        return None if self.unpriced and not self.usd else self.usd

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            requests=self.requests + other.requests,
            failed=self.failed + other.failed,
            unpriced=self.unpriced + other.unpriced,
            input=self.input + other.input,
            output=self.output + other.output,
            cache_read=self.cache_read + other.cache_read,
            cache_write=self.cache_write + other.cache_write,
            usd=self.usd + other.usd,
            seconds=self.seconds + other.seconds,
        )


def total(parts: Iterable[Usage]) -> Usage:
    return sum(parts, Usage())


def since(reported: Usage, known: Usage) -> Usage:
    """The new tokens and dollars of a program whose counts continue from run to run; `known` is its last report.

    A report below that means that the program started to count from zero.
    """
    if reported.input + reported.output < known.input + known.output:
        return reported
    return replace(
        reported,
        input=reported.input - known.input,
        output=reported.output - known.output,
        cache_read=max(0, reported.cache_read - known.cache_read),
        cache_write=max(0, reported.cache_write - known.cache_write),
        usd=max(0.0, reported.usd - known.usd),
    )


@dataclass(frozen=True, kw_only=True)
class Spending:
    """What one run spent with one model of one provider on one day (UTC, as YYYY-MM-DD)."""

    run: int
    provider: str
    model: str
    day: str
    usage: Usage


@dataclass(frozen=True, kw_only=True)
class AgentSpending:
    """Dollars of a standing agent: those of its own turns, and of the tickets and planners that it started."""

    own: float = 0.0
    given: float = 0.0

    @property
    def total(self) -> float:
        return self.own + self.given


@dataclass(frozen=True, kw_only=True)
class ProviderLimit:
    """A provider's last statement about how much of its limit is used."""

    provider: str
    at: float
    status: int
    """The HTTP status of that answer."""
    span: str
    """The provider's word for the time that the limit is about."""
    utilization: float | None
    """1 is all of it."""
    resets_at: float | None


class UsageBy(Enum):
    """What a usage report is grouped by."""

    TICKET = "ticket"
    AGENT = "agent"
    MODEL = "model"
    DAY = "day"
    EPIC = "epic"
    ROLE = "role"
    PROJECT = "project"
    DRIVER = "driver"
    """Which agent program lands what, and at which cost."""


class AttemptFate(Enum):
    """What became of the attempt that a run belongs to."""

    LANDED = "landed"
    OPEN = "open"
    """Not known yet."""
    WASTED = "wasted"
    """It did not land."""
    NONE = "none"
    """A turn of a standing agent is no attempt."""


def fate(*, attempt: int, latest: int, done: bool, live: bool) -> AttemptFate:
    """Of an attempt, given its ticket's latest one and state. A ticket that ended without landing wasted all of
    them.
    """
    if attempt == latest and (done or live):
        return AttemptFate.LANDED if done else AttemptFate.OPEN
    return AttemptFate.WASTED


@dataclass(frozen=True, kw_only=True)
class RunUsage:
    """One run in a usage report."""

    run: int
    ticket: int | None
    """None for a turn of a standing agent."""
    title: str
    epic: str
    agent: str
    driver: str = ""
    """Empty: not known."""
    started_at: float
    ended_at: float | None
    fate: AttemptFate
    role: str = ""
    project: str = ""


@dataclass(frozen=True, kw_only=True)
class UsageSlice:
    """What one ticket, agent, model, day or epic took."""

    key: str
    usage: Usage = Usage()
    seconds: float = 0.0
    """Wall time while its agents worked."""
    runs: int = 0
    landed: int = 0
    """Tickets."""
    wasted: Usage = Usage()
    """Part of `usage`: by attempts that did not land. The next two likewise."""
    wasted_seconds: float = 0.0
    wasted_runs: int = 0

    @property
    def usd_per_landed(self) -> float | None:
        """Everything that was spent, waste included, for each ticket that landed. None: none, or it is not known."""
        usd = self.usage.known_usd
        return None if usd is None or not self.landed else usd / self.landed

    def __add__(self, other: UsageSlice) -> UsageSlice:
        return UsageSlice(
            key=self.key,
            usage=self.usage + other.usage,
            seconds=self.seconds + other.seconds,
            runs=self.runs + other.runs,
            landed=self.landed + other.landed,
            wasted=self.wasted + other.wasted,
            wasted_seconds=self.wasted_seconds + other.wasted_seconds,
            wasted_runs=self.wasted_runs + other.wasted_runs,
        )


DayOf = Callable[[float], str]
"""The day of a time in UTC, as YYYY-MM-DD. This module has no calendar."""


def report(
    by: UsageBy, work: Sequence[RunUsage], spending: Iterable[Spending], *, now: float, day_of: DayOf
) -> tuple[UsageSlice, ...]:
    """Slices in the order of their first run. Their sum is the same for every grouping."""
    spent: dict[int, list[Spending]] = {one.run: [] for one in work}
    for cost in spending:
        if cost.run in spent:
            spent[cost.run].append(cost)
    # A ticket lands once, however many runs its last attempt took.
    landing = {one.ticket: one.run for one in sorted(work, key=lambda one: one.run) if one.fate is AttemptFate.LANDED}
    found: dict[str, UsageSlice] = {}
    for one in sorted(work, key=lambda one: one.run):
        for piece in _pieces(by, one, spent[one.run], landing.get(one.ticket) == one.run, now, day_of):
            counted = piece if one.fate is not AttemptFate.WASTED else _as_waste(piece)
            found[piece.key] = found.get(piece.key, UsageSlice(key=piece.key)) + counted
    return tuple(found.values())


def clipped(work: Iterable[RunUsage], start: float) -> tuple[RunUsage, ...]:
    """A run that started before counts from then."""
    return tuple(replace(one, started_at=max(one.started_at, start)) for one in work)


def summed(shares: Iterable[UsageSlice]) -> UsageSlice:
    return sum(shares, UsageSlice(key=""))


def _as_waste(piece: UsageSlice) -> UsageSlice:
    return replace(piece, wasted=piece.usage, wasted_seconds=piece.seconds, wasted_runs=piece.runs)


def _pieces(
    by: UsageBy, work: RunUsage, spent: Sequence[Spending], lands: bool, now: float, day_of: DayOf
) -> list[UsageSlice]:
    """One run, split by the grouping. It counts as a run, and as a landing, in one of the parts."""
    ended = now if work.ended_at is None else work.ended_at
    whole = UsageSlice(key="", seconds=max(0.0, ended - work.started_at), runs=1, landed=int(lands))
    match by:
        case UsageBy.TICKET:
            return [replace(whole, key=str(work.ticket or ""), usage=total(one.usage for one in spent))]
        case UsageBy.AGENT:
            return [replace(whole, key=work.agent, usage=total(one.usage for one in spent))]
        case UsageBy.DRIVER:
            return [replace(whole, key=work.driver, usage=total(one.usage for one in spent))]
        case UsageBy.EPIC:
            return [replace(whole, key=work.epic, usage=total(one.usage for one in spent))]
        case UsageBy.ROLE:
            return [replace(whole, key=work.role, usage=total(one.usage for one in spent))]
        case UsageBy.PROJECT:
            return [replace(whole, key=work.project, usage=total(one.usage for one in spent))]
        case UsageBy.MODEL:
            # Wall time is that of the run, so all of it goes to its main model.
            main = max(spent, key=lambda one: (one.usage.usd, one.usage.requests, one.model), default=None)
            return [
                replace(whole, key=main.model if main else ""),
                *(UsageSlice(key=one.model, usage=one.usage) for one in spent),
            ]
        case UsageBy.DAY:
            days = _days(work.started_at, ended, day_of)
            last = replace(whole, key=days[-1][0], seconds=0.0)
            return [
                *(UsageSlice(key=day, seconds=seconds) for day, seconds in days),
                *(UsageSlice(key=one.day, usage=one.usage) for one in spent),
                last,
            ]


_DAY = 86_400.0


def _days(start: float, end: float, day_of: DayOf) -> list[tuple[str, float]]:
    """The days between two times, each with its seconds."""
    days, at = [], start
    while (midnight := (at // _DAY + 1) * _DAY) < end:
        days.append((day_of(at), midnight - at))
        at = midnight
    return [*days, (day_of(at), max(0.0, end - at))]
