"""Reads a provider's limits from the headers of its answers. Does not act on them."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping
from datetime import datetime

from legion.gateway.accounting.ledger import LimitEntry

REFUSED = (429, 529)
_UNIFIED = "anthropic-ratelimit-unified-"
_WINDOWS = {"five_hour": "5h", "seven_day": "7d"}
_OPENAI_COUNTED = ("requests", "tokens")
_DURATION = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:([\d.]+)s)?(?:(\d+)ms)?")
_COUNTED = ("requests", "tokens", "input-tokens", "output-tokens")


def limit_of(headers: Mapping[str, str], status: int, *, at: float, run: str, provider: str) -> LimitEntry | None:
    """The limit that an answer reports; None where it reports none."""
    unified = any(name.lower().startswith(_UNIFIED) for name in headers)
    if not unified and status not in REFUSED:
        return None
    window, resets_at = _unified(headers) if unified else _counted(headers, at)
    return LimitEntry(
        at=at,
        run=run,
        provider=provider,
        status=status,
        resets_at=resets_at,
        retry_after=_number(headers.get("retry-after")),
        utilization=_number(headers.get(f"{_UNIFIED}{window}-utilization")) if unified else None,
        window=window,
    )


def seconds_until_reset(headers: Mapping[str, str], status: int) -> float | None:
    """Seconds that a provider which refused wants to be left alone; None where it did not refuse or names no time."""
    if status not in (*REFUSED, 503):
        return None
    limit = limit_of(headers, status, at=time.time(), run="", provider="")
    after = _number(headers.get("retry-after"))
    if after is None and limit is not None and limit.resets_at is not None:
        after = limit.resets_at - time.time()
    return None if after is None else max(0.0, after)


class Novelty:
    """Selects the limits worth a line: every refusal, and every change of at least one percent."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], tuple[float | None, float | None]] = {}

    def is_new(self, limit: LimitEntry) -> bool:
        used = None if limit.utilization is None else round(limit.utilization, 2)
        before = self._last.get((limit.provider, limit.window))
        self._last[limit.provider, limit.window] = (limit.resets_at, used)
        return limit.status in REFUSED or before != (limit.resets_at, used)


def _unified(headers: Mapping[str, str]) -> tuple[str, float | None]:
    """Name and reset of the window that decides; a subscription has several at once."""
    claim = headers.get(f"{_UNIFIED}representative-claim")
    fullest = max(_WINDOWS.values(), key=lambda window: _number(headers.get(f"{_UNIFIED}{window}-utilization")) or 0.0)
    window = _WINDOWS.get(claim, claim) if claim is not None else fullest
    reset = headers.get(f"{_UNIFIED}reset") or headers.get(f"{_UNIFIED}{window}-reset")
    return window, _number(reset)


def _counted(headers: Mapping[str, str], at: float) -> tuple[str, float | None]:
    """The limits of an API key: the latest reset among those that are used up."""
    resets = [
        (reset, kind)
        for kind in _COUNTED
        if headers.get(f"anthropic-ratelimit-{kind}-remaining") == "0"
        and (reset := _moment(headers.get(f"anthropic-ratelimit-{kind}-reset"))) is not None
    ]
    resets += [
        (at + reset, kind)
        for kind in _OPENAI_COUNTED
        if headers.get(f"x-ratelimit-remaining-{kind}") == "0"
        and (reset := _duration(headers.get(f"x-ratelimit-reset-{kind}"))) is not None
    ]
    if not resets:
        return "", None
    reset, kind = max(resets)
    return kind, reset


def _number(text: str | None) -> float | None:
    try:
        value = float(text) if text is not None else None
    except ValueError:
        return None
    return value if value is not None and math.isfinite(value) else None


def _duration(text: str | None) -> float | None:
    """Seconds from OpenAI's notation: 6m0s, 1.5s, 20ms."""
    found = _DURATION.fullmatch(text or "")
    if not text or found is None:
        return None
    days, hours, minutes, seconds, thousandths = (float(part or 0) for part in found.groups())
    return days * 86400 + hours * 3600 + minutes * 60 + seconds + thousandths / 1000


def _moment(text: str | None) -> float | None:
    try:
        return datetime.fromisoformat(text).timestamp() if text is not None else None
    except ValueError:
        return None
