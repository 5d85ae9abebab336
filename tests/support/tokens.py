"""An upper bound of the tokens of a text, without a tokenizer: words by four letters, numbers by three, signs."""

from __future__ import annotations

import re

_PIECE = re.compile(r"[A-Za-z]{1,4}|\d{1,3}|[^\sA-Za-z\d]")


def tokens_at_most(text: str) -> int:
    return len(_PIECE.findall(text))
