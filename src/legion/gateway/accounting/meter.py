"""Measures every request (tokens, cost, time) and writes the ledger in batches. Independent of HTTP.

Open requests are in memory. A closed one is on disk within half a second; a full disk only delays it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
import uuid
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from legion.gateway.accounting.activity import RequestActivity
from legion.gateway.accounting.ledger import (
    LedgerPosition,
    LimitEntry,
    Line,
    RefusalEntry,
    RequestEntry,
    RequestError,
    facts_of,
    read,
)
from legion.gateway.accounting.limits import REFUSED
from legion.gateway.accounting.prices import PriceList
from legion.gateway.counting.counters import AnswerSummary, HasSummary
from legion.gateway.files.folder import GatewayFolder
from legion.gateway.files.passes import Pass, granted
from legion.gateway.json_text import dumps
from legion.gateway.recording.recorder import StreamRecorder

log = logging.getLogger("legion.gateway")

_BATCH = 0.5
_RETRY = 1.0
_MOST_RUNS = 10_000


@dataclass(eq=False)
class RequestRecord:
    """One request while it is open."""

    pass_: Pass
    provider: str = ""
    """The provider asked last; empty: the pass's own."""
    model: str = ""
    status: int = 0
    counter: HasSummary | None = None
    error: RequestError | None = None
    refused: RequestError | None = None
    """The reason, where the gateway itself refused the request."""
    skipped: list[str] = field(default_factory=list)
    """Providers of the route that were tried before, each with the reason why it did not answer."""
    cut: bool = False
    """The answer did not come to its end."""
    recorder: StreamRecorder | None = None
    """Only for runs that are recorded."""
    started: float = field(default_factory=time.monotonic)
    opened_at: float = field(default_factory=time.time)
    first: float | None = None

    def fail(self, error: RequestError) -> None:
        """The answer did not come to its end, for this reason."""
        self.cut, self.error = True, error

    def redact(self, secret: str | None) -> None:
        """Keep the secret out of the recording."""
        if self.recorder is not None and secret is not None:
            self.recorder.secrets.add(secret)

    @property
    def summary(self) -> AnswerSummary:
        return self.counter.summary if self.counter is not None else AnswerSummary()


@dataclass(kw_only=True)
class LastAnswer:
    """How the last request of a run ended, and since when its requests fail."""

    status: int = 0
    error: str = ""
    failures: int = 0
    failing_since: float = 0.0


