"""Forms: new ticket, retry, hire. Fields are checked while they are typed; every letter is kept until it was sent."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from typing import cast

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Input, Label, Select, Switch, TextArea

from legion.client.legion import Legion
from legion.client.text.rows import clean
from legion.tui.keys import KeyContext
from legion.tui.screens.host import UiHost
from legion.tui.screens.prompts import Picker
from legion.tui.views import squad
from legion.tui.views.form_fields import (
    BY_HAND_FIELDS,
    HIRE_FIELDS,
    RETRY_FIELDS,
    FormField,
    ticket_fields,
    values,
    with_title,
)
from legion.tui.widgets.bindings import bindings_of
from legion.tui.widgets.divider import TextLine
from legion.tui.widgets.lines import KeyLine
from legion.wire.agents import HireAgent
from legion.wire.dispatch import Dispatch, NewTicket
from legion.wire.errors import LegionError
from legion.wire.terminal import NewByHand
from legion.wire.ticket_fields import FieldKind, request_of
from legion.wire.tickets import Action, EditTicket

Offer = Callable[[Legion, str], list[tuple[str, str]]]
"""Reads the choices for a folder, as (value, text). Called in a thread of the requests."""


def _branches(legion: Legion, cwd: str) -> list[tuple[str, str]]:
    return [(name, clean(name)) for name in legion.branches(cwd).branches]


def _drivers(legion: Legion, cwd: str) -> list[tuple[str, str]]:
    return [(one.name, clean(f"{one.name}  {one.title}")) for one in legion.drivers().drivers if not one.fault]


def _models(legion: Legion, cwd: str) -> list[tuple[str, str]]:
    return [(model, clean(f"{model}  {one.provider}")) for one in legion.models().providers for model in one.models]


def _teams(legion: Legion, cwd: str) -> list[tuple[str, str]]:
    return [(one.name, clean(f"{one.name}  {one.about}")) for one in legion.teams(cwd).teams]


def _roles(legion: Legion, cwd: str) -> list[tuple[str, str]]:
    return [(one.name, clean(f"{one.name}  {one.about}")) for one in legion.roles(cwd).roles]


OFFERS: Mapping[str, Offer] = {
    "branch": _branches,
    "base": _branches,
    "driver": _drivers,
    "profile": _drivers,
    "model": _models,
    "team": _teams,
    "role": _roles,
}
"""By the name of the field."""


Request = Callable[[dict[str, object]], Callable[[Legion], str]]
"""Makes the request of what was filled in. Raises ValueError with a sentence."""


class Form(ModalScreen[None]):
    CONTEXTS = (KeyContext.FORM,)
    BINDINGS = bindings_of(KeyContext.FORM)
    DEFAULT_CSS = """
    Form { align: center middle; background: $background 60%; }
    Form > Vertical { width: 90%; max-width: 100; height: 90%; border: round $primary; background: $background; }
    Form VerticalScroll { height: 1fr; padding: 0 1; scrollbar-size: 1 1; }
    Form Label { color: $text-muted; margin-top: 1; height: auto; width: 1fr; }
    Form Input { border: none; background: $surface; height: 1; padding: 0 1; }
    Form Input:focus { background: $panel; }
    Form TextArea { border: none; background: $surface; height: 4; padding: 0 1; }
    Form TextArea:focus { background: $panel; height: 8; }
    Form Switch { border: none; height: 1; padding: 0; background: $background; }
    Form Select { height: auto; }
    Form #fault { height: auto; min-height: 1; margin: 0 1; color: $text-error; }
    """

    def __init__(
        self,
        title: str,
        name: str,
        fields: list[FormField],
        request: Request,
        first: Mapping[str, str] | None = None,
        then: Callable[[], None] = lambda: None,
    ) -> None:
        """`name` is where drafts are kept; `first` is in fields without one; `then` follows an answer."""
        super().__init__()
        self._title = title
        self._draft = f"form.{name}."
        self._fields = {field.name: field for field in fields}
        self._request = request
        self._sending = False
        self._first = first or {}
        self._then = then

    @property
    def _app(self) -> UiHost:
        return cast(UiHost, self.app)

    def compose(self) -> ComposeResult:
        drafts = {**self._first, **self._app.drafts.of(self._draft)}
        with Vertical() as box:
            box.border_title = self._title
            with VerticalScroll(can_focus=False):
                for field in self._fields.values():
                    yield Label(f"{field.label}: {clean(field.help)}", id=f"label-{field.name}", markup=False)
                    yield _entry(field, drafts.get(field.name, ""))
            yield Label("", id="fault", markup=False)
            yield KeyLine(id="keys")

    def on_mount(self) -> None:
        for area in self.query(TextArea):
            area.move_cursor(area.document.end)
        self.query_one(f"#field-{next(iter(self._fields))}").focus()

    def set_focus(self, widget: Widget | None, scroll_visible: bool = True, from_app_focus: bool = False) -> None:
        """Without Textual's own scrolling, which shows the field alone: its label may be above the edge then."""
        super().set_focus(widget, scroll_visible=False, from_app_focus=from_app_focus)
        if widget is not None:
            # The height of a field changes with the focus, so its place is known after the next frame.
            self.call_after_refresh(self._show, widget)

    def _show(self, field: Widget) -> None:
        name = _name_of(field)
        if self.is_attached and field is self.focused and name in self._fields:
            for part in (field, self.query_one(f"#label-{name}")):
                part.scroll_visible(animate=False, immediate=True)

    @on(Input.Changed)
    @on(TextArea.Changed)
    @on(Select.Changed)
    @on(Switch.Changed)
    def _typed(self, event: Input.Changed | TextArea.Changed | Select.Changed | Switch.Changed) -> None:
        control = event.control
        name = _name_of(control)
        if name in self._fields:
            text = _text_of(control)
            if not self._fields[name].secret:
                kept = "" if text == self._first.get(name, "") else text
                self._app.drafts.put(f"{self._draft}{name}", kept)
            self._say(self._fields[name].fault(text) or "")

    @on(Input.Submitted)
    def _next(self) -> None:
        self.focus_next()

    # With priority: letters that were typed ahead of it stay in their field, and those behind it go to the next one.

    def action_next_field(self) -> None:
        self.focus_next()

    def action_previous_field(self) -> None:
        self.focus_previous()

    @property
    def _choosable(self) -> Input | None:
        """The focused field, where the daemon knows what can be in it."""
        field = self.focused
        return field if isinstance(field, Input) and _name_of(field) in OFFERS else None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self._choosable is not None if action == "choose" else super().check_action(action, parameters)

    def action_choose(self) -> None:
        field = self._choosable
        if field is None:
            return

        def put(chosen: str | None) -> None:
            if chosen is not None:
                field.value = chosen

        picker = Picker(self._fields[_name_of(field)].label, None, field.value)
        self.app.push_screen(picker, put)
        self.run_worker(self._offer(picker, OFFERS[_name_of(field)]), exclusive=True)

    async def _offer(self, picker: Picker, read: Offer) -> None:
        store = self._app.store
        cwd = store.project_root or store.cwd
        try:
            picker.offer(await store.requests.ask(lambda legion: read(legion, cwd)))
        except LegionError as error:
            picker.offer([])
            self._say(error.message)

    def _say(self, fault: str) -> None:
        self.query_one("#fault", Label).update(clean(fault))

    def action_leave(self) -> None:
        kept = any(self._app.drafts.of(self._draft).values())
        self.dismiss()
        if kept:
            self.app.notify("What you typed is kept: open the form again to continue.")

    def action_send(self) -> None:
        if self._sending:
            return
        texts = {name: _text_of(self.query_one(f"#field-{name}")) for name in self._fields}
        try:
            call = self._request(values(list(self._fields.values()), texts))
        except ValueError as wrong:
            self._say(str(wrong))
            return
        self._sending = True
        self.run_worker(self._send(call), exclusive=True)

    async def _send(self, call: Callable[[Legion], str]) -> None:
        """The daemon's own sentence stays in the form, with everything that was typed."""
        try:
            message = await self._app.store.requests.ask(call)
        except LegionError as error:
            self._say(error.message)
        else:
            self._app.drafts.remove(self._draft)
            self.app.notify(clean(message), markup=False)
            self.dismiss()
            self._then()
        finally:
            self._sending = False


