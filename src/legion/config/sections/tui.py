"""[tui] in the person's file: keys of the terminal UI that they changed."""

from __future__ import annotations

import re
from dataclasses import dataclass

from legion.config.base.settings import texts

_LINE = re.compile(r"[a-z]+\.[a-z_]+ *= *\S.*")


def _fault(line: str) -> str | None:
    return None if _LINE.fullmatch(line) else "is no line like board.filter = ctrl+f"


@dataclass(frozen=True, kw_only=True)
class TerminalSettings:
    keys: tuple[str, ...] = texts(
        allowed="a list of lines like board.filter = ctrl+f",
        fault=_fault,
        help="Keys that you changed. The UI's help (`?`) names all actions; `unbind` takes a key away.",
    )
