"""Days of UTC, as commands and requests name them."""

from __future__ import annotations

from datetime import UTC, datetime

from legion.domain.errors import BadInput

DAY = 86_400.0


def start_of(day: str) -> float | None:
    """The first moment of a day; None for an empty text."""
    if not day:
        return None
    try:
        return datetime.strptime(day, "%Y-%m-%d").replace(tzinfo=UTC).timestamp()
    except ValueError:
        raise BadInput(f"{day[:40]!r} is no day: write it like 2026-01-31.") from None


def end_of(day: str) -> float | None:
    """The first moment after a day; None for an empty text."""
    start = start_of(day)
    return None if start is None else start + DAY
