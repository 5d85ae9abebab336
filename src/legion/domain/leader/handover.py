"""Handover: when a leader continues in a fresh conversation, before its program compacts the old one by itself."""

from __future__ import annotations

LIMIT = 100_000
"""Tokens of a conversation; programs compact at about 150,000."""


def hands_over(*, tokens: int, compacted: bool, owes: bool, limit: int = LIMIT) -> bool:
    """`owes`: its last turn was cut off and is resumed, so its conversation is needed once more."""
    return not owes and (compacted or tokens >= limit)
