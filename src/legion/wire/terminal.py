"""Terminals: attach, shells and work by hand, and the frames that travel to and from a terminal."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from legion.domain.terminal import BadFrame, FrameKind, FrameReader, Hello, TerminalEnd, TerminalSize, frame
from legion.wire.projects import Where
from legion.wire.table import OpenTo, Table, TicketId, operation
from legion.wire.ticket_fields import REQUIRED, described

if TYPE_CHECKING:
    from legion import wire


__all__ = [
    "Attach",
    "AttachAgent",
    "BadFrame",
    "FrameKind",
    "FrameReader",
    "GiveBackAgent",
    "Hello",
    "NewByHand",
    "OfferWork",
    "OfferedBranch",
    "OpenShell",
    "OpenTerminal",
    "TerminalEnd",
    "TerminalNews",
    "TerminalNotice",
    "TerminalSize",
    "frame",
]


@dataclass(kw_only=True)
class OpenShell:
    columns: int = 80
    rows: int = 24
    term: str = ""
    """The kind of the person's terminal, as TERM names it."""
    run: str = ""
    """Return to the shell of this run, if it still lives; else a new one opens."""


@dataclass(kw_only=True)
class Attach:
    only_looks: bool = False
    """Nothing is interrupted and nothing can be typed."""
    waited: float = 0.0
    """Seconds that the person has waited in earlier requests."""


@dataclass(kw_only=True)
class AttachAgent:
    id: str
    """A standing agent, by its name or id."""
    only_looks: bool = False
    """Nothing is interrupted and nothing can be typed."""
    waited: float = 0.0
    """Seconds that the person has waited in earlier requests."""


@dataclass(kw_only=True)
class GiveBackAgent:
    id: str


@dataclass(kw_only=True)
class NewByHand(Where):
    """A ticket that a person works on together with its agent."""

    name: str = described(REQUIRED, argument="NAME", help="What you want to work on; the ticket's title.")
    prompt: str = described("", metavar="TEXT", help="The first message to the agent; - reads it from stdin.")
    branch: str = described("", metavar="B", help="Start with the files of this branch of yours.")
    profile: str = described("", metavar="P", help="One of your [drivers.NAME]; Claude Code if left out.")
    program: str = described("", metavar="CMD", help="Any interactive program instead.")
    model: str = described("", metavar="M", help="The model the agent should use.")
    accepts: bool = described(False, option="-y", help="Accept what the program's description names; each is recorded.")
    request: str = ""


@dataclass(kw_only=True)
class OfferWork:
    branch: str = described("", metavar="B", help="The name of the new branch.")
    remote: str = described("", metavar="R", help="One of your remotes; origin if left out.")


@dataclass(kw_only=True)
class OfferedBranch:
    ticket: int
    branch: str
    commit: str
    message: str
    remote: str = ""
    """Where it was pushed to; empty: nowhere."""
    schema: str = "legion.branch/1"


@dataclass(kw_only=True)
class _TerminalFacts:
    run: str
    """The name of its run's folder."""
    message: str
    """For the person, in one sentence."""
    wheel: bool = False
    """A conversation that the person took over: leaving gives it back."""


@dataclass(kw_only=True)
class OpenTerminal(_TerminalFacts):
    """A terminal that a client on the same machine can attach to."""

    socket: str
    """The unix socket that its runner listens on; empty: there is none yet, so ask again."""
    schema: str = "legion.terminal/1"


class TerminalNews(Enum):
    """What the daemon reports about a terminal of the page, next to its frames."""

    WAITING = "waiting"
    """The agent has not reached a safe moment yet."""
    OPEN = "open"
    """Frames follow. The screen starts empty, also after a reconnect."""
    NONE = "none"
    """There is no terminal to look at."""
    REFUSED = "refused"
    LOST = "lost"
    """The connection to the runner ended without its end: connect again."""


@dataclass(kw_only=True)
class TerminalNotice(_TerminalFacts):
    """A text message of the page's WebSocket."""

    news: str
    """One of TerminalNews."""


class TerminalRows(Table):
    """A terminal types as the person, so only the person gets one."""

    @operation("POST", "/v1/tickets/{id}/attach", waits=True)
    def attach(self, id: TicketId, wanted: Attach, /) -> OpenTerminal:
        """The terminal of a ticket's agent; one that works alone is interrupted for it"""

    @operation("POST", "/v1/tickets/{id}/give-back", open_to=OpenTo.ACTS)
    def give_back(self, id: TicketId, /) -> wire.projects.Done:
        """Let a ticket's agent work alone again"""

    @operation("POST", "/v1/agents/attach", waits=True)
    def attach_agent(self, wanted: AttachAgent, /) -> OpenTerminal:
        """The conversation of a standing agent in a terminal; a turn is interrupted for it"""

    @operation("POST", "/v1/agents/give-back", open_to=OpenTo.ACTS, plain="id")
    def give_back_agent(self, wanted: GiveBackAgent, /) -> wire.projects.Done:
        """Let a standing agent work alone again"""

    @operation("POST", "/v1/tickets/by-hand", open_to=OpenTo.BROWSER, created=True)
    def new_by_hand(self, wanted: NewByHand, /) -> wire.dispatch.Dispatched:
        """A ticket that a person works on together with its agent"""

    @operation(
        "POST",
        "/v1/tickets/{id}/submit",
        open_to=OpenTo.BROWSER,
        asks="Submit {what}? Its tree as it is now becomes the change, and its program ends.",
    )
    def submit_ticket(self, id: TicketId, /) -> wire.tickets.Acted:
        """Submit the change of such a ticket"""

    @operation("POST", "/v1/tickets/{id}/checkout", open_to=OpenTo.BROWSER, waits=True)
    def checkout(self, id: TicketId, wanted: OfferWork, /) -> OfferedBranch:
        """A ticket's work as a new branch in your repository. Your own branches and files stay as they are"""

    @operation(
        "POST",
        "/v1/tickets/{id}/push",
        open_to=OpenTo.BROWSER,
        waits=True,
        asks="Push the work of {what} to your remote, as a new branch?",
    )
    def push(self, id: TicketId, wanted: OfferWork, /) -> OfferedBranch:
        """Push a ticket's work to your remote, as a new branch and without force"""

    @operation("POST", "/v1/tickets/{id}/shell", waits=True)
    def shell(self, id: TicketId, wanted: OpenShell, /) -> OpenTerminal:
        """A shell in a ticket's worktree, inside its sandbox"""
