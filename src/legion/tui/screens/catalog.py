"""The lists of the menu: providers, models, teams, roles, workers, sessions, settings, worktrees; and their changes."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from textual.widget import Widget

from legion.client.legion import Legion
from legion.client.text.terminal import Cell, Colour
from legion.tui.feed import Feed
from legion.tui.keys import KeyContext
from legion.tui.screens.forms import Form
from legion.tui.screens.place import Place
from legion.tui.store import of_kinds
from legion.tui.views import catalog as view
from legion.tui.views.form_fields import (
    NAME_FIELDS,
    PROVIDER_FIELDS,
    ROUTE_FIELDS,
    SESSION_FIELDS,
    WORKER_FIELDS,
)
from legion.tui.views.rows import BLANK, Row, clean, note, row
from legion.tui.widgets.bindings import bindings_of
from legion.tui.widgets.row_list import RowList
from legion.wire.errors import LegionError
from legion.wire.hands import Numbers, SetNumbers
from legion.wire.providers import AddProvider, Models, RemoveProvider, RemoveRoute, Routes, SetRoute, TryProvider
from legion.wire.sessions import DeleteSession, NamedSession, NewSession
from legion.wire.teams import SaveDefinition

_NEVER = of_kinds("-")
_WITH_ADD = ("providers", "models", "teams", "roles", "sessions")


class CatalogPlace(Place):
    NAME = "menu"
    SHOWS_NEXT = False
    CONTEXTS = (KeyContext.MODELS, KeyContext.LIST)
    BINDINGS = bindings_of(KeyContext.MODELS)

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self._feed: Feed[Any] | None = None
        self._models: Feed[Models] | None = None

    def compose_body(self) -> Iterable[Widget]:
        yield RowList(id="body")

    def on_mount(self) -> None:
        self.query_one("#body", RowList).focus()

    def on_unmount(self) -> None:
        super().on_unmount()
        self.store.drop([feed for feed in (self._feed, self._models) if feed is not None])

    def watches(self) -> Iterable[Callable[[], None]]:
        cwd = self.store.cwd
        fetches: dict[str, Callable[[Legion], Any]] = {
            "providers": lambda legion: legion.providers(),
            "models": lambda legion: legion.routes(),
            "teams": lambda legion: legion.teams(cwd),
            "roles": lambda legion: legion.roles(cwd),
            "workers": lambda legion: legion.numbers(cwd),
            "sessions": lambda legion: legion.sessions(cwd),
            "settings": lambda legion: legion.config(cwd),
            "worktrees": lambda legion: legion.worktrees(cwd),
        }
        if self._feed is None:
            self._feed = self.store.feed(fetches[self.kind], of_kinds("pace.", "project."))
        yield self._feed.watch(self.renew)
        if self.kind == "models":
            if self._models is None:
                self._models = self.store.feed(lambda legion: legion.models(), _NEVER)
            yield self._models.watch(self.renew)

    def renew(self) -> None:
        if self.is_mounted and self._feed is not None:
            title = row(Cell(f"{self.kind}  ", Colour.BOLD), Cell("Esc returns", Colour.DIM))
            self.query_one("#body", RowList).put([title, BLANK, *self._rows(self.size.width - 1)])
            self.refresh_bindings()

    def _rows(self, width: int) -> list[Row]:
        feed = self._feed
        if feed is None or feed.value is None:
            return [note(clean(feed.trouble) if feed is not None and feed.trouble else "Reading.")]
        match self.kind:
            case "providers":
                return view.provider_rows(feed.value, width)
            case "models":
                return view.route_rows(feed.value, self._models.value if self._models is not None else None, width)
            case "teams":
                return view.team_rows(feed.value, width)
            case "roles":
                return view.role_rows(feed.value, width)
            case "workers":
                return view.number_rows(feed.value, width)
            case "sessions":
                return view.session_rows(feed.value, width)
            case "settings":
                return view.setting_rows(feed.value, width)
            case _:
                return view.worktree_rows(feed.value, width)

    @property
    def _selected(self) -> str:
        return self.query_one("#body", RowList).selected if self.is_mounted else ""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "add":
            return self.kind in _WITH_ADD
        if action == "test":
            return self.kind == "providers" and bool(self._selected)
        if action == "remove":
            return self.kind in _WITH_ADD and bool(self._selected)
        if action == "complete":
            return self.kind == "sessions" and bool(self._selected)
        return super().check_action(action, parameters)

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
            wanted = NamedSession(cwd=self.store.cwd, name=event.key)
            self.legion_app.send(lambda legion: legion.switch_session(wanted).message, self._session_changed)
        elif self.kind == "worktrees":
            self.app.copy_to_clipboard(event.key)
            self.app.notify(f"Copied: {clean(event.key)}", markup=False)

    def action_test(self) -> None:
        name = self._selected
        self.app.notify(f"Asking {clean(name)}.", markup=False)
        self.legion_app.send(lambda legion: legion.try_provider(TryProvider(name=name)).message, waits=True)

    def action_add(self) -> None:
        match self.kind:
            case "providers":
                self.app.push_screen(Form("Add a provider", "provider", PROVIDER_FIELDS, _add_provider))
            case "models":
                self.app.push_screen(Form("Set a route", "route", ROUTE_FIELDS, _set_route))
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
        numbers = self._feed.value if self._feed is not None else None
        assert isinstance(numbers, Numbers), "its row was chosen"
        first = {"workers": str(numbers.workers), "retries": str(numbers.retries)}
        self.app.push_screen(Form("Workers and retries", "workers", WORKER_FIELDS, self._set_numbers, first))

    def _set_numbers(self, given: dict[str, object]) -> Callable[[Legion], str]:
        wanted = SetNumbers(cwd=self.store.cwd, **given)  # type: ignore[arg-type]  # whole numbers
        return lambda legion: legion.set_numbers(wanted).message

    def _new_session(self, given: dict[str, object]) -> Callable[[Legion], str]:
        wanted = NewSession(cwd=self.store.cwd, **given)  # type: ignore[arg-type]  # texts

        def make(legion: Legion) -> str:
            acting = next(one for one in legion.new_session(wanted).sessions if one.acting)
            return f"Your tickets go to session {acting.name} on {acting.branch} now."

        return make

    def _session_changed(self) -> None:
        """Everything that is shown belongs to the session, not this list alone."""
        self.store.invalidate()

    def action_complete(self) -> None:
        wanted = NamedSession(cwd=self.store.cwd, name=self._selected)
        question = f"Collect what landed in {clean(wanted.name)} into its branch, and end the session?"
        complete = lambda legion: legion.complete_session(wanted).message  # noqa: E731
        self.legion_app.ask(question, lambda legion: self._removed(legion, complete))

    def action_remove(self) -> None:
        name, cwd = self._selected, self.store.cwd
        match self.kind:
            case "providers":
                call = lambda legion: legion.remove_provider(RemoveProvider(name=name)).message  # noqa: E731
            case "models":
                call = self._route_removal(name)
            case "sessions":
                ended = DeleteSession(cwd=cwd, name=name)
                call = lambda legion: legion.delete_session(ended).message  # noqa: E731
            case "teams":
                call = lambda legion: legion.remove_team(cwd, name).message  # noqa: E731
            case _:
                call = lambda legion: legion.remove_role(cwd, name).message  # noqa: E731
        self.legion_app.ask(f"Remove {clean(name)}?", lambda legion: self._removed(legion, call))

    def _route_removal(self, key: str) -> Callable[[Legion], str]:
        routes = self._feed.value if self._feed is not None else None
        assert isinstance(routes, Routes)
        one = routes.routes[int(key.removeprefix("route "))]
        wanted = RemoveRoute(model=one.model, provider=one.provider, agent=one.agent, role=one.role, team=one.team)
        return lambda legion: legion.remove_route(wanted).message

    def _removed(self, legion: Legion, call: Callable[[Legion], str]) -> str:
        message = call(legion)
        self.app.call_from_thread(self._session_changed if self.kind == "sessions" else self._again)
        return message

    def _edit(self, name: str, new: bool) -> None:
        self.run_worker(self._edit_in_editor(name, new), exclusive=True)

    async def _edit_in_editor(self, name: str, new: bool) -> None:
        """The text as it is, the person's editor, and the daemon's word about the result. A refused text is kept."""
        cwd, is_team = self.store.cwd, self.kind == "teams"
        ask = self.store.requests.ask
        try:
            found = await ask(lambda legion: (legion.team_text if is_team else legion.role_text)(cwd, name, new))
            draft = f"definition.{self.kind}.{name}"
            text = self._typed(self.legion_app.drafts.get(draft) or found.text, name)
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

    def _typed(self, text: str, name: str) -> str | None:
        """What the editor left; None where it ended with an error."""
        editor = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
        with tempfile.TemporaryDirectory(prefix="legion-") as folder:
            file = Path(folder) / f"{self.kind[:-1]}-{''.join(one for one in name if one.isalnum())}.toml"
            file.write_text(text)
            with self.app.suspend():
                try:
                    ended = subprocess.run([*editor, str(file)], check=False)
                except OSError as error:
                    self.app.notify(f"{editor[0]} does not start: {error.strerror}; set EDITOR.", severity="error")
                    return None
            return file.read_text() if ended.returncode == 0 else None


def _add_provider(given: dict[str, object]) -> Callable[[Legion], str]:
    if not given.get("name"):
        raise ValueError("Write the provider's name.")
    wanted = AddProvider(**given)  # type: ignore[arg-type]  # texts
    return lambda legion: legion.add_provider(wanted).message


def _set_route(given: dict[str, object]) -> Callable[[Legion], str]:
    if not given.get("model") or not given.get("to"):
        raise ValueError("Write the model, and where it is asked for.")
    wanted = SetRoute(**given)  # type: ignore[arg-type]  # texts
    return lambda legion: legion.set_route(wanted).message
