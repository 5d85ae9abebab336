"""Which refusals get a line of their own. Those of a flood are counted, and told together when a minute is over."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from legion.gateway.accounting.ledger import RefusalEntry, RequestError

MINUTE = 60.0
_LINES = 10
"""Of one sort within a minute."""
_MOST_SORTS = 1000


@dataclass(frozen=True, kw_only=True)
class RefusalGroup:
    """What is counted together."""

    status: int
    error: RequestError
    run: str = ""
    """Empty where nobody knows who asked."""


@dataclass
class _Minute:
    ends: float
    told: int = 0
    untold: int = 0


class Refusals:
    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._minutes: dict[RefusalGroup, _Minute] = {}

    def is_told(self, sort: RefusalGroup) -> bool:
        """Whether this one gets a line. If not it is counted, and `rest` tells of it."""
        minute = self._minutes.get(sort)
        if minute is None:
            if len(self._minutes) >= _MOST_SORTS:
                return False
            minute = self._minutes[sort] = _Minute(self._now() + MINUTE)
        if minute.told < _LINES:
            minute.told += 1
            return True
        minute.untold += 1
        return False

    def rest(self, *, all_of_it: bool = False) -> list[RefusalEntry]:
        """What was counted in minutes that are over; each of them begins anew."""
        over = [sort for sort, minute in self._minutes.items() if all_of_it or minute.ends <= self._now()]
        counted = [(sort, self._minutes.pop(sort).untold) for sort in over]
        return [refusal_entry(sort, times) for sort, times in counted if times]

    @property
    def is_empty(self) -> bool:
        return not self._minutes


def refusal_entry(sort: RefusalGroup, times: int = 1) -> RefusalEntry:
    return RefusalEntry(
        at=round(time.time(), 3), run=sort.run, status=sort.status, reason=sort.error.value, times=times
    )