def _entry(field: FormField, text: str) -> Widget:
    id = f"field-{field.name}"
    if field.kind is FieldKind.FLAG:
        return Switch(value=text == "yes", id=id, animate=False)
    if field.choices:
        options = [(choice, choice) for choice in field.choices if choice]
        return Select(options, id=id, prompt="as usual", compact=True, value=text or Select.NULL)
    if field.big:
        return TextArea(text, id=id, tab_behavior="focus", show_line_numbers=False)
    return TextLine(text, id=id, password=field.secret)


def _name_of(control: Widget) -> str:
    return (control.id or "").removeprefix("field-")


def _text_of(control: Widget) -> str:
    if isinstance(control, Switch):
        return "yes" if control.value else ""
    if isinstance(control, Select):
        return "" if control.is_blank() else str(control.value)
    if isinstance(control, TextArea):
        return control.text
    return control.value if isinstance(control, Input) else ""


def ticket_form(app: UiHost, *, every_field: bool) -> Form:
    def request(given: dict[str, object]) -> Callable[[Legion], str]:
        ticket = request_of(NewTicket, with_title(given), "")
        wanted = Dispatch(cwd=app.store.project_root or app.store.cwd, tickets=[ticket], request=str(uuid.uuid4()))
        return lambda legion: _dispatched(legion, wanted)

    title = "New ticket, all fields" if every_field else "New ticket"
    return Form(title, "ticket", ticket_fields(every=every_field), request)


