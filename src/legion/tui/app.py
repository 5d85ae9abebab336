"""The application: the store, the places, and the actions that work everywhere."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, partialmethod
from pathlib import Path
from typing import ClassVar

from textual import events
from textual.app import SuspendNotSupported
from textual.filter import LineFilter
from textual.theme import Theme
from textual.widgets import Input, TextArea

from legion.client.text.rows import clean
from legion.tui.acting_app import ActingApp
from legion.tui.attachment import Attachment
from legion.tui.branch_offer import BranchOffer, offer_of
from legion.tui.drafts import Drafts
from legion.tui.keys import KeyContext, KeyMap
from legion.tui.link.connection import Phase
from legion.tui.screens.place import PLACES, Place
from legion.tui.screens.prompts import Choice, Reader
from legion.tui.store import BoardStore, StartedWith
from legion.tui.typed_ahead import TypedAhead
from legion.tui.views.status_line import help_rows
from legion.tui.widgets.bindings import bindings_of, changes_of
from legion.tui.widgets.lines import AsciiFilter
from legion.wire.errors import LegionError
from legion.wire.tickets import TicketLine

THEMES = (
    Theme(
        name="legion-dark", primary="#5c9dff", secondary="#57c7d4", accent="#57c7d4", warning="#e5b567",
        error="#f2777a", success="#8fce7f", foreground="#dcdfe4",
        background="#14161b", surface="#1b1e25", panel="#232833", dark=True,
    ),
    Theme(
        name="legion-light", primary="#1f5fbf", secondary="#0b7a86", accent="#0b7a86", warning="#8a5a00",
        error="#b3261e", success="#2d7a1f", foreground="#1d2026",
        background="#fbfbfa", surface="#f0f0ee", panel="#e4e6ea", dark=False,
    ),
)  # fmt: skip
DARK, LIGHT = ("legion-dark", "ansi-dark"), ("legion-light", "ansi-light")
"""By whether the terminal has few colours."""


_FIRST = "squad"
_BRANCH_OFFERED = "ui.branch"
_KEEP_TITLE, _TITLE_BACK = "\x1b[22;0t", "\x1b[23;0t"


@dataclass(frozen=True, kw_only=True)
class Options:
    """How the UI was started."""

    data_dir: Path
    cwd: str
    memory: Path | None = None
    """The file for drafts and what the UI remembers."""
    few_colours: bool = False
    """The terminal has 16 colours: its own are used."""
    light: bool = False
    ascii: bool = False
    """The terminal shows no other characters."""
    start: bool = True
    """Whether a daemon may be started."""
    first: str = _FIRST


class LegionApp(ActingApp):
    TITLE = "Legion"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS = bindings_of(KeyContext.EVERYWHERE)
    CSS = """
    Toast { width: auto; max-width: 70%; }
    Input, Input:focus, TextArea, TextArea:focus { border: none; }
    """
    _PLACES: ClassVar[dict[str, str]] = {
        "squad": "squad:SquadPlace",
        "board": "board:BoardPlace",
        "inbox": "inbox:InboxPlace",
        "agents": "agents:AgentsPlace",
        "queue": "queue:QueuePlace",
        "usage": "usage:UsagePlace",
        "plans": "plans:PlansPlace",
    }

    def __init__(self, options: Options, known: StartedWith | None = None) -> None:
        # Only so does Textual take all colour codes away for NO_COLOR; greys would be colours, too.
        super().__init__(ansi_color=options.few_colours or None)
        self.options = options
        self.keys = KeyMap()
        self.drafts = Drafts(options.memory)
        self.store = BoardStore(options.data_dir, options.cwd, start=options.start, known=known)
        self._attachment = Attachment(self.store.requests, self._lend, self._waiting)
        self.typed = TypedAhead(self, super().on_event)
        self._places: dict[str, Place] = {}
        self._branch_seen: tuple[str, ...] = ()
        self._lent = False
        """Another program has the terminal."""
        for theme in THEMES:
            self.register_theme(theme)
        light = self.drafts.get("ui.light")
        self._colours(bool(options.light) if not light else light == "yes")

    def _colours(self, light: bool) -> None:
        self.theme = (LIGHT if light else DARK)[self.options.few_colours]

    def on_mount(self) -> None:
        if not self.is_headless:
            leave = partial(self._leave, asyncio.get_running_loop())
            for number in (signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, leave)
        self.push_screen(self._place(self.options.first))
        self._begin(self.store.run())
        self._begin(self._read_settings())
        self.store.status.watch(self._look_at_branch)

    def _leave(self, loop: asyncio.AbstractEventLoop, number: int, frame: object) -> None:
        """A signal ends the UI as `q` does, so that the terminal is as it was."""
        if self._lent:
            # The loop waits for the other program.
            raise SystemExit(128 + number)
        loop.call_soon_threadsafe(lambda: self.exit(return_code=128 + number))

    def get_line_filters(self) -> Sequence[LineFilter]:
        found = super().get_line_filters()
        return [*found, AsciiFilter()] if self.options.ascii else found

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            await self.typed.take(event)
        else:
            await super().on_event(event)

    def on_app_focus(self) -> None:
        # The person may have changed the branch in another terminal, which is no event.
        self.store.status.invalidate()

    def _look_at_branch(self) -> None:
        """With the first status, and where its notes about the project changed."""
        project = self.store.project
        seen = (project.root, project.session, *project.notes) if project is not None else None
        if seen is None or seen == self._branch_seen or not self._is_free:
            return
        first, self._branch_seen = not self._branch_seen, seen
        if first or (project is not None and project.notes):
            self._begin(self._offer_sessions(first))

    @property
    def _is_free(self) -> bool:
        """Whether the person looks at a place, and neither types nor answers something."""
        writes = isinstance(self.focused, Input | TextArea)
        return isinstance(self.screen, Place) and not self.has_screen_on_top and not writes

    async def _offer_sessions(self, first: bool) -> None:
        """One question where the checkout has another branch; at the start the list, where there are several."""
        try:
            found = await self.store.requests.ask(lambda legion: legion.sessions(self.store.cwd))
        except LegionError:
            return
        offer = offer_of(found)
        if offer is None or self.drafts.get(_BRANCH_OFFERED) == offer.key:
            if first and sum(one.ended_at is None for one in found.sessions) > 1 and self._is_free:
                self.open_catalog("sessions")
        elif self._is_free:
            self.push_screen(Choice(offer.question, offer.choices), lambda choice: self._follow_branch(offer, choice))

    def _follow_branch(self, offer: BranchOffer, choice: str | None) -> None:
        self.drafts.put(_BRANCH_OFFERED, offer.key)
        request = offer.request(choice or "", self.store.cwd)
        if request is not None:
            self.send(request, self.store.invalidate)

    def _place(self, name: str) -> Place:
        if name not in self._places:
            import importlib

            module, _, attribute = self._PLACES[name].partition(":")
            self._places[name] = getattr(importlib.import_module(f"legion.tui.screens.{module}"), attribute)()
            # Textual removes a screen that it does not know when another takes its place.
            self.install_screen(self._places[name], name)
        return self._places[name]

    async def on_unmount(self) -> None:
        for task in list(self._work):
            task.cancel()

    async def _read_settings(self) -> None:
        """The person's changes of keys. Without an answer the defaults stay."""
        try:
            found = await self.store.requests.ask(lambda legion: legion.config(self.store.cwd))
        except LegionError:
            return
        values = {line.key: line.value for line in found.settings}
        lines = values.get("tui.keys")
        self.keys = KeyMap.with_changes([str(line) for line in lines] if isinstance(lines, list) else [])
        self.set_keymap(changes_of(self.keys))
        faults = [f"[tui] keys in {found.user_file}: {fault}." for fault in self.keys.faults]
        for fault in [found.complaint, *faults] if found.complaint else faults:
            self.notify(fault, severity="warning", markup=False, timeout=15)

    # Terminals

    @contextmanager
    def _lend(self) -> Iterator[None]:
        """The terminal for another program; the window gets its own title back."""
        with self.suspend():
            self._lent = True
            sys.stderr.write(_KEEP_TITLE)
            sys.stderr.flush()
            try:
                yield
            finally:
                sys.stderr.write(_TITLE_BACK)
                sys.stderr.flush()
                self._lent = False

    @contextmanager
    def _waiting(self, what: str) -> Iterator[asyncio.Event]:
        from legion.tui.screens.prompts import WaitDialog

        dialog = WaitDialog(what)
        self.push_screen(dialog)
        try:
            yield dialog.given_up
        finally:
            dialog.dismiss()

    def attach(self, id: int) -> None:
        self._begin(self._in_terminal(self._attachment.attach(id)))

    def open_shell(self, id: int) -> None:
        self._begin(self._in_terminal(self._attachment.shell(id)))

    async def _in_terminal(self, work: Awaitable[str]) -> None:
        try:
            message = await work
        except (LegionError, SuspendNotSupported) as error:
            self.notify(clean(str(error)), severity="error", markup=False, timeout=12)
        else:
            self.notify(clean(message), markup=False)
        self.store.invalidate()

    # Places

    @property
    def has_screen_on_top(self) -> bool:
        """Whether a ticket, a list or a question covers the place. Below the place is Textual's own empty screen."""
        return len(self.screen_stack) > 2

    def go(self, name: str) -> None:
        """To a place; a ticket's screen on top of another is closed."""
        while self.has_screen_on_top:
            self.pop_screen()
        if self.screen is not self._place(name):
            self.switch_screen(self._place(name))

    def open_ticket(self, id: int, tab: str = "live") -> None:
        from legion.tui.screens.ticket import TicketScreen

        if isinstance(self.screen, TicketScreen) and self.screen.id_of_ticket == id:
            self.screen.show_tab(tab)
        else:
            self.push_screen(TicketScreen(id, tab))

    def open_agent(self, id: str) -> None:
        self._open_page("agents", id)

    def open_plan(self, key: str) -> None:
        self._open_page("plans", key)

    def _open_page(self, name: str, key: str) -> None:
        from legion.tui.screens.list_and_page import ListAndPage

        place = self._place(name)
        assert isinstance(place, ListAndPage)
        place.wanted = key
        self.go(name)

    def open_catalog(self, name: str) -> None:
        """A list of the menu: providers, workers, sessions and so on."""
        from legion.tui.screens.catalog import CatalogPlace
        from legion.tui.screens.machines import MachinesPlace
        from legion.tui.screens.models import ModelsPlace

        own = {"models": ModelsPlace, "machines": MachinesPlace}
        self.push_screen(own[name]() if name in own else CatalogPlace(name))

    def open_retry(self, ticket: TicketLine) -> None:
        from legion.tui.screens.forms import RetryForm

        self.push_screen(RetryForm(ticket.id))

    action_squad = partialmethod(go, "squad")
    action_board = partialmethod(go, "board")
    action_inbox = partialmethod(go, "inbox")
    action_agents = partialmethod(go, "agents")
    action_queue = partialmethod(go, "queue")
    action_usage = partialmethod(go, "usage")
    action_plans = partialmethod(go, "plans")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "go_back":
            begun = isinstance(self.screen, Place) and self.screen.first_step() is not None
            return begun or self.has_screen_on_top or self.screen is not self._place(_FIRST)
        if action == "init":
            return self.store.status.value is not None and self.store.project is None
        if action == "start_daemon":
            return self.store.requests.phase in (Phase.GONE, Phase.CONNECTING)
        return True

    def action_go_back(self) -> None:
        if isinstance(self.screen, Place) and self.screen.put_down():
            return
        if self.has_screen_on_top:
            self.pop_screen()
        elif self.screen is not self._place(_FIRST):
            self.go(_FIRST)

    def action_next_pane(self) -> None:
        self.screen.focus_next()

    def action_previous_pane(self) -> None:
        self.screen.focus_previous()

    async def action_quit(self) -> None:
        self.exit()

    def action_help(self) -> None:
        contexts = self.screen.CONTEXTS if isinstance(self.screen, Place) else ()
        self.push_screen(Reader("Keys", lambda width: help_rows(self.keys, contexts, width)))

    def action_menu(self) -> None:
        from legion.tui.screens.menu import Menu

        if not isinstance(self.screen, Menu):
            self.push_screen(Menu())

    def action_refresh(self) -> None:
        self.store.invalidate()

    def action_light(self) -> None:
        light = self.theme in DARK
        self._colours(light)
        self.drafts.put("ui.light", "yes" if light else "no")

    def action_start_daemon(self) -> None:
        self.store.requests.start_next_time()
        self.notify("Starting Legion.")


assert set(LegionApp._PLACES) == set(PLACES)
