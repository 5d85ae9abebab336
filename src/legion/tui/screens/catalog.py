"""Lists of the menu: providers, teams, roles, workers, sessions, settings, worktrees; and how they are changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from textual.widget import Widget

from legion.client.legion import Legion
from legion.client.text import catalog
from legion.client.text.providers import provider_rows
from legion.client.text.rows import BLANK, Row, clean, paragraph, row
from legion.client.text.terminal import Cell, Colour
from legion.tui.attachment import edited
from legion.tui.feed import Feed
from legion.tui.keys import KeyContext
from legion.tui.screens.forms import Form
from legion.tui.screens.place import Place
from legion.tui.screens.prompts import Reader
from legion.tui.store import of_kinds
from legion.tui.views.form_fields import NAME_FIELDS, PROVIDER_FIELDS, SESSION_FIELDS, WORKER_FIELDS
from legion.tui.widgets.bindings import bindings_of
from legion.tui.widgets.row_list import RowList
from legion.wire.errors import LegionError
from legion.wire.projects import Numbers, SetNumbers
from legion.wire.providers import AddProvider, RemoveProvider, TryProvider
from legion.wire.sessions import DeleteSession, NamedSession, NewSession, SessionLine, SessionList
from legion.wire.teams import SaveDefinition
from legion.wire.ticket_fields import request_of

Answer = TypeVar("Answer")

_WITH_ADD = ("providers", "teams", "roles", "sessions")


@dataclass(frozen=True, kw_only=True)
class _List:
    """One list of the menu: the request that reads it, the answer as rows, and what can be done there."""

    fetch: Callable[[Legion, str], object]
    rows: Callable[[Any, int], list[Row]]
    hint: str = ""


_EDITS = "Enter edits; a shipped one becomes yours."
_SWITCHES = "● gets your tickets; Enter switches, Esc continues with it."
_SETS = "Edit a file; changes count without a restart. `agents.parallel` is the number of workers."
_LISTS = {
    "providers": _List(fetch=lambda legion, _: legion.providers(), rows=provider_rows),
    "teams": _List(fetch=lambda legion, cwd: legion.teams(cwd), rows=catalog.team_rows, hint=_EDITS),
    "roles": _List(fetch=lambda legion, cwd: legion.roles(cwd), rows=catalog.role_rows, hint=_EDITS),
    "workers": _List(
        fetch=lambda legion, cwd: legion.numbers(cwd),
        rows=catalog.number_rows,
        hint="Enter changes these numbers at once, without a commit.",
    ),
    "sessions": _List(
        fetch=lambda legion, cwd: legion.sessions(cwd, all=True), rows=catalog.session_rows, hint=_SWITCHES
    ),
    "settings": _List(fetch=lambda legion, cwd: legion.config(cwd), rows=catalog.setting_rows, hint=_SETS),
    "worktrees": _List(fetch=lambda legion, cwd: legion.worktrees(cwd), rows=catalog.worktree_rows),
}


class CatalogPlace(Place):
    NAME = "menu"
    SHOWS_NEXT = False
    CONTEXTS = (KeyContext.MODELS, KeyContext.LIST)
    BINDINGS = bindings_of(KeyContext.MODELS)

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self._feed: Feed[object] | None = None

    def compose_body(self) -> Iterable[Widget]:
        yield RowList(id="body")

    def on_mount(self) -> None:
        self.query_one("#body", RowList).focus()

    def on_unmount(self) -> None:
        super().on_unmount()
        self.store.drop([self._feed] if self._feed is not None else [])

    def watches(self) -> Iterable[Callable[[], None]]:
        if self._feed is None:
            self._feed = self.store.feed(self.fetch, of_kinds("pace.", "project."))
        yield self._feed.watch(self.renew)

    def fetch(self, legion: Legion) -> object:
        """What the list shows, in one request or a few."""
        return _LISTS[self.kind].fetch(legion, self.store.cwd)

    def renew(self) -> None:
        if self.is_mounted and self._feed is not None:
            title = row(Cell(f"{self.kind}  ", Colour.BOLD), Cell("Esc returns", Colour.DIM))
            width = self.size.width - 1
            self.query_one("#body", RowList).put([title, BLANK, *self._rows(width)])
            self.refresh_bindings()

    def _rows(self, width: int) -> list[Row]:
        value = self.value
        if value is None:
            trouble = self._feed.trouble if self._feed is not None else ""
            return paragraph(trouble or "Reading.", width, colour=Colour.DIM)
        return self.rows_of(value, width)

    @property
    def value(self) -> object:
        """The last answer; None before the first."""
        return self._feed.value if self._feed is not None else None

    def rows_of(self, value: object, width: int) -> list[Row]:
        one = _LISTS[self.kind]
        told = [BLANK, *paragraph(one.hint, width, colour=Colour.DIM)] if one.hint else []
        return [*one.rows(value, width), *told]

    @property
    def _selected(self) -> str:
        return self.query_one("#body", RowList).selected if self.is_mounted else ""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "add":
            return self.kind in _WITH_ADD
        if action == "test":
            return self.kind == "providers" and bool(self._selected)
        if action == "remove":
            ended = self._session is not None and self._session.ended_at is not None
            return self.kind in _WITH_ADD and bool(self._selected) and not ended
        if action in ("complete", "forget"):
            session = self._session
            return session is not None and (session.ended_at is None) == (action == "complete")
        return super().check_action(action, parameters)

    @property
    def _session(self) -> SessionLine | None:
        found = self.value if self.kind == "sessions" else None
        if not isinstance(found, SessionList):
            return None
        return next((one for one in found.sessions if catalog.key_of(one) == self._selected), None)

    def on_row_list_moved(self, event: RowList.Moved) -> None:
        self.refresh_bindings()

    def _again(self) -> None:
        if self._feed is not None:
            self._feed.invalidate()

    def on_screen_resume(self) -> None:
        # A form on top may have changed the list, and such changes are no events.
        self._again()
        super().on_screen_resume()

    def on_row_list_chosen(self, event: RowList.Chosen) -> None:
        if self.kind in ("teams", "roles"):
            self._edit(event.key, new=False)
        elif self.kind == "providers":
            self.action_test()
        elif self.kind == "workers":
            self._change_numbers()
        elif self.kind == "sessions":
            self._switch()
        elif self.kind == "worktrees":
            self.app.copy_to_clipboard(event.key)
            self.app.notify(f"Copied: {clean(event.key)}", markup=False)

    def _switch(self) -> None:
        """To the session and back to the place below, which shows it then."""
        session = self._session
        if session is None or session.ended_at is not None:
            return
        if session.acting:
            self.app.pop_screen()
            return
        wanted = NamedSession(cwd=self.store.cwd, name=session.name)

        def switched() -> None:
            self._session_changed()
            if self.is_current:
                self.app.pop_screen()

        self.legion_app.act("switch_session", "", wanted, then=switched)

    def action_forget(self) -> None:
        wanted = NamedSession(cwd=self.store.cwd, name=self._selected.removeprefix(catalog.ENDED))
        self.legion_app.act("drop_session", "", wanted, then=self._session_changed)

    def action_test(self) -> None:
        name = self._selected
        self.app.notify(f"Asking {clean(name)}.", markup=False)
        self.legion_app.act("try_provider", name, TryProvider(name=name))

    def action_add(self) -> None:
        match self.kind:
            case "providers":
                self.app.push_screen(Form("Add a provider", "provider", PROVIDER_FIELDS, _add_provider))
            case "sessions":
                form = Form("New session", "session", SESSION_FIELDS, self._new_session, then=self._session_changed)
                self.app.push_screen(form)
            case _:
                self.app.push_screen(Form(f"New: {self.kind}", self.kind, NAME_FIELDS, self._new_definition))

    def _new_definition(self, given: dict[str, object]) -> Callable[[Legion], str]:
        name = str(given.get("name", "")).strip()
        if not name:
            raise ValueError("Write its name.")
        self.app.call_later(self._edit, name, True)
        return lambda legion: f"{name}: write it in your editor."

    def _change_numbers(self) -> None:
        numbers = self.value
        assert isinstance(numbers, Numbers), "its row was chosen"
        first = {"workers": str(numbers.workers), "retries": str(numbers.retries)}
        self.app.push_screen(Form("Workers and retries", "workers", WORKER_FIELDS, self._set_numbers, first))

    def _set_numbers(self, given: dict[str, object]) -> Callable[[Legion], str]:
        # What stays as legion.toml has it is not set by the person.
        changed = {name: number for name, number in given.items() if number != getattr(self.value, name, None)}
        wanted = request_of(SetNumbers, changed, self.store.cwd)
        return lambda legion: legion.set_numbers(wanted).message

    def _new_session(self, given: dict[str, object]) -> Callable[[Legion], str]:
        wanted = request_of(NewSession, given, self.store.cwd)

        def make(legion: Legion) -> str:
            acting = next(one for one in legion.new_session(wanted).sessions if one.acting)
            return f"Your tickets go to session {acting.name} on {acting.branch} now."

        return make

    def _session_changed(self) -> None:
        """Everything that is shown belongs to the session, not this list alone."""
        self.store.invalidate()

    def action_complete(self) -> None:
        wanted = NamedSession(cwd=self.store.cwd, name=self._selected)
        self.legion_app.act("complete_session", clean(wanted.name), wanted, then=self._session_changed)

    def action_remove(self) -> None:
        name, cwd = self._selected, self.store.cwd
        removals: dict[str, tuple[str, tuple[object, ...]]] = {
            "providers": ("remove_provider", (RemoveProvider(name=name),)),
            "sessions": ("delete_session", (DeleteSession(cwd=cwd, name=name),)),
            "teams": ("remove_team", (cwd, name)),
            "roles": ("remove_role", (cwd, name)),
        }
        operation, given = removals[self.kind]
        then = self._session_changed if self.kind == "sessions" else self._again
        self.legion_app.act(operation, clean(name), *given, then=then)

    async def show_answer(
        self, title: str, call: Callable[[Legion], Answer], rows: Callable[[Answer, int], list[Row]]
    ) -> None:
        """Ask, and show the answer on top."""
        try:
            found = await self.store.requests.ask(call)
        except LegionError as error:
            self.app.notify(clean(error.message), severity="error", markup=False, timeout=12)
        else:
            self.app.push_screen(Reader(title, lambda width: rows(found, width)))

    def _edit(self, name: str, new: bool) -> None:
        self.run_worker(self._edit_in_editor(name, new), exclusive=True)

    async def _edit_in_editor(self, name: str, new: bool) -> None:
        """The text as it is, the person's editor, and the daemon's answer to the result. A refused text is kept."""
        cwd, is_team = self.store.cwd, self.kind == "teams"
        ask = self.store.requests.ask
        try:
            found = await ask(lambda legion: (legion.team_text if is_team else legion.role_text)(cwd, name, new))
            draft = f"definition.{self.kind}.{name}"
            text = edited(self.app, self.legion_app.drafts.get(draft) or found.text, f"{self.kind[:-1]}-{name}")
            if text is None or text == found.text:
                self.app.notify("Nothing was changed.")
                return
            self.legion_app.drafts.put(draft, text)
            wanted = SaveDefinition(cwd=cwd, name=name, text=text, new=new)
            done = await ask(lambda legion: (legion.save_team if is_team else legion.save_role)(wanted))
        except LegionError as error:
            self.app.notify(clean(error.message), severity="error", markup=False, timeout=15)
            return
        self.legion_app.drafts.put(draft, "")
        self.app.notify(clean(done.message), markup=False)
        self._again()


def _add_provider(given: dict[str, object]) -> Callable[[Legion], str]:
    if not given.get("name"):
        raise ValueError("Write the provider's name.")
    wanted = request_of(AddProvider, given, "")
    return lambda legion: legion.add_provider(wanted).message
