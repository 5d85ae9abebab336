"""A place: a screen with the lines that are always there. It watches feeds while it is shown, and not longer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar, cast

from textual.app import ComposeResult
from textual.screen import ModalScreen, Screen
from textual.widget import Widget

from legion.client.text.plans import waiting
from legion.client.text.rows import BLANK, Row, flow
from legion.tui.keys import KeyContext
from legion.tui.screens.host import UiHost
from legion.tui.store import BoardStore
from legion.tui.views.status_line import next_step, status_line, top_line
from legion.tui.widgets.lines import KeyLine, RowLine, RowLines
from legion.wire.tickets import TicketLine

PLACES = ("squad", "board", "inbox", "agents", "queue", "usage", "plans")


class Place(Screen[None], inherit_bindings=False):
    AUTO_FOCUS = ""
    NAME: ClassVar[str] = ""
    CONTEXTS: ClassVar[tuple[KeyContext, ...]] = ()
    SHOWS_NEXT: ClassVar[bool] = True
    """Whether it shows what the board needs next; a ticket's screen shows what the ticket needs."""
    DEFAULT_CSS = """
    Place { layers: base top; }
    Place > #top, Place > #counts { background: $panel; }
    Place > #next { display: none; }
    Place > #next.-shown { display: block; background: $warning-muted; }
    Place:ansi > #next.-shown { background: ansi_default; }
    Place > #body { height: 1fr; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._watched: list[Callable[[], None]] = []
        self._top, self._next, self._counts = RowLine(id="top"), RowLines(id="next"), RowLine(id="counts")
        self._keys = KeyLine(id="keys")

    @property
    def legion_app(self) -> UiHost:
        return cast(UiHost, self.app)

    @property
    def store(self) -> BoardStore:
        return self.legion_app.store

    def compose(self) -> ComposeResult:
        yield self._top
        yield from self.compose_body()
        yield self._next
        yield self._counts
        yield self._keys

    def compose_body(self) -> Iterable[Widget]:
        """The body; its outermost widget has the id `body`."""
        raise NotImplementedError

    def watches(self) -> Iterable[Callable[[], None]]:
        """What it watches while it is shown: the ends of the watches."""
        return ()

    def renew(self) -> None:
        """Draw what the store has now."""

    @property
    def ticket(self) -> TicketLine | None:
        """The selected ticket, for the keys that act on one."""
        return None

    def on_screen_resume(self) -> None:
        store = self.store
        self._end_watches()
        self._watched = [
            store.watch_connection(self._renew_lines),
            store.status.watch(self._renew_lines),
            store.providers.watch(self._renew_lines),
            store.plans.watch(self._renew_lines),
            *self.watches(),
        ]
        self._renew_lines()
        self.renew()
        self._keys.renew()

    def on_screen_suspend(self) -> None:
        # Below a question or a form it can still be seen, but its keys do nothing.
        if isinstance(self.app.screen, ModalScreen):
            self._keys.show(BLANK)
        else:
            self._end_watches()

    def on_unmount(self) -> None:
        self._end_watches()

    def on_resize(self) -> None:
        if self._watched:
            self.call_after_refresh(self._renew_all)

    def _renew_all(self) -> None:
        self._renew_lines()
        self.renew()

    @property
    def is_watching(self) -> bool:
        return bool(self._watched)

    def _end_watches(self) -> None:
        for end in self._watched:
            end()
        self._watched = []

    def _renew_lines(self) -> None:
        store, width = self.store, self.size.width
        if not self.is_mounted or not width:
            return
        keys = self.legion_app.keys.shown()
        places = [(keys.get(name, ""), name) for name in PLACES]
        self._top.show(top_line(places, self.NAME, store.requests.phase, width))
        self._counts.show(status_line(store.status.value, store.providers.value, width))
        status = store.status.value if self.SHOWS_NEXT else None
        step = self.first_step() or next_step(
            status, store.requests.phase, store.trouble, dict(keys), waiting(store.plans.value)
        )
        self._next.set_class(step is not None, "-shown")
        self._next.show_all(flow(step.cells, width, key=step.key) if step is not None else [Row(())])
        self.refresh_bindings()

    def first_step(self) -> Row | None:
        """What the person has begun here, which comes before what the board needs."""
        return None

    def put_down(self) -> bool:
        """Esc: end what the person has begun here; whether there was something."""
        return False

    def on_row_line_clicked(self, event: RowLine.Clicked) -> None:
        if event.line.id == "top":
            name = event.cell.text.split()[-1:]
            keys = self.legion_app.keys.shown()
            for place in PLACES:
                if name and name[0] in (place, keys.get(place)):
                    self.legion_app.go(place)
        elif event.key.isdigit():
            self.legion_app.open_ticket(int(event.key))
        elif event.key:
            self.run_worker(self.app.run_action(event.key))