def _dispatched(legion: Legion, wanted: Dispatch) -> str:
    made = legion.dispatch(wanted)
    return " ".join([f"Ticket {made.ids[0]} is on the board.", *made.notes])


def by_hand_form(app: UiHost, root: str) -> Form:
    made: list[int] = []

    def request(given: dict[str, object]) -> Callable[[Legion], str]:
        if not given.get("name"):
            raise ValueError("Write a name: what you want to work on.")
        wanted = request_of(NewByHand, given, root)
        return lambda legion: _opened(legion, wanted, made)

    title = "Work together with an agent, in its terminal"
    return Form(title, "by-hand", BY_HAND_FIELDS, request, then=lambda: app.attach(made[-1]))


def _opened(legion: Legion, wanted: NewByHand, made: list[int]) -> str:
    answer = legion.new_by_hand(wanted)
    made += answer.ids
    return " ".join([f"Ticket {made[-1]} opens.", *answer.notes])


class RetryForm(Form):
    """Feedback, and the texts of the ticket: those that the person changes are changed before it is tried again.

    It is there at once, so that no key that follows goes elsewhere; the texts follow when the daemon has answered.
    """

    def __init__(self, id: int) -> None:
        super().__init__(f"Retry #{id}", f"retry.{id}", RETRY_FIELDS, self._retry)
        self._ticket = id
        self._texts: dict[str, str] = {}

    def on_mount(self) -> None:
        # Textual calls that of the other class, too.
        self.run_worker(self._read())

    async def _read(self) -> None:
        try:
            page = await self._app.store.requests.ask(lambda legion: legion.ticket(self._ticket))
        except LegionError as error:
            self._say(error.message)
            return
        self._texts = {"text": page.text, "context": page.context, "criteria": page.criteria}
        self._first = self._texts
        for name, text in self._texts.items():
            area = self.query_one(f"#field-{name}", TextArea)
            if not area.text:
                area.load_text(text)
                area.move_cursor(area.document.end)

    def _retry(self, given: dict[str, object]) -> Callable[[Legion], str]:
        typed = {name: str(given.get(name, "")) for name in self._texts}
        changed = {name: text for name, text in typed.items() if text.strip() != self._texts[name].strip()}
        edit = request_of(EditTicket, changed, "") if changed else None
        wanted = Action(feedback=str(given.get("feedback", "")), edit=edit)
        return lambda legion: legion.retry(self._ticket, wanted).message


def hire_form(app: UiHost) -> Form:
    def request(given: dict[str, object]) -> Callable[[Legion], str]:
        if not given.get("task"):
            raise ValueError("Write the task: what the agent is there for.")
        wanted = request_of(HireAgent, given, app.store.project_root or app.store.cwd)
        return lambda legion: legion.hire(wanted).message

    project, known = app.store.project, app.store.agents.value
    first = known is not None and squad.leader_of(known, project.name if project else "") is None
    return Form("Hire a standing agent", "hire", HIRE_FIELDS, request, squad.FIRST_HIRE if first else None)
