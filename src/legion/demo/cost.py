"""What a play would have cost: requests, tokens and dollars as the scripted model says them. Nobody is paid."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass

from legion.cli.base.output import count
from legion.demo.scratch import ScratchLegion
from legion.rehearsal.protocol.log import RequestKind
from legion.wire.tickets import UsageLine

_PATIENCE = 4.0
"""Seconds; the gateway tells of a request within one, and the daemon looks every other. Killed, it tells less."""
_LOOK_AGAIN = 0.1


@dataclass(frozen=True, kw_only=True)
class PlayCost:
    requests: int
    tokens: int
    usd: float

    @property
    def words(self) -> str:
        """Marked as what it is: nobody was paid."""
        dollars = f"{self.usd:,.2f} dollars"
        return (
            f"{count(self.requests, 'request')}, {self.tokens:,} tokens, {dollars}: scripted figures, nothing is spent"
        )


def spent(running: ScratchLegion, ids: Iterable[int]) -> PlayCost:
    """All of it: the gateway counts beside the answers, so the last request may still be on its way into the books."""
    numbers = sorted(ids)
    asked = sum(line.kind is not RequestKind.COUNT for line in running.stage.lines())
    deadline = time.monotonic() + _PATIENCE
    while (told := _told(running, numbers)).requests < asked and time.monotonic() < deadline:
        time.sleep(_LOOK_AGAIN)
    return told


def _told(running: ScratchLegion, ids: list[int]) -> PlayCost:
    legion = running.legion
    used = [usage for number in ids if (usage := legion.ticket(number).usage) is not None]
    return PlayCost(
        requests=sum(one.requests for one in used),
        tokens=sum(_tokens(one) for one in used),
        usd=round(sum(one.usd for one in used), 4),
    )


def _tokens(usage: UsageLine) -> int:
    return usage.input + usage.output + usage.cache_read + usage.cache_write
