"""A place in which tickets are selected or marked: the keys that act on them.

A key works where the ticket's line offers its operation.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar

from legion.client.http import NotRunning
from legion.client.legion import Legion
from legion.client.text.rows import Row, clean, paragraph
from legion.client.text.terminal import Cell, Colour, count
from legion.tui.screens.place import Place
from legion.tui.screens.prompts import Choice, LinePrompt, YesNo
from legion.tui.widgets.row_list import RowList
from legion.wire.dispatch import Dispatch, NewTicket
from legion.wire.errors import LegionError
from legion.wire.mail import MessageText
from legion.wire.terminal import OfferWork
from legion.wire.tickets import Action, TicketLine

OPERATIONS = {
    "stop": ("stop",), "pause": ("pause_ticket",), "resume": ("resume_ticket",), "drop": ("drop",),
    "review": ("review",), "land": ("land",), "undo": ("undo",), "checkout": ("checkout",), "push": ("push",),
    "submit": ("submit_ticket",), "interrupt": ("interrupt",), "message": ("tell",), "attach": ("attach",),
    "shell": ("shell",), "diff": ("diff",), "retry": ("retry", "resume_ticket"),
}  # fmt: skip
"""By action of the key map: the operations of which one must be offered."""


def offers(ticket: TicketLine | None, action: str) -> bool:
    """Whether the action can be done with the ticket now."""
    return ticket is not None and any(name in ticket.offers for name in OPERATIONS[action])


OFFERED_TO_ALL = ("stop", "pause", "resume", "drop", "review", "land", "undo", "push", "submit", "interrupt")
"""Actions that are one request, so that all marked tickets can have it."""


def request_of(action: str, id: int) -> tuple[str, tuple[object, ...]]:
    """The operation, and what it is given."""
    return OPERATIONS[action][0], (id, OfferWork()) if action == "push" else (id,)


def run_checks(cwd: str, id: int) -> Callable[[Legion], str]:
    """A checkpoint runs the project's checks on landed code."""
    ticket = NewTicket(title=f"Checks after #{id}", after=[id], checkpoint=True)
    wanted = Dispatch(cwd=cwd, tickets=[ticket], request=os.urandom(16).hex())

    def perform(legion: Legion) -> str:
        made = legion.dispatch(wanted)
        return " ".join([f"Ticket {made.ids[0]} runs the checks.", *made.notes])

    return perform


COUNTED_EVERY = 5.0
"""Seconds after which a list counts on for how long each ticket is at work: no event says that."""


