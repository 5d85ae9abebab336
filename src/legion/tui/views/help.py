"""The help of a place: its keys, and those that work everywhere."""

from __future__ import annotations

from collections.abc import Iterable

from legion.client.text.terminal import Cell, Colour
from legion.tui.keys import Key, KeyContext, KeyMap, shown_key
from legion.tui.views.rows import BLANK, Row, head, table

_TITLES = {
    KeyContext.EVERYWHERE: "Everywhere",
    KeyContext.LIST: "In every list",
    KeyContext.TICKETS: "For the selected ticket",
    KeyContext.TICKET: "On a ticket's screen",
    KeyContext.FORM: "In a form",
}


def help_rows(keys: KeyMap, contexts: Iterable[KeyContext], available: int) -> list[Row]:
    rows: list[Row] = []
    for context in dict.fromkeys((*contexts, KeyContext.EVERYWHERE)):
        rows += [BLANK] if rows else []
        rows.append(
            head(_TITLES.get(context, f"In {context.value}" if context is KeyContext.DIFF else f"On {context.value}"))
        )
        rows += table([("", _cells(key)) for key in keys.of(context) if key.keys], available, indent=2, keep=1)
    return rows


def _cells(key: Key) -> list[Cell]:
    return [Cell(" ".join(map(shown_key, key.keys)), Colour.CYAN), Cell(key.help), Cell(key.id, Colour.DIM)]
