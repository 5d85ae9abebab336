"""The words that a person searches for, as an expression of FTS5. Nothing in them is an operator but quotes and a *."""

from __future__ import annotations

import re

_PART = re.compile(r'"([^"]*)"?|(\S+)')
_LEAST_PREFIX = 3


def expression(query: str) -> str:
    """All words must occur; `"two words"` must follow each other; `migr*` is the start of a word. Empty: no words."""
    parts = []
    for phrase, word in _PART.findall(query):
        text = (phrase or word).strip()
        bare = text.rstrip("*")
        starts = not phrase and text.endswith("*") and len(bare) >= _LEAST_PREFIX
        if any(letter.isalnum() for letter in bare):
            parts.append('"{}"{}'.format(bare.replace('"', '""'), "*" if starts else ""))
    return " ".join(parts)