class TicketPlace(Place):
    MARKS: ClassVar[bool] = True
    """Whether it lists tickets that can be marked."""

    def __init__(self) -> None:
        super().__init__()
        self._marks: set[int] = set()

    @property
    def marked(self) -> list[TicketLine]:
        """In the order of their numbers, without those that are gone."""
        return [self.store.tickets[id] for id in sorted(self._marks) if id in self.store.tickets]

    def action_mark(self) -> None:
        """Mark it, or take that back; then the next one."""
        if self.ticket is None:
            return
        self._marks ^= {self.ticket.id}
        self._renew_marks()
        if isinstance(self.focused, RowList):
            self.focused.action_down()

    def put_down(self) -> bool:
        begun, self._marks = bool(self.marked), set()
        self._renew_marks()
        return begun

    def _renew_marks(self) -> None:
        for rows in self.query(RowList):
            rows.mark(frozenset(map(str, self._marks)))
        self._renew_lines()

    def first_step(self) -> Row | None:
        marked = self.marked
        if not marked:
            return None
        keys = self.legion_app.keys.shown()
        acts = [f"{keys[name]} {name}" for name in (*OFFERED_TO_ALL, "retry") if name in keys and self._able(name)]
        fact = Cell(f"{count(len(marked), 'ticket is', 'tickets are')} marked. ", Colour.YELLOW)
        return Row((fact, Cell(f"{', '.join(sorted(acts))}; Esc unmarks.")))

    def _able(self, name: str) -> list[TicketLine]:
        """The marked tickets for which the action is offered, or the selected one where none is marked."""
        found = self.marked or ([self.ticket] if self.ticket is not None else [])
        return [one for one in found if offers(one, name)]

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys that do not apply to the selected ticket are not shown and do nothing."""
        if action in ("open", "copy"):
            return self.ticket is not None
        if action == "mark":
            return self.MARKS and self.ticket is not None
        if self._marks and (action in OFFERED_TO_ALL or action == "retry"):
            return bool(self._able(action))
        if action == "check":
            return self.ticket is not None and self.ticket.state == "done"
        if action in OPERATIONS:
            return offers(self.ticket, action)
        return super().check_action(action, parameters)

    def action_open(self) -> None:
        if self.ticket is not None:
            self.legion_app.open_ticket(self.ticket.id)

    def action_attach(self) -> None:
        if self.ticket is not None:
            self.legion_app.attach(self.ticket.id)

    def action_shell(self) -> None:
        if self.ticket is not None:
            self.legion_app.open_shell(self.ticket.id)

    def action_checkout(self) -> None:
        ticket = self.ticket
        if ticket is not None:
            self.legion_app.send(lambda legion: self._branch(legion, ticket.id))

    def _branch(self, legion: Legion, id: int) -> str:
        """Called in a thread of the requests."""
        made = legion.checkout(id, OfferWork())
        self.app.call_from_thread(self.app.copy_to_clipboard, made.branch)
        return f"{made.message} The name is copied."

    def action_push(self) -> None:
        self._perform("push")

    def action_submit(self) -> None:
        self._perform("submit")

    def action_diff(self) -> None:
        if self.ticket is not None:
            self.legion_app.open_ticket(self.ticket.id, tab="diff")

    def action_stop(self) -> None:
        self._perform("stop")

    def action_pause(self) -> None:
        ticket = self.ticket
        if self._marks:
            self._perform("pause")
        elif ticket is not None:
            self.legion_app.ask(
                f"Pause #{ticket.id} {clean(ticket.title)}, and make a branch of its work? Resume continues it.",
                lambda legion: self._pause(legion, ticket.id),
                waits=True,
            )

    def _pause(self, legion: Legion, id: int) -> str:
        """The branch is for looking at the work, and is asked for when the run has ended and saved it."""
        paused = legion.pause_ticket(id).message
        try:
            return f"{paused} {self._branch(legion, id)}"
        except LegionError as error:
            return f"{paused} No branch yet: {error.message}"

    def action_drop(self) -> None:
        self._perform("drop")

    def action_review(self) -> None:
        self._perform("review")

    def action_check(self) -> None:
        ticket, store = self.ticket, self.legion_app.store
        if ticket is not None:
            self.legion_app.ask(
                f"Run all checks on the code that #{ticket.id} {clean(ticket.title)} landed? A checkpoint does it.",
                run_checks(store.project_root or store.cwd, ticket.id),
            )

    def action_land(self) -> None:
        self._perform("land")

    def action_undo(self) -> None:
        self._perform("undo")

    def action_interrupt(self) -> None:
        self._perform("interrupt")

    def action_retry(self) -> None:
        ticket = self.ticket
        if self._marks:
            self._retry_all()
            return
        if ticket is None:
            return
        if offers(ticket, "resume"):
            self._perform("resume")
        else:
            self.legion_app.open_retry(ticket)

    def action_message(self) -> None:
        ticket = self.ticket
        if ticket is None:
            return
        id, draft = ticket.id, f"message.{ticket.id}"

        def send(text: str | None) -> None:
            if text:
                self.legion_app.send(
                    lambda legion: legion.tell(id, MessageText(text=text)).message,
                    then=lambda: self.legion_app.drafts.put(draft, ""),
                    waits=True,
                )

        self.app.push_screen(LinePrompt(f"To the agent of #{id}", draft=draft), send)

    def action_copy(self) -> None:
        ticket = self.ticket
        if ticket is None:
            return
        choices = [(text, f"{name}  {text}") for name, text in self.copyable(ticket) if text]

        def copy(text: str | None) -> None:
            if text:
                self.app.copy_to_clipboard(text)
                self.app.notify(f"Copied: {text}", markup=False)

        if len(choices) == 1:
            copy(choices[0][0])
        else:
            self.app.push_screen(Choice("Copy", choices), copy)

    def copyable(self, ticket: TicketLine) -> list[tuple[str, str]]:
        """What `copy` offers, as (name, text)."""
        return [("number", str(ticket.id)), ("title", " ".join(ticket.title.split()))]

    def _perform(self, name: str) -> None:
        able = self._able(name)
        if self._marks:
            self._ask_for_all(name, able, partial(_perform, name))
        elif able:
            operation, given = request_of(name, able[0].id)
            self.legion_app.act(operation, f"#{able[0].id} {clean(able[0].title)}", *given)

    def _retry_all(self) -> None:
        able = self._able("retry")
        resumed = {one.id for one in able if offers(one, "resume")}

        def perform(legion: Legion, id: int) -> str:
            return (legion.resume_ticket(id) if id in resumed else legion.retry(id, Action())).message

        self._ask_for_all("retry", able, perform)

    def _ask_for_all(self, name: str, able: Sequence[TicketLine], perform: Callable[[Legion, int], str]) -> None:
        """One question that names each of them; then one request after the other."""
        ids = [one.id for one in able]
        room = max(20, self.size.width * 7 // 10 - 6)
        listed = [made for one in able for made in paragraph(f"#{one.id} {clean(one.title)}", room, indent=2, most=1)]
        left = len(self.marked) - len(able)
        others = f" {left} that are marked cannot." if left else ""

        def go(yes: bool | None) -> None:
            if yes:
                self.legion_app.send(lambda legion: done_to_all(legion, name, ids, perform), self._unmark, waits=True)

        question = f"{name.capitalize()} {count(len(ids), 'ticket')}?{others}"
        self.app.push_screen(YesNo(question, listed), go)

    def _unmark(self) -> None:
        self.put_down()


def _perform(name: str, legion: Legion, id: int) -> str:
    operation, given = request_of(name, id)
    return str(getattr(legion, operation)(*given).message)


def done_to_all(legion: Legion, name: str, ids: Sequence[int], perform: Callable[[Legion, int], str]) -> str:
    """What was refused is said for each; the others are done."""
    refused: list[str] = []
    for id in ids:
        try:
            perform(legion, id)
        except NotRunning:
            raise
        except LegionError as error:
            refused.append(f"#{id}: {error.message}")
    return " ".join([f"{name}: {count(len(ids) - len(refused), 'ticket')}.", *refused])
