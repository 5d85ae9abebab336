"""Tickets in a list, what a person or a leader does with one, and races of several attempts."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from legion.wire.lazy import dataclass
from legion.wire.table import OpenTo, Table, TicketId, operation
from legion.wire.ticket_fields import REQUIRED, described

if TYPE_CHECKING:
    from legion import wire


@dataclass(kw_only=True)
class TicketLine:
    """A ticket in a list."""

    id: int
    project: str
    title: str
    state: str
    after: list[int]
    attempt: int
    max_attempts: int
    checkpoint: bool
    epic: str
    priority: int
    reason: str
    unchecked: bool
    held_up_by: list[int]
    """Failed or stopped tickets that it waits for."""
    created_at: float
    moved_at: float
    doing: str = ""
    """What happens at this moment, in a few words: `waits for 3`, `in the merge queue, place 2 of 5, 12 lines`."""
    doing_since: float | None = None
    """When that began, where it lasts: an agent at work, a reviewer, [setup]."""
    parked_until: float | None = None
    """When a parked ticket resumes by itself."""
    question: int | None = None
    """A question of its agent that waits for an answer: `legion answer`."""
    undoes: int | None = None
    """The landed ticket that it reverts."""
    conflicts_with: list[int] = field(default_factory=list)
    """Tickets in work with which its change will conflict as both stand; 0 is the landed code."""
    conflicts_in: list[str] = field(default_factory=list)
    """The definitions that they change, too, where they are known."""
    unproven: int = 0
    """Criteria of a done ticket that no command proves: claimed, or read by a reviewer at best."""
    team: str = ""
    labels: list[str] = field(default_factory=list)
    agent: str = ""
    """The driver, model or program that it names, or the standing agent that holds it."""
    offers: list[str] = field(default_factory=list)
    """The operations that may be called for it now, by their names."""


@dataclass(kw_only=True)
class UsageLine:
    """What was spent at providers, as the gateway counted it. Tokens, but for what is named otherwise."""

    requests: int
    failed: int
    input: int
    output: int
    cache_read: int
    cache_write: int
    usd: float
    unpriced: int
    """Requests whose model has no known price: `usd` is without them."""


@dataclass(kw_only=True)
class RunLine:
    id: int
    attempt: int
    generation: int
    started_at: float
    ended_at: float | None
    outcome: str | None
    detail: str
    saved: str | None
    access: str = ""
    """How it reached its model: a provider's name, or that it could read the person's own login."""
    role: str = ""
    """Who read the change, or advised; empty for who builds."""
    usage: UsageLine | None = None


@dataclass(kw_only=True)
class EventLine:
    n: int
    at: float
    kind: str
    project: str | None
    ticket: int | None
    data: dict[str, object]
    words: str = ""
    """The event in one line."""


@dataclass(kw_only=True)
class Action:
    """The body of stop, retry, pause and the like."""

    feedback: str = ""
    edit: EditTicket | None = None
    """For a retry: what changes before it is tried again."""


@dataclass(kw_only=True)
class Acted:
    schema: str = "legion.acted/1"
    tickets: list[int]
    """The tickets it touched."""
    message: str


@dataclass(kw_only=True)
class EditTicket:
    """New values of a ticket's fields; null leaves a field as it is. A list replaces the old one."""

    title: str | None = None
    text: str | None = None
    context: str | None = None
    criteria: str | None = None
    plan: str | None = None
    after: list[int] | None = None
    files: list[str] | None = None
    priority: int | None = None
    gate: str | None = None
    """`auto`, `person`, or empty for that of its epic or project."""
    alone: bool | None = None
    retire: str | None = None
    """Why the proofs of a landed ticket no longer run for later changes; empty: they do."""


@dataclass(kw_only=True)
class RewindTo:
    to: str = described(REQUIRED, metavar="EVENT", help="RUN:LINE or RUN, as `legion status events N` shows them.")
    feedback: str = described("", metavar="TEXT", help="What it should know now; - reads it from stdin.")


@dataclass(kw_only=True)
class SetRecording:
    """`legion plan record on` and `legion plan record off`."""

    on: bool


@dataclass(kw_only=True)
class NewRace:
    """A number of equal lanes, or one lane for each of these programs and models."""

    count: int = 0
    drivers: list[str] = field(default_factory=list)
    models: list[str] = field(default_factory=list)
    combine: bool = False
    """One attempt more writes a change from the best parts of those that finished."""


@dataclass(kw_only=True)
class LaneLine:
    """One attempt."""

    ticket: int
    driver: str
    """Empty: the project's default."""
    model: str
    """Empty: the program's own choice."""
    state: str
    standing: str
    """`running`, `finished`, `out`, `won` or `lost`."""
    attempts: int
    lines: int | None
    """Of its change; null before it is compared."""
    usd: float
    budget: float | None
    """Its share of the ticket's budget."""
    why: str


