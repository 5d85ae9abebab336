"""[tui] in the person's file: keys of the terminal UI that they changed."""

from __future__ import annotations

from dataclasses import dataclass

from legion.config.base.settings import texts


@dataclass(frozen=True, kw_only=True)
class TerminalSettings:
    keys: tuple[str, ...] = texts(
        allowed="a list of lines like board.filter = ctrl+f",
        help="Keys that you changed. The UI's help (`?`) names all actions; `unbind` takes a key away.",
    )
