"""Shapes of requests and answers about sessions: several targets of one repository, each bound to a branch."""

from __future__ import annotations

from dataclasses import field

from legion.wire.lazy import dataclass


@dataclass(kw_only=True)
class SessionLine:
    name: str
    """`default` for the one that `legion init` made."""
    branch: str
    acting: bool
    """Whether commands act on it where they name no session."""
    open: int
    """Tickets that have not ended."""
    ahead: int
    """Landed commits that its branch lacks."""
    target: str
    folder: str
    """Where its agents work. Any request with this folder is about this session."""
    created_at: float
    ended_at: float | None = None
    """Null while it is open."""
    notes: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class SessionList:
    schema: str = "legion.sessions/1"
    sessions: list[SessionLine]
    checkout: str
    """The branch that is checked out in the person's folder; empty where HEAD is detached."""


@dataclass(kw_only=True)
class Branches:
    schema: str = "legion.branches/1"
    branches: list[str]
    """Those of the person's repository, the one with the newest commit first."""


@dataclass(kw_only=True)
class EpicBranch:
    """An epic, and the project that it belongs to."""

    cwd: str
    epic: str


@dataclass(kw_only=True)
class NewSession:
    cwd: str
    branch: str = ""
    """Empty: the branch that is checked out."""
    name: str = ""
    """Empty: the branch, with - for /."""
    base: str = ""
    """Make the branch, from this one. Empty: the branch must exist."""


@dataclass(kw_only=True)
class NamedSession:
    cwd: str
    name: str
    """Its name or its branch."""


@dataclass(kw_only=True)
class DeleteSession:
    cwd: str
    name: str
    uncollected: bool = False
    """Also where landed work was not collected; the hub is kept in the trash."""


@dataclass(kw_only=True)
class BindSession:
    cwd: str
    name: str
    branch: str
