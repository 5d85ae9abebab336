"""A place with a list, and the page of what is selected in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from textual.containers import Horizontal
from textual.widget import Widget

from legion.client.text.rows import Row
from legion.tui.feed import Feed
from legion.tui.screens.place import Place
from legion.tui.widgets.row_list import RowList

_NARROW = 76
_Page = TypeVar("_Page")


class ListAndPage(Place, Generic[_Page]):
    DEFAULT_CSS = """
    ListAndPage #list { width: 40%; border-right: solid $panel; }
    ListAndPage #page { width: 1fr; }
    ListAndPage.-narrow #body { layout: vertical; }
    ListAndPage.-narrow #list { width: 1fr; height: 1fr; border-right: none; border-bottom: solid $panel; }
    ListAndPage.-narrow #page { height: 2fr; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._list, self._page_rows = RowList(id="list"), RowList(id="page")
        self._page: Feed[_Page] | None = None
        self._page_of = ""
        self._end_page: Callable[[], None] = lambda: None
        self.wanted = ""
        """The key to select when the list is drawn next."""

    def list_rows(self, width: int) -> list[Row]:
        raise NotImplementedError

    def page_feed(self, key: str) -> Feed[_Page] | None:
        """The page of a row of the list; None where that row has none."""
        raise NotImplementedError

    def page_rows(self, width: int) -> list[Row]:
        raise NotImplementedError

    def compose_body(self) -> Iterable[Widget]:
        with Horizontal(id="body"):
            yield self._list
            yield self._page_rows

    @property
    def page(self) -> _Page | None:
        return self._page.value if self._page is not None else None

    @property
    def selected(self) -> str:
        """The key of the list."""
        return self._list.selected if self.is_mounted else ""

    @property
    def _widths(self) -> tuple[int, int]:
        """Of the rows of list and page, from the screen: a widget knows its new width only after it was drawn."""
        whole = self.size.width
        border = scrollbar = 1
        left = whole if whole < _NARROW else whole * 2 // 5
        right = whole if whole < _NARROW else whole - left
        return max(20, left - border - scrollbar), max(20, right - scrollbar)

    def renew(self) -> None:
        if not self.is_mounted:
            return
        self.set_class(self.size.width < _NARROW, "-narrow")
        self._list.put(self.list_rows(self._widths[0]))
        if self.wanted:
            self._list.select(self.wanted)
            self.wanted = ""
        if self.focused is None:
            self._list.focus()
        self._follow_selection()
        self._renew_page()

    def _follow_selection(self) -> None:
        """Read the page of what is selected, and only that."""
        if self.selected == self._page_of:
            return
        self._drop_page()
        self._page_of = self.selected
        self._page = self.page_feed(self.selected) if self.selected else None
        if self._page is not None:
            self._end_page = self._page.watch(self._renew_page)

    def _drop_page(self) -> None:
        self._end_page()
        self._end_page = lambda: None
        if self._page is not None:
            self.store.drop([self._page])
        self._page, self._page_of = None, ""

    def on_screen_suspend(self) -> None:
        super().on_screen_suspend()
        if not self.is_watching:
            self._drop_page()

    def _renew_page(self) -> None:
        if self.is_mounted:
            self._page_rows.put(self.page_rows(self._widths[1]))
            self.refresh_bindings()

    def on_row_list_moved(self, event: RowList.Moved) -> None:
        if event.rows is self._list:
            self._follow_selection()
            self._renew_page()
        self.refresh_bindings()
