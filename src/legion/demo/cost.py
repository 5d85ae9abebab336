"""The cost of a run as the scripted model reports it: requests, tokens and dollars. Nothing is really spent."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from legion.cli.base.output import count
from legion.demo.scratch import ScratchLegion
from legion.rehearsal.protocol.log import RequestKind
from legion.wire.tickets import UsageLine

_PATIENCE = 4.0
"""Seconds: the gateway writes a request within one, and the daemon reads every other. A killed one writes less."""
_POLL = 0.1


@dataclass(frozen=True, kw_only=True)
class PlayCost:
    requests: int
    tokens: int
    usd: float

    @property
    def text(self) -> str:
        """The cost, marked as scripted."""
        dollars = f"{self.usd:,.2f} dollars"
        return (
            f"{count(self.requests, 'request')}, {self.tokens:,} tokens, {dollars}: scripted figures, nothing is spent"
        )


def play_cost(running: ScratchLegion, ids: Iterable[int], plans: Sequence[int] = ()) -> PlayCost:
    """The cost of tickets, planner and last reader. Waits for the last request, which the gateway writes afterwards."""
    numbers = sorted(ids)
    asked = sum(line.kind is not RequestKind.COUNT for line in running.stage.lines())
    deadline = time.monotonic() + _PATIENCE
    while (cost := _recorded(running, numbers, plans)).requests < asked and time.monotonic() < deadline:
        time.sleep(_POLL)
    return cost


def _recorded(running: ScratchLegion, ids: list[int], plans: Sequence[int]) -> PlayCost:
    legion = running.legion
    spent = [legion.ticket(number).usage for number in ids]
    spent += [legion.plan_page(plan).usage for plan in plans]
    used = [usage for usage in spent if usage is not None]
    return PlayCost(
        requests=sum(one.requests for one in used),
        tokens=sum(_tokens(one) for one in used),
        usd=round(sum(one.usd for one in used), 4),
    )


def _tokens(usage: UsageLine) -> int:
    return usage.input + usage.output + usage.cache_read + usage.cache_write
