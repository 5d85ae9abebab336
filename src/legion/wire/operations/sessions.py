# mypy: disable-error-code="empty-body"
"""The rows of the table of operations about sessions; `operations` explains them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from legion.wire.table import Folder, OpenTo, Table, operation

if TYPE_CHECKING:
    from legion import wire


class SessionOperations(Table):
    """They are the person's alone: a session decides which branch work lands on."""

    @operation("GET", "/v1/sessions", open_to=OpenTo.LOOKS)
    def sessions(self, cwd: Folder, all: bool = False) -> wire.sessions.SessionList:
        """The sessions of the repository; with `all` also those that ended"""

    @operation("GET", "/v1/branches", open_to=OpenTo.LOOKS)
    def branches(self, cwd: Folder) -> wire.sessions.Branches:
        """The branches of the person's repository, for forms that ask for one"""

    @operation("POST", "/v1/sessions", open_to=OpenTo.BROWSER, created=True, waits=True)
    def new_session(self, wanted: wire.sessions.NewSession, /) -> wire.sessions.SessionList:
        """Make a session for a branch, and act on it"""

    @operation("POST", "/v1/sessions/epic", open_to=OpenTo.BROWSER, waits=True)
    def open_epic_branch(self, wanted: wire.sessions.EpicBranch, /) -> wire.projects.Done:
        """Give an epic a session on a branch of its own, which its new tickets land on"""

    @operation("POST", "/v1/sessions/epic/land", open_to=OpenTo.BROWSER, waits=True)
    def land_epic(self, wanted: wire.sessions.EpicBranch, /) -> wire.tickets.Acted:
        """Land the branch of an epic as one change; with the target `pr`, as one pull request"""

    @operation("POST", "/v1/sessions/switch", open_to=OpenTo.BROWSER)
    def switch_session(self, wanted: wire.sessions.NamedSession, /) -> wire.projects.Done:
        """Act on another session"""

    @operation("POST", "/v1/sessions/complete", open_to=OpenTo.BROWSER, waits=True)
    def complete_session(self, wanted: wire.sessions.NamedSession, /) -> wire.projects.Done:
        """Collect the landed work of a session into its branch, and end it"""

    @operation("POST", "/v1/sessions/delete", open_to=OpenTo.BROWSER, waits=True)
    def delete_session(self, wanted: wire.sessions.DeleteSession, /) -> wire.projects.Done:
        """End a session; its hub and its worktrees are kept in the trash"""

    @operation("POST", "/v1/sessions/drop", open_to=OpenTo.BROWSER)
    def drop_session(self, wanted: wire.sessions.NamedSession, /) -> wire.projects.Done:
        """Remove an ended session from the history"""

    @operation("POST", "/v1/sessions/bind", open_to=OpenTo.BROWSER)
    def bind_session(self, wanted: wire.sessions.BindSession, /) -> wire.projects.Done:
        """Bind a session to another branch"""

    @operation("POST", "/v1/sessions/rebuild", open_to=OpenTo.BROWSER)
    def rebuild_session(self, wanted: wire.sessions.NamedSession, /) -> wire.projects.Done:
        """Make the branch as it is the target; the old target is kept under a name"""

    @operation("POST", "/v1/sessions/rebase", open_to=OpenTo.BROWSER)
    def rebase_session(self, wanted: wire.sessions.NamedSession, /) -> wire.projects.Done:
        """Make the branch as it is the target, and land on it again what was not collected"""

    @operation("POST", "/v1/sessions/recreate", open_to=OpenTo.BROWSER)
    def recreate_session(self, wanted: wire.sessions.NamedSession, /) -> wire.projects.Done:
        """Make the branch of a session again, where the person deleted it"""
