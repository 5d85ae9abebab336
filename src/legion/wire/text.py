"""Text that the service and the commands share: names of tickets and agents, hidden characters."""

from __future__ import annotations

from legion.domain.review.additions import warning as hidden_warning
from legion.domain.text import count, reveal

__all__ = ["SHORT_ID", "count", "hidden_warning", "names_a_ticket", "plan_number", "reveal"]

SHORT_ID = 8
"""So many characters of an agent's id are shown, and are enough to call it."""
_LONGEST_NUMBER = 18


def plan_number(word: str) -> int | None:
    """The number in P3 or p3, the id of a plan; None for any other word."""
    digits = word[1:]
    named = word[:1] in ("P", "p") and digits.isascii() and digits.isdigit() and len(digits) < SHORT_ID + 2
    return int(digits) if named and int(digits) else None


def names_a_ticket(word: str) -> bool:
    """#12, or a number that is shorter than the beginning of an id, which may be digits alone."""
    digits = word.removeprefix("#")
    longest = SHORT_ID - 1 if digits == word else _LONGEST_NUMBER
    return digits.isascii() and digits.isdigit() and len(digits) <= longest
