"""Shapes of attaching: which terminal a person gets, and the frames that travel between it and their own."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from legion.domain.terminal import BadFrame, FrameKind, FrameReader, Hello, TerminalEnd, TerminalSize, frame

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
class NewByHand:
    """A ticket that a person works on together with its agent."""

    cwd: str
    name: str
    prompt: str = ""
    """The agent's first message; empty: the person types it."""
    profile: str = ""
    """One of the person's drivers; empty: the default one."""
    program: str = ""
    """Any interactive command line instead."""
    branch: str = ""
    """A branch of the person's repository whose files it starts with; empty: the landed code."""
    model: str = ""
    accepts: bool = False
    """What the program's description names is accepted without a person."""
    request: str = ""


@dataclass(kw_only=True)
class OfferWork:
    branch: str = ""
    """The name of the new branch; empty: made of the ticket's number and title."""
    remote: str = ""
    """Where it is pushed to; empty: origin, or the only remote."""


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
class OpenTerminal:
    """A terminal that a client on the same machine can attach to."""

    run: str
    """The name of its run's folder."""
    socket: str
    """The unix socket that its runner listens on; empty: there is none yet, so ask again."""
    message: str
    """For the person, in one sentence."""
    wheel: bool = False
    """A conversation that the person took over: leaving gives it back."""
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
class TerminalNotice:
    """A text message of the page's WebSocket."""

    news: str
    """One of TerminalNews."""
    message: str = ""
    run: str = ""
    wheel: bool = False
