"""The menu: every action that is possible here, by name and with its key, and the lists that have no key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import cast

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input

from legion.client.text.rows import Row, definitions, flow, note
from legion.client.text.terminal import Cell, Colour
from legion.tui.keys import BY_ID, KeyContext, shown_key
from legion.tui.screens.host import UiHost
from legion.tui.widgets.divider import TextLine
from legion.tui.widgets.lines import RowLines
from legion.tui.widgets.row_list import RowList

LISTS = {
    "providers": "Providers: keys, limits, a test request",
    "models": "Models: which provider and model answers for which agent",
    "teams": "Teams: list, edit in your editor",
    "roles": "Roles: list, edit in your editor",
    "workers": "How many agents work at once, and how often a ticket is tried",
    "sessions": "Sessions, one per branch: switch, start, complete",
    "machines": "Machines: restart, pause, remove; what each runs",
    "settings": "Settings in force, and their files",
    "worktrees": "Worktrees of agents, and the trash",
}
_NARROW = 76
_NOT_HERE = ("menu", "leave", "send")


@dataclass(frozen=True)
class Entry:
    id: str
    name: str
    key: str
    help: str
    run: Callable[[], object]


class Menu(ModalScreen[None]):
    BINDINGS = [
        Binding("escape,ctrl+p", "leave", "leave"),
        Binding("down", "move(1)", show=False, priority=True),
        Binding("up", "move(-1)", show=False, priority=True),
    ]
    DEFAULT_CSS = """
    Menu { align: center top; background: $background 60%; }
    Menu > Vertical {
        width: 90%; max-width: 100; height: 90%; margin-top: 1; border: round $primary; background: $background;
    }
    Menu Input { border: none; height: 1; background: $panel; padding: 0 1; }
    Menu RowList { height: 1fr; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._entries: list[Entry] = []

    @property
    def _app(self) -> UiHost:
        return cast(UiHost, self.app)

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = "Menu"
            yield TextLine(placeholder="Type to search; Enter does it", id="search")
            rows = RowList(id="entries")
            rows.can_focus = False
            rows.always_marked = True
            yield rows
            yield RowLines(id="about")

    def on_mount(self) -> None:
        self._entries = self._possible()
        self.query_one(Input).focus()
        self._renew()

    def on_resize(self) -> None:
        self._renew()

    def _possible(self) -> list[Entry]:
        """The actions of the place below, in its order, then the lists."""
        below = self.app.screen_stack[-2]
        found: dict[str, Entry] = {}
        for key, active in below.active_bindings.items():
            known = BY_ID.get(active.binding.id or "")
            if known is None or not active.enabled or known.context is KeyContext.LIST or known.action in _NOT_HERE:
                continue
            run = partial(self.app.run_action, active.binding.action, active.node)
            first = next((one.keys[0] for one in self._app.keys.keys if one.id == known.id and one.keys), key)
            found.setdefault(known.id, Entry(known.id, known.label, shown_key(first), known.help, run))
        ordered = sorted(found.values(), key=lambda one: BY_ID[one.id].context is KeyContext.EVERYWHERE)
        lists = [
            Entry(f"list.{name}", name, "", text, partial(self._app.open_catalog, name)) for name, text in LISTS.items()
        ]
        return [*ordered, *lists]

    @property
    def _wanted(self) -> list[Entry]:
        words = self.query_one(Input).value.lower().split()
        return [one for one in self._entries if all(word in f"{one.name} {one.help}".lower() for word in words)]

    def _renew(self) -> None:
        width = min(96, self.size.width * 9 // 10 - 4)
        lines = [
            (one.id, [Cell(one.key, Colour.CYAN), Cell(one.name, Colour.BOLD), Cell(one.help, Colour.DIM)])
            for one in self._wanted
        ]
        made: list[Row] = definitions([(key, cells[: 2 if self._is_narrow else 3]) for key, cells in lines], width)
        rows = self.query_one("#entries", RowList)
        rows.put(made or [note("Nothing has these letters.")])
        if lines:
            rows.select(lines[0][0])
        self._explain()

    @property
    def _is_narrow(self) -> bool:
        """There is no room for what each action does: only that of the selected one is shown, below the list."""
        return self.size.width < _NARROW

    @on(RowList.Moved)
    def _explain(self) -> None:
        selected = self.query_one("#entries", RowList).selected
        text = next((one.help for one in self._wanted if one.id == selected), "")
        about = self.query_one(RowLines)
        about.display = self._is_narrow
        about.show_all(flow([Cell(text, Colour.YELLOW)], self.size.width * 9 // 10 - 2))

    @on(Input.Changed)
    def _search(self) -> None:
        self._renew()

    @on(Input.Submitted)
    def _go(self) -> None:
        self._run(self.query_one("#entries", RowList).selected)

    @on(RowList.Chosen)
    def _chosen(self, event: RowList.Chosen) -> None:
        event.stop()
        self._run(event.key)

    def _run(self, id: str) -> None:
        entry = next((one for one in self._entries if one.id == id), None)
        if entry is not None:
            self.dismiss()
            self.app.call_later(entry.run)

    def action_move(self, by: int) -> None:
        rows = self.query_one("#entries", RowList)
        (rows.action_down if by > 0 else rows.action_up)()

    def action_leave(self) -> None:
        self.dismiss()
