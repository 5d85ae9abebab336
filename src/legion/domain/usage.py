"""What agents spend: tokens, money and requests, summed up without losing what has no price."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


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


@dataclass(frozen=True, kw_only=True)
class Spending:
    """What one run spent with one model of one provider on one day (UTC, as YYYY-MM-DD)."""

    run: int
    provider: str
    model: str
    day: str
    usage: Usage


@dataclass(frozen=True, kw_only=True)
class Limit:
    """What a provider last said about how much of it is used up."""

    provider: str
    at: float
    status: int
    """The HTTP status of the answer that said so."""
    span: str
    """The provider's word for the time that the limit is about."""
    utilization: float | None
    """1 is all of it."""
    resets_at: float | None
