"""A place in which a ticket is selected: the keys that act on it."""

from __future__ import annotations

from legion.client.legion import Legion
from legion.tui.actions import OPERATIONS, TICKET_ACTIONS, offers, run_checks
from legion.tui.screens.place import Place
from legion.tui.screens.prompts import Choice, LinePrompt
from legion.tui.views.rows import clean
from legion.wire.errors import LegionError
from legion.wire.questions import MessageText
from legion.wire.terminal import OfferWork
from legion.wire.tickets import TicketLine


class TicketPlace(Place):
    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys that do not apply to the selected ticket are not shown and do nothing."""
        if action in ("open", "copy"):
            return self.ticket is not None
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
        if ticket is not None:
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
        ticket = self.ticket
        action = TICKET_ACTIONS[name]
        if ticket is None or not offers(ticket, name):
            return
        id = ticket.id

        perform = lambda legion: action.perform(legion, id)  # noqa: E731 - a name for the callback
        if action.question:
            question = action.question.format(id=id, title=clean(ticket.title))
            self.legion_app.ask(question, perform, waits=action.waits)
        else:
            self.legion_app.send(perform, waits=action.waits)
