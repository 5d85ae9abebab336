"""The application as screens see it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from legion.client.legion import Legion
from legion.tui.drafts import Drafts
from legion.tui.keys import KeyMap
from legion.tui.store import BoardStore
from legion.tui.typed_ahead import TypedAhead
from legion.wire.tickets import TicketLine


class UiHost(Protocol):
    store: BoardStore
    drafts: Drafts
    keys: KeyMap
    typed: TypedAhead

    def send(self, call: Callable[[Legion], str], then: Callable[[], None] = ..., *, waits: bool = False) -> None:
        """Send a request that does something, and show its sentence."""

    def ask(
        self, question: str, call: Callable[[Legion], str], then: Callable[[], None] = ..., *, waits: bool = False
    ) -> None:
        """One question, then the request."""

    def act(self, name: str, what: str, *given: object, then: Callable[[], None] = ...) -> None:
        """The operation of that name: its own question about `what`, if it has one, then the request."""

    def go(self, name: str) -> None:
        """To a place."""

    def clear_ended(self) -> None:
        """Remove ended tickets from the board, after one question."""

    def open_ticket(self, id: int, tab: str = "live") -> None:
        """A ticket's screen."""

    def open_agent(self, id: str) -> None:
        """The standing agents, with this one selected."""

    def open_plan(self, key: str) -> None:
        """The plans, with this one selected."""

    def collect(self, root: str) -> None:
        """Bring what landed into the person's branch, after one question that says what comes."""

    def reject_plan(self, id: int) -> None:
        """Send a plan back, in words."""

    def drop_plan(self, id: int, what: str) -> None: ...

    def attach(self, id: int) -> None: ...

    def open_shell(self, id: int) -> None: ...

    def open_retry(self, ticket: TicketLine) -> None:
        """The form for a retry."""

    def open_catalog(self, name: str) -> None:
        """A list of the menu."""
