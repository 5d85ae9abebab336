"""The help of a place: its keys, and those that work everywhere."""

from __future__ import annotations

from collections.abc import Iterable

from legion.client.text.terminal import Cell, Colour
from legion.tui.keys import Context, Key, KeyMap, shown_key
from legion.tui.views.rows import BLANK, Row, head, table

_TITLES = {
    Context.EVERYWHERE: "Everywhere",
    Context.LIST: "In every list",
    Context.TICKETS: "For the selected ticket",
    Context.TICKET: "On a ticket's screen",
    Context.FORM: "In a form",
}


def help_rows(keys: KeyMap, contexts: Iterable[Context], available: int) -> list[Row]:
    rows: list[Row] = []
    for context in dict.fromkeys((*contexts, Context.EVERYWHERE)):
        rows += [BLANK] if rows else []
        rows.append(
            head(_TITLES.get(context, f"In {context.value}" if context is Context.DIFF else f"On {context.value}"))
        )
        rows += table([("", _cells(key)) for key in keys.of(context) if key.keys], available, indent=2, keep=1)
    return rows


def _cells(key: Key) -> list[Cell]:
    return [Cell(" ".join(map(shown_key, key.keys)), Colour.CYAN), Cell(key.help), Cell(key.id, Colour.DIM)]
