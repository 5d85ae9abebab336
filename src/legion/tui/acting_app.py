"""Acts for keys that work everywhere: requests with their sentence, questions, the forms and actions of the project."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import cast

from textual.app import App

from legion.client.legion import Legion, row_named
from legion.client.text.rows import clean
from legion.client.text.terminal import count
from legion.tui.drafts import Drafts
from legion.tui.keys import KeyMap
from legion.tui.screens.host import UiHost
from legion.tui.screens.prompts import LinePrompt, YesNo
from legion.tui.store import BoardStore
from legion.tui.typed_ahead import TypedAhead
from legion.wire.errors import LegionError
from legion.wire.plans import RejectPlan
from legion.wire.projects import AddProject, Where


class ActingApp(App[None]):
    """The application as far as it acts; the places are added in `app`."""

    store: BoardStore
    drafts: Drafts
    keys: KeyMap
    typed: TypedAhead

    def __init__(self, *, ansi_color: bool | None = None) -> None:
        super().__init__(ansi_color=ansi_color)
        self._work: set[asyncio.Task[None]] = set()

    @property
    def _host(self) -> UiHost:
        """As screens see it."""
        return cast(UiHost, self)

    def _begin(self, work: object) -> None:
        """Run work on the loop until it ends or the app does."""
        task: asyncio.Task[None] = asyncio.ensure_future(work)  # type: ignore[call-overload]  # a coroutine
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    def send(
        self, call: Callable[[Legion], str], then: Callable[[], None] = lambda: None, *, waits: bool = False
    ) -> None:
        """Send a request that does something; its sentence is shown, and `then` is called where it was done.

        `waits`: the daemon answers when an agent or a provider has, which may take long.
        """

        async def go() -> None:
            try:
                message = await self.store.requests.ask(call, counts=not waits)
            except LegionError as error:
                self.notify(clean(error.message), severity="error", markup=False, timeout=12)
            else:
                self.notify(clean(message), markup=False)
                then()

        self._begin(go())

    def action_new_by_hand(self) -> None:
        project = self.store.project
        if project is None:
            self.notify("Open Legion in a project's folder to work in it.", severity="warning")
            return
        from legion.tui.screens.forms import by_hand_form

        self.push_screen(by_hand_form(self._host, project.root))

    def action_init(self) -> None:
        wanted = AddProject(path=self.store.cwd)
        question = row_named("add_project").asks.format(what=clean(wanted.path))
        self.ask(question, lambda legion: _added(legion, wanted))

    def action_new_ticket(self) -> None:
        from legion.tui.screens.forms import ticket_form

        self.push_screen(ticket_form(self._host, every_field=False))

    def action_new_ticket_full(self) -> None:
        from legion.tui.screens.forms import ticket_form

        self.push_screen(ticket_form(self._host, every_field=True))

    def action_new_plan(self) -> None:
        from legion.tui.screens.plans import plan_form

        self.push_screen(plan_form(self._host))

    def action_hire(self) -> None:
        from legion.tui.screens.forms import hire_form

        self.push_screen(hire_form(self._host))

    def action_pause_project(self) -> None:
        project = self.store.project
        if project is None:
            self.notify("Open Legion in a project's folder to pause it.", severity="warning")
            return
        where = Where(cwd=project.root)
        self.send(lambda legion: (legion.resume(where) if project.paused else legion.pause(where)).message)

    def action_clear_ended(self) -> None:
        self.clear_ended()

    def clear_ended(self) -> None:
        project, status = self.store.project, self.store.status.value
        if project is None or status is None:
            self.notify("Open Legion in a project's folder to clear its board.", severity="warning")
            return
        number = sum(status.counts.get(state, 0) for state in ("done", "failed", "stopped"))
        where = Where(cwd=project.root)
        self.ask(
            f"Remove {count(number, 'ended ticket')} from the board? What landed stays.",
            lambda legion: legion.drop_ended(where).message,
        )

    def action_collect(self) -> None:
        project = self.store.project
        if project is None:
            self.notify("Open Legion in a project's folder to collect.", severity="warning")
            return
        self.collect(project.root)

    def collect(self, root: str) -> None:
        self._begin(self._collect(root))

    def reject_plan(self, id: int) -> None:
        draft = f"plan.P{id}"

        def given(why: str | None) -> None:
            if why:
                self.send(
                    lambda legion: f"{legion.reject_plan(id, RejectPlan(why=why)).plan.id} goes back to its planner.",
                    then=lambda: self.drafts.put(draft, ""),
                )

        self.push_screen(LinePrompt(f"What should be different in P{id}", draft=draft), given)

    def drop_plan(self, id: int, what: str) -> None:
        self.ask(
            row_named("drop_plan").asks.format(what=what), lambda legion: f"{legion.drop_plan(id).plan.id} is dropped."
        )

    async def _collect(self, root: str) -> None:
        """Show what would come, then ask once: not over a form that was opened meanwhile."""
        here = self.screen
        try:
            found = await self.store.requests.ask(lambda legion: legion.preview_collect(root))
        except LegionError as error:
            self.notify(clean(error.message), severity="error", markup=False, timeout=12)
            return
        if not found.commits:
            self.notify(clean(found.message), markup=False)
            return
        coming = f"{count(found.commits, 'commit')}, {count(found.files, 'file')}"
        if self.screen is not here:
            self.notify(f"{coming} can be collected.", markup=False)
            return
        self.ask(
            f"Bring {coming} into {clean(found.branch)} of your repository?",
            lambda legion: legion.collect(Where(cwd=root)).message,
        )

    def act(self, name: str, what: str, *given: object, then: Callable[[], None] = lambda: None) -> None:
        """The operation of that name: its own question about `what`, if it has one, then the request."""
        row, call = row_named(name), partial(_done, name, given)
        if row.asks:
            self.ask(row.asks.format(what=what), call, then, waits=row.waits)
        else:
            self.send(call, then, waits=row.waits)

    def ask(
        self,
        question: str,
        call: Callable[[Legion], str],
        then: Callable[[], None] = lambda: None,
        *,
        waits: bool = False,
    ) -> None:
        """One question, then the request."""

        def go(yes: bool | None) -> None:
            if yes:
                self.send(call, then, waits=waits)

        self.push_screen(YesNo(question), go)


def _done(name: str, given: tuple[object, ...], legion: Legion) -> str:
    return str(getattr(legion, name)(*given).message)


def _added(legion: Legion, wanted: AddProject) -> str:
    made = legion.add_project(wanted)
    return " ".join([f"{made.name} is a project: read {made.config_file} and commit it.", *made.notes])
