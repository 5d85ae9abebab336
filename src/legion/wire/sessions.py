"""Sessions: several targets of one repository, each bound to a branch."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from legion.wire.lazy import dataclass
from legion.wire.projects import Where
from legion.wire.table import Folder, OpenTo, Table, operation
from legion.wire.ticket_fields import REQUIRED, described

if TYPE_CHECKING:
    from legion import wire


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
class NewSession(Where):
    branch: str = described("", argument="[BRANCH]", help="What it lands on; the checked out branch if left out.")
    name: str = described("", metavar="NAME", help="Its name; the branch with - for / if left out.")
    base: str = described(
        "", option="--base-branch", metavar="B", help="Make BRANCH in your repository, from this branch."
    )


@dataclass(kw_only=True)
class NamedSession:
    cwd: str
    name: str = described(REQUIRED, argument="NAME", help="Its name or its branch.")


@dataclass(kw_only=True)
class DeleteSession:
    cwd: str
    name: str = described(REQUIRED, argument="NAME", help="Its name or its branch.")
    uncollected: bool = described(False, help="Also if landed work was not collected; it is kept in the trash.")


@dataclass(kw_only=True)
class BindSession:
    cwd: str
    name: str = described(REQUIRED, argument="NAME", help="Its name or its branch.")
    branch: str = described(REQUIRED, argument="BRANCH", help="The branch that it lands on from now on.")


class SessionRows(Table):
    """They are the person's alone: a session decides which branch work lands on."""

    @operation("GET", "/v1/sessions", open_to=OpenTo.LOOKS)
    def sessions(self, cwd: Folder, all: bool = False) -> SessionList:
        """The sessions of this repository: branch, open tickets, landed commits to collect"""

    @operation("GET", "/v1/branches", open_to=OpenTo.LOOKS)
    def branches(self, cwd: Folder) -> Branches:
        """The branches of the person's repository, for forms that ask for one"""

    @operation("POST", "/v1/sessions", open_to=OpenTo.BROWSER, created=True, waits=True)
    def new_session(self, wanted: NewSession, /) -> SessionList:
        """Make a session for a branch, the one that is checked out if left out, and act on it

        It has a target, a merge queue, tickets and agents of its own. Your checkout stays as it is.
        """

    @operation("POST", "/v1/sessions/epic", open_to=OpenTo.BROWSER, waits=True)
    def open_epic_branch(self, wanted: wire.plans.NamedEpic, /) -> wire.projects.Done:
        """Give an epic a session on a branch of its own, which its new tickets land on"""

    @operation("POST", "/v1/sessions/epic/land", open_to=OpenTo.BROWSER, waits=True)
    def land_epic(self, wanted: wire.plans.NamedEpic, /) -> wire.tickets.Acted:
        """Land the branch of an epic as one change; with the target `pr`, as one pull request"""

    @operation("POST", "/v1/sessions/switch", open_to=OpenTo.BROWSER)
    def switch_session(self, wanted: NamedSession, /) -> wire.projects.Done:
        """Act on another session, in all commands that name none. Agents of both go on working"""

    @operation(
        "POST",
        "/v1/sessions/complete",
        open_to=OpenTo.BROWSER,
        waits=True,
        asks="Collect what landed in {what} into its branch, and end the session?",
    )
    def complete_session(self, wanted: NamedSession, /) -> wire.projects.Done:
        """Collect the landed work of a session into its branch, and end it"""

    @operation(
        "POST",
        "/v1/sessions/delete",
        open_to=OpenTo.BROWSER,
        waits=True,
        asks="End {what}? Its hub and its worktrees are kept in the trash.",
    )
    def delete_session(self, wanted: DeleteSession, /) -> wire.projects.Done:
        """End a session without collecting. Its branch stays; worktrees and hub are kept in the trash"""

    @operation("POST", "/v1/sessions/drop", open_to=OpenTo.BROWSER)
    def drop_session(self, wanted: NamedSession, /) -> wire.projects.Done:
        """Remove an ended session from `legion session list --all`"""

    @operation("POST", "/v1/sessions/bind", open_to=OpenTo.BROWSER)
    def bind_session(self, wanted: BindSession, /) -> wire.projects.Done:
        """Bind a session to another branch, after a rename for example. What landed is collected there"""

    @operation("POST", "/v1/sessions/rebuild", open_to=OpenTo.BROWSER)
    def rebuild_session(self, wanted: NamedSession, /) -> wire.projects.Done:
        """Start again from its branch as it is, after a rebase for example. The old target is kept in the hub"""

    @operation("POST", "/v1/sessions/rebase", open_to=OpenTo.BROWSER)
    def rebase_session(self, wanted: NamedSession, /) -> wire.projects.Done:
        """Start again from its branch as it is, and land on it again what was not collected, as one checked change"""

    @operation("POST", "/v1/sessions/recreate", open_to=OpenTo.BROWSER)
    def recreate_session(self, wanted: NamedSession, /) -> wire.projects.Done:
        """Make its branch again, where you deleted it, at the last commit of it that you had"""
