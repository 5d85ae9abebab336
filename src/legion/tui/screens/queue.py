"""The merge queue and what landed; undo."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from textual.widget import Widget

from legion.client.text.queue import landed_ticket, queue_rows
from legion.client.text.rows import clean
from legion.tui.keys import KeyContext
from legion.tui.screens.place import Place
from legion.tui.widgets.bindings import bindings_of
from legion.tui.widgets.row_list import RowList
from legion.wire.tickets import TicketLine


class QueuePlace(Place):
    NAME = "queue"
    CONTEXTS = (KeyContext.QUEUE, KeyContext.LIST)
    BINDINGS = bindings_of(KeyContext.QUEUE)

    def compose_body(self) -> Iterable[Widget]:
        yield RowList(id="body")

    def watches(self) -> Iterable[Callable[[], None]]:
        yield self.store.status.watch(self.renew)
        yield self.store.recent.watch(self.renew)

    def renew(self) -> None:
        if self.is_mounted:
            rows = self.query_one("#body", RowList)
            rows.put(queue_rows(self.store.status.value, self.store.recent.value, self.size.width - 1))
            if self.focused is None:
                rows.focus()
            self.refresh_bindings()

    @property
    def landed(self) -> TicketLine | None:
        status = self.store.status.value
        if status is None or not self.is_mounted:
            return None
        return landed_ticket(status.tickets, self.query_one("#body", RowList).selected)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self.landed is not None if action == "undo_landed" else super().check_action(action, parameters)

    def on_row_list_moved(self, event: RowList.Moved) -> None:
        self.refresh_bindings()

    def on_row_list_chosen(self, event: RowList.Chosen) -> None:
        self.legion_app.open_ticket(int(event.key))

    def action_undo_landed(self) -> None:
        landed = self.landed
        if landed is not None:
            self.legion_app.act("undo", f"#{landed.id} {clean(landed.title)}", landed.id)
