"""Prices of tokens: the shipped list, overridden by the person's own prices.toml."""

from __future__ import annotations

import logging
import time
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from legion.domain.errors import BadInput
from legion.gateway.counting.counters import TokenCounts
from legion.gateway.files.folder import CachedFile

log = logging.getLogger("legion.gateway")

_MILLION = 1e6
_PAUSE = 1.0
_MAX_NAMES = 1000
"""Models in the cache; agents may ask for any name."""


@dataclass(frozen=True, kw_only=True)
class Price:
    """USD per million tokens."""

    input: float
    output: float
    cache_read: float
    cache_write: float
    cache_write_1h: float
    above: float = 0.0
    """For prompts of more tokens than this."""

    def of(self, usage: TokenCounts) -> float:
        long_writes = min(usage.cache_write_1h, usage.cache_write)
        spent = (
            usage.input * self.input
            + usage.output * self.output
            + usage.cache_read * self.cache_read
            + (usage.cache_write - long_writes) * self.cache_write
            + long_writes * self.cache_write_1h
        )
        return spent / _MILLION


@dataclass(frozen=True)
class Prices:
    """Prices by the prefix of a model's name, for ever longer prompts."""

    by_prefix: Mapping[str, tuple[Price, ...]]
    _found: dict[str, tuple[Price, ...] | None] = field(default_factory=dict, compare=False)
    """Cache by full name; a gateway sees few models."""

    def knows(self, model: str) -> bool:
        return self._steps(model) is not None

    def output_price(self, model: str) -> float | None:
        """USD for a million output tokens after a prompt of usual length; None where the model has no price."""
        steps = self._steps(model)
        return None if steps is None else steps[0].output

    def cost(self, model: str, usage: TokenCounts) -> float | None:
        """USD; None where the model has no price. No tokens cost nothing, with or without a price."""
        if usage == TokenCounts():
            return 0.0
        steps = self._steps(model)
        if steps is None:
            return None
        prompt = usage.input + usage.cache_read + usage.cache_write
        fitting = [step for step in steps if prompt > step.above]
        return (fitting[-1] if fitting else steps[0]).of(usage)

    def _steps(self, model: str) -> tuple[Price, ...] | None:
        if model not in self._found:
            if len(self._found) > _MAX_NAMES:
                self._found.clear()
            self._found[model] = self._search(model)
        return self._found[model]

    def _search(self, model: str) -> tuple[Price, ...] | None:
        fitting = [prefix for prefix in self.by_prefix if _has_prefix(model, prefix)]
        return self.by_prefix[max(fitting, key=len)] if fitting else None


class PriceList:
    """The shipped prices overridden by the person's, which are read again when they change."""

    def __init__(self, own: Path) -> None:
        shipped = Path(__file__).with_name("prices.toml")
        self._shipped = parse_prices(shipped.read_bytes(), shipped)
        self._own = CachedFile(own, parse_prices)
        self._complaint = ""
        self._last: tuple[Prices, Prices] | None = None
        self._current = self._shipped
        self._next_check = 0.0

    def current(self) -> Prices:
        """The prices in force. A change of the person's file is seen within a second."""
        if time.monotonic() >= self._next_check:
            self._next_check = time.monotonic() + _PAUSE
            self._current = self._load()
        return self._current

    def _load(self) -> Prices:
        try:
            own = self._own.value()
        except FileNotFoundError:
            return self._shipped
        except (BadInput, OSError) as fault:
            if str(fault) != self._complaint:
                self._complaint = str(fault)
                log.warning("%s", fault)
            return self._shipped
        if self._last is None or self._last[0] is not own:
            self._last = (own, Prices({**self._shipped.by_prefix, **own.by_prefix}))
        return self._last[1]


def parse_prices(content: bytes, path: Path) -> Prices:
    try:
        tables = tomllib.loads(content.decode("utf-8"))
        return Prices({prefix: _steps(table) for prefix, table in tables.items()})
    except (AttributeError, KeyError, TypeError, ValueError) as fault:
        raise BadInput(
            f"{path} is not a list of prices ({fault}): "
            "give each model `input`, `output`, `cache_read` and `cache_write`."
        ) from None


def _steps(table: dict[str, Any]) -> tuple[Price, ...]:
    steps = [_price(table)]
    if "long" in table:
        steps.append(replace(_price(table["long"]), above=float(table["long"]["above"])))
    return tuple(steps)


def _price(table: dict[str, Any]) -> Price:
    return Price(
        input=float(table["input"]),
        output=float(table["output"]),
        cache_read=float(table["cache_read"]),
        cache_write=float(table["cache_write"]),
        cache_write_1h=float(table.get("cache_write_1h", table["cache_write"])),
    )


def _has_prefix(model: str, prefix: str) -> bool:
    """claude-opus-4 matches claude-opus-4-20250514, but not claude-opus-45."""
    return model.startswith(prefix) and not model[len(prefix) :][:1].isdigit()