class Meter:
    def __init__(self, folder: GatewayFolder, prices: PriceList) -> None:
        self._folder = folder
        self._prices = prices
        self._spent: dict[str, float] = defaultdict(float)
        self._last: dict[str, LastAnswer] = {}
        """By run, the most recent last; lost when the gateway ends."""
        self._open: dict[str, set[RequestRecord]] = defaultdict(set)
        self._activity = RequestActivity(folder, self._open_since)
        self._pending = bytearray()
        self._timer: asyncio.TimerHandle | None = None
        self._refusals = Refusals()
        self._minute: asyncio.TimerHandle | None = None
        self._file = ""
        self._complained = False

    def resume(self) -> None:
        """Continue the ledger of an earlier gateway: sum up what runs have spent, end a line that was cut off."""
        self._activity.write()
        files = sorted(self._folder.ledger.glob("*.jsonl"))
        if files:
            self._file = files[-1].name
            with files[-1].open("rb+") as last:
                if last.seek(0, os.SEEK_END) and last.seek(-1, os.SEEK_END) and last.read(1) != b"\n":
                    last.write(b"\n")
        runs = {one.pass_.run: one.since for _, one in granted(self._folder)}
        if not runs:
            return
        position = LedgerPosition(_day(min(runs.values())))
        while True:
            lines, behind = read(self._folder, position)
            for line in lines:
                if isinstance(line, RequestEntry) and line.run in runs:
                    self._spent[line.run] += line.usd or 0.0
            if behind == position:
                return
            position = behind

    def spent(self, run: str) -> float:
        """USD that the run has cost, its open requests included as far as they have reported usage."""
        counted = [one for one in self._open.get(run, ()) if one.counter is not None]
        return self._spent.get(run, 0.0) + sum(self._cost(one) or 0.0 for one in counted)

    def last(self, run: str) -> LastAnswer | None:
        """None where no request of the run has ended yet."""
        return self._last.get(run)

    def open_count(self, run: str) -> int:
        return len(self._open.get(run, ()))

    def has_price(self, model: str) -> bool:
        return self._prices.current().knows(model)

    def is_within(self, model: str, most_usd: float) -> bool:
        """Whether a million output tokens of the model cost at most this. False for a model without a price."""
        price = self._prices.current().output_price(model)
        return price is not None and price <= most_usd

    def open(self, pass_: Pass) -> RequestRecord:
        record = RequestRecord(pass_=pass_)
        self._open[pass_.run].add(record)
        self._activity.changed()
        return record

    def _open_since(self) -> dict[str, float]:
        return {run: min(one.opened_at for one in open_) for run, open_ in self._open.items() if open_}

    def close(self, record: RequestRecord) -> None:
        """The request has ended, in whatever way. May be called twice."""
        open_ = self._open.get(record.pass_.run, set())
        if record not in open_:
            return
        open_.discard(record)
        if not open_:
            del self._open[record.pass_.run]
        self._activity.changed()
        self._note_last(record)
        if record.refused is not None and not self._gets_line(
            RefusalGroup(status=record.status, error=record.refused, run=record.pass_.run)
        ):
            return
        entry = self._entry(record)
        self._spent[entry.run] += entry.usd or 0.0
        self._write_soon(entry)

    def _note_last(self, record: RequestRecord) -> None:
        """A request that its caller gave up says nothing about the provider."""
        if record.error in (RequestError.CALLER_GONE, RequestError.ENDED):
            return
        run = record.pass_.run
        last = self._last.pop(run, None) or LastAnswer()
        failed = record.status >= 400 or record.status == 0 or record.cut
        if failed and not last.failures:
            last.failing_since = time.monotonic()
        last.failures = last.failures + 1 if failed else 0
        last.status = record.status
        error = record.error or record.refused
        last.error = error.value if error is not None else record.summary.error or ""
        self._last[run] = last
        if len(self._last) > _MOST_RUNS:
            del self._last[next(iter(self._last))]

    def skip(self, record: RequestRecord, status: int, error: RequestError) -> None:
        """Write a line for a provider that was skipped for this reason. The request itself stays open."""
        self._write_soon(self._entry(replace(record, status=status, error=error, counter=None)))

    def refuse(self, status: int, error: RequestError | None, run: str = "") -> None:
        """A request was refused; `run` is empty where the caller is not known yet."""
        if error is None:
            return
        group = RefusalGroup(status=status, error=error, run=run)
        if self._gets_line(group):
            self._write_soon(refusal_entry(group))

    def note(self, limit: LimitEntry) -> None:
        self._write_soon(limit)
        if limit.status in REFUSED:
            # The run ends on this answer, and the daemon then reads the time of the reset from the ledger.
            self.write()

    def write(self) -> None:
        """Write everything to disk now; what cannot be written stays for the next attempt."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._pending:
            return
        # Never return to an older file, also when the clock was set back: readers have moved on.
        self._file = max(self._file, _day(time.time()))
        try:
            handle = os.open(
                self._folder.ledger / self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600
            )
            try:
                while self._pending:
                    del self._pending[: os.write(handle, self._pending)]
            finally:
                os.close(handle)
        except OSError as fault:
            if not self._complained:
                log.error("The ledger cannot be written (%s): make room in %s.", fault.strerror, self._folder.ledger)
            self._complained = True
            self._write_later(_RETRY)
        else:
            self._complained = False

    def _entry(self, record: RequestRecord) -> RequestEntry:
        pass_, summary, now = record.pass_, record.summary, time.monotonic()
        usage = summary.usage
        return RequestEntry(
            id=str(uuid.uuid4()),
            at=round(time.time(), 3),
            run=pass_.run,
            ticket=pass_.ticket,
            project=pass_.project,
            agent=pass_.agent,
            provider=record.provider or pass_.provider,
            model=summary.model or record.model,
            status=record.status,
            input=usage.input,
            output=usage.output,
            cache_read=usage.cache_read,
            cache_write=usage.cache_write,
            usd=self._cost(record),
            ms=round((now - record.started) * 1000),
            first_ms=None if record.first is None else round((record.first - record.started) * 1000),
            cut=record.cut,
            error=record.error.value if record.error is not None else summary.error,
        )

    def _cost(self, record: RequestRecord) -> float | None:
        prices, summary = self._prices.current(), record.summary
        # The model named in the answer is more exact. If it has no price, use the one in the request.
        known = summary.model if summary.model and prices.knows(summary.model) else record.model
        cost = prices.cost(known, summary.usage)
        return None if cost is None else round(cost, 9)

    def _gets_line(self, group: RefusalGroup) -> bool:
        gets_line = self._refusals.gets_line(group)
        if self._minute is None:
            self._minute = asyncio.get_running_loop().call_later(MINUTE, self._write_counted)
        return gets_line

    def _write_counted(self) -> None:
        """Write the refusals that were only counted, one line per group."""
        self._minute = None
        for one in self._refusals.take_counted():
            self._write_soon(one)
        if not self._refusals.is_empty:
            self._minute = asyncio.get_running_loop().call_later(MINUTE, self._write_counted)

    def end(self) -> None:
        """Write what is left before the process ends."""
        for one in self._refusals.take_counted(unfinished=True):
            self._write_soon(one)
        self.write()

    def _write_soon(self, line: Line) -> None:
        self._pending += encode(line)
        self._write_later(_BATCH)

    def _write_later(self, seconds: float) -> None:
        with contextlib.suppress(RuntimeError):  # no loop: the process is ending and writes for the last time
            if self._timer is None:
                self._timer = asyncio.get_running_loop().call_later(seconds, self.write)


def encode(line: Line) -> bytes:
    return dumps(facts_of(line)) + b"\n"


def _day(moment: float) -> str:
    return f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%d}.jsonl"


# Limits how many lines refusals get in the ledger. The rest of a flood is counted, and written once a minute.

MINUTE = 60.0
_LINES = 10
"""Lines for one group within a minute."""
_MAX_GROUPS = 1000


@dataclass(frozen=True, kw_only=True)
class RefusalGroup:
    """Refusals that are counted together."""

    status: int
    error: RequestError
    run: str = ""
    """Empty where the caller is not known."""


@dataclass
class _Minute:
    ends: float
    lines: int = 0
    counted: int = 0


class Refusals:
    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._minutes: dict[RefusalGroup, _Minute] = {}

    def gets_line(self, group: RefusalGroup) -> bool:
        """Whether this refusal gets a line of its own. If not it is counted, for `take_counted`."""
        minute = self._minutes.get(group)
        if minute is None:
            if len(self._minutes) >= _MAX_GROUPS:
                return False
            minute = self._minutes[group] = _Minute(self._now() + MINUTE)
        if minute.lines < _LINES:
            minute.lines += 1
            return True
        minute.counted += 1
        return False

    def take_counted(self, *, unfinished: bool = False) -> list[RefusalEntry]:
        """Entries for what was counted in minutes that are over, or in all of them. Resets those minutes."""
        over = [group for group, minute in self._minutes.items() if unfinished or minute.ends <= self._now()]
        counted = [(group, self._minutes.pop(group).counted) for group in over]
        return [refusal_entry(group, times) for group, times in counted if times]

    @property
    def is_empty(self) -> bool:
        return not self._minutes


def refusal_entry(group: RefusalGroup, times: int = 1) -> RefusalEntry:
    return RefusalEntry(
        at=round(time.time(), 3), run=group.run, status=group.status, reason=group.error.value, times=times
    )
