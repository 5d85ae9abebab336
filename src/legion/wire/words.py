"""How a word is understood where people and agents may name a ticket or a standing agent."""

from __future__ import annotations

SHORT_ID = 8
"""So many characters of an agent's id are shown, and are enough to call it."""
_LONGEST_NUMBER = 18


def names_a_ticket(word: str) -> bool:
    """#12, or a number that is shorter than the beginning of an id, which may be digits alone."""
    digits = word.removeprefix("#")
    longest = SHORT_ID - 1 if digits == word else _LONGEST_NUMBER
    return digits.isascii() and digits.isdigit() and len(digits) <= longest
