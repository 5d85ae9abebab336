"""Shapes of races: several attempts of one ticket at once."""

from __future__ import annotations

from dataclasses import field

from legion.wire.lazy import dataclass


@dataclass(kw_only=True)
class NewRace:
    """A number of equal lanes, or one lane for each of these programs and models."""

    count: int = 0
    drivers: list[str] = field(default_factory=list)
    models: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class LaneLine:
    """One attempt."""

    ticket: int
    driver: str
    """Empty: the project's default."""
    model: str
    """Empty: the program's own choice."""
    state: str
    standing: str
    """`running`, `finished`, `out`, `won` or `lost`."""
    attempts: int
    lines: int | None
    """Of its change; null before it is compared."""
    usd: float
    budget: float | None
    """Its share of the ticket's budget."""
    why: str


@dataclass(kw_only=True)
class RacePage:
    schema: str = "legion.race/1"
    race: int
    origin: int
    """The ticket that was raced."""
    title: str
    winner: int | None
    """Null while it is not decided."""
    usd: float
    """Of all lanes."""
    lanes: list[LaneLine] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
