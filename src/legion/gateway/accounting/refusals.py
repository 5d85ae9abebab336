"""Limits how many lines refusals get in the ledger. The rest of a flood is counted, and written once a minute."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from legion.gateway.accounting.ledger import RefusalEntry, RequestError

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
