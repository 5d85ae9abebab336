"""Spending and limits."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from textual.widget import Widget

from legion.client.text.usage import cut_rows
from legion.tui.keys import KeyContext
from legion.tui.screens.place import Place
from legion.tui.store import USAGE_CUTS
from legion.tui.widgets.bindings import bindings_of
from legion.tui.widgets.row_list import RowList


class UsagePlace(Place):
    NAME = "usage"
    CONTEXTS = (KeyContext.USAGE, KeyContext.LIST)
    BINDINGS = bindings_of(KeyContext.USAGE)

    def __init__(self) -> None:
        super().__init__()
        self.cut = USAGE_CUTS[0]
        self._end: Callable[[], None] = lambda: None

    def compose_body(self) -> Iterable[Widget]:
        yield RowList(id="body")

    def watches(self) -> Iterable[Callable[[], None]]:
        self._end = self.store.usage[self.cut].watch(self.renew)
        yield lambda: self._end()

    def renew(self) -> None:
        if self.is_mounted:
            feed = self.store.usage[self.cut]
            rows = self.query_one("#body", RowList)
            rows.put(cut_rows(feed.value, self.store.providers.value, self.size.width - 1, USAGE_CUTS))
            if self.focused is None:
                rows.focus()

    def action_next_cut(self) -> None:
        self._turn(1)

    def action_previous_cut(self) -> None:
        self._turn(-1)

    def _turn(self, by: int) -> None:
        self._end()
        self.cut = USAGE_CUTS[(USAGE_CUTS.index(self.cut) + by) % len(USAGE_CUTS)]
        self._end = self.store.usage[self.cut].watch(self.renew)
        self.renew()
