"""Text of conversations without anything that could drive a terminal: agents and web pages wrote much of it."""

from __future__ import annotations

import re

_SEQUENCES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|(?:\x1b\]|\x9d)[^\x07\x1b\x9c]{0,4096}(?:\x07|\x1b\\|\x9c)|\x1b[ -/]*[0-~]"
)
"""Colours, titles, moves of the cursor."""
_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def plain(text: str) -> str:
    """Without control sequences and characters, marks that reverse the direction of text, and halves of characters."""
    return text if text.isascii() and text.isprintable() else _UNSEEN.sub("", _SEQUENCES.sub("", text))
