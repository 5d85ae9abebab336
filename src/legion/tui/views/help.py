"""The help of a place: its keys, and those that work everywhere."""

from __future__ import annotations

from collections.abc import Iterable

from legion.client.text.rows import BLANK, Row, definitions, head, table
from legion.client.text.terminal import Cell, Colour
from legion.tui.keys import Key, KeyContext, KeyMap, shown_key

_TITLES = {
    KeyContext.EVERYWHERE: "Everywhere",
    KeyContext.LIST: "In every list",
    KeyContext.TICKETS: "For the selected ticket",
    KeyContext.TICKET: "On a ticket's screen",
    KeyContext.FORM: "In a form",
}

_WITH_NAMES = 96
"""Columns from which the names of actions stand next to what they do."""


def help_rows(keys: KeyMap, contexts: Iterable[KeyContext], available: int) -> list[Row]:
    rows: list[Row] = []
    listed = dict.fromkeys((*contexts, KeyContext.EVERYWHERE))
    for context in listed:
        rows += [BLANK] if rows else []
        rows.append(
            head(_TITLES.get(context, f"In {context.value}" if context is KeyContext.DIFF else f"On {context.value}"))
        )
        shown = [key for key in keys.of(context) if key.keys]
        if available >= _WITH_NAMES:
            rows += table([("", [*_cells(key), Cell(key.id, Colour.DIM)]) for key in shown], available, indent=2)
        else:
            rows += definitions([("", _cells(key)) for key in shown], available, indent=2)
    if available < _WITH_NAMES:
        # The names are what a line of the settings needs; next to the texts there is no room for them.
        names = [key for context in listed for key in keys.of(context)]
        rows += [BLANK, head("Names for [tui] keys in your settings")]
        rows += definitions([("", [Cell(key.label), Cell(key.id, Colour.DIM)]) for key in names], available, indent=2)
    return rows


def _cells(key: Key) -> list[Cell]:
    return [Cell(" ".join(map(shown_key, key.keys)), Colour.CYAN), Cell(key.help)]