@dataclass(kw_only=True)
class RacePage:
    schema: str = "legion.race/1"
    race: int
    origin: int
    """The ticket that was raced."""
    title: str
    winner: int | None
    """Null while it is not decided."""
    usd: float
    """Of all lanes."""
    lanes: list[LaneLine] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class TicketRows(Table):
    @operation(
        "POST",
        "/v1/tickets/{id}/stop",
        open_to=OpenTo.ACTS | OpenTo.AGENTS,
        plain="feedback",
        asks="Stop {what}? Its work is kept, and retry brings it back.",
    )
    def stop(self, id: TicketId, action: Action | None = None, /) -> Acted:
        """Stop it; its work is kept"""

    @operation("POST", "/v1/tickets/{id}/retry", open_to=OpenTo.ACTS | OpenTo.AGENTS, plain="feedback")
    def retry(self, id: TicketId, action: Action | None = None, /) -> Acted:
        """Retry it with a fresh count of attempts"""

    @operation("POST", "/v1/tickets/{id}/review", open_to=OpenTo.ACTS)
    def review(self, id: TicketId, /) -> Acted:
        """Request an independent review of its change"""

    @operation("POST", "/v1/tickets/{id}/bounce", open_to=OpenTo.ACTS, plain="feedback")
    def bounce(self, id: TicketId, action: Action | None = None, /) -> Acted:
        """Send its change back to its agent with feedback"""

    @operation(
        "POST", "/v1/tickets/{id}/drop", open_to=OpenTo.ACTS, asks="Remove {what} from the board? What it landed stays."
    )
    def drop(self, id: TicketId, /) -> Acted:
        """Remove it from the board"""

    @operation("POST", "/v1/tickets/{id}/pause", open_to=OpenTo.ACTS)
    def pause_ticket(self, id: TicketId, /) -> Acted:
        """Park it until it is resumed"""

    @operation("POST", "/v1/tickets/{id}/resume", open_to=OpenTo.ACTS)
    def resume_ticket(self, id: TicketId, /) -> Acted:
        """Resume it"""

    @operation(
        "POST",
        "/v1/tickets/{id}/rewind",
        open_to=OpenTo.ACTS,
        plain="to feedback",
        asks="Return {what} to this moment? Its tree and conversation go back; what it has now is saved.",
    )
    def rewind(self, id: TicketId, wanted: RewindTo, /) -> Acted:
        """Return a ticket to an earlier moment: its files and its agent's conversation, together

        It continues from there as the next attempt, with a fresh count. A running agent is stopped, and its work is
        kept: another rewind can undo this one. `legion undo` reverts a landed ticket.
        """

    @operation(
        "POST",
        "/v1/tickets/{id}/undo",
        open_to=OpenTo.ACTS,
        asks="Revert {what}? A new ticket takes its change back and passes the checks like any other.",
    )
    def undo(self, id: TicketId, /) -> Acted:
        """Revert a landed ticket by a new ticket that passes the same checks

        No agent is needed. If later changes touch the same lines, nothing is done. An undo can be undone.
        """

    @operation(
        "POST",
        "/v1/tickets/{id}/land",
        open_to=OpenTo.ACTS,
        asks="Land {what} now? Its change goes to the target branch when its checks have passed.",
    )
    def land(self, id: TicketId, /) -> Acted:
        """Land a change that waits for you, behind the gate of its ticket, epic or project

        It goes through the merge queue, which tests it again where the target has moved.
        """

    @operation("POST", "/v1/tickets/{id}/edit", open_to=OpenTo.BROWSER)
    def edit(self, id: TicketId, wanted: EditTicket, /) -> Acted:
        """Change a ticket before it starts, or before it is tried again"""

    @operation("POST", "/v1/tickets/{id}/tell", open_to=OpenTo.ACTS, plain="text", waits=True)
    def tell(self, id: TicketId, message: wire.mail.MessageText, /) -> wire.mail.Delivered:
        """Send a message to its running agent; wait at most 30 s for its delivery"""

    @operation(
        "POST",
        "/v1/tickets/{id}/interrupt",
        open_to=OpenTo.ACTS,
        plain="text",
        waits=True,
        asks="Interrupt the agent of {what} and pause the ticket? Resume continues it.",
    )
    def interrupt(self, id: TicketId, message: wire.mail.MessageText | None = None, /) -> wire.mail.Delivered:
        """Interrupt its agent, which continues with the message; without one the ticket is paused"""

    @operation("POST", "/v1/tickets/{id}/race", open_to=OpenTo.BROWSER, created=True)
    def race(self, id: TicketId, wanted: NewRace, /) -> RacePage:
        """Start several attempts of a ticket at once; the best proven one lands"""

    @operation("GET", "/v1/tickets/{id}/race", open_to=OpenTo.LOOKS)
    def race_page(self, id: TicketId, /) -> RacePage:
        """The race of a ticket: its lanes, their cost, and which of them won"""

    @operation("POST", "/v1/tickets/recording", open_to=OpenTo.BROWSER)
    def switch_recording(self, wanted: SetRecording, /) -> wire.projects.Done:
        """Record new runs, or stop recording"""
