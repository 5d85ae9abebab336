# mypy: disable-error-code="empty-body"
"""The rows of the table of operations about forges, issues and pull requests; `operations` explains them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from legion.wire.table import Folder, OpenTo, Table, TicketId, operation

if TYPE_CHECKING:
    from legion import wire


class ForgeOperations(Table):
    """All of them are the person's alone: no agent reaches a forge."""

    @operation("GET", "/v1/forges", open_to=OpenTo.LOOKS)
    def forges(self) -> wire.forge.Forges:
        """The forges of all projects, and how the last look at each ended"""

    @operation("POST", "/v1/forges", open_to=OpenTo.BROWSER, waits=True)
    def add_forge(self, wanted: wire.forge.AddForge, /) -> wire.projects.Done:
        """Add the project's forge, or change it"""

    @operation("DELETE", "/v1/forges", open_to=OpenTo.BROWSER)
    def remove_forge(self, cwd: Folder) -> wire.projects.Done:
        """Remove the project's forge; what is there stays there"""

    @operation("POST", "/v1/forges/test", open_to=OpenTo.BROWSER, waits=True)
    def try_forge(self, where: wire.projects.Where, /) -> wire.forge.ForgeTested:
        """Ask the project's forge who Legion is there and what it may do"""

    @operation("POST", "/v1/forges/sync", open_to=OpenTo.BROWSER, waits=True)
    def sync_forge(self, where: wire.projects.Where, /) -> wire.projects.Done:
        """Look at the project's forge now"""

    @operation("POST", "/v1/forges/secret", open_to=OpenTo.BROWSER)
    def forge_hook(self, where: wire.projects.Where, /) -> wire.forge.HookAddress:
        """The path and the secret for webhooks of the project's forge"""

    @operation("POST", "/v1/forges/assign", open_to=OpenTo.BROWSER, waits=True)
    def assign(self, wanted: wire.forge.AssignIssues, /) -> wire.forge.Assigned:
        """Make tickets of issues, or only show which"""

    @operation("POST", "/v1/forges/plan", open_to=OpenTo.BROWSER, waits=True, created=True)
    def plan_issues(self, wanted: wire.forge.PlanIssues, /) -> wire.plans.PlanPage:
        """Have a planner propose tickets for issues"""

    @operation("GET", "/v1/pulls", open_to=OpenTo.LOOKS)
    def pulls(self, cwd: Folder) -> wire.forge.Pulls:
        """The pull requests of the project's tickets that have not landed"""

    @operation("POST", "/v1/tickets/{id}/pull", open_to=OpenTo.BROWSER, waits=True)
    def pull(self, id: TicketId, /) -> wire.forge.Pulls:
        """Bring the pull request of a ticket up to date, and show it"""

    @operation("POST", "/v1/pulls/merge", open_to=OpenTo.BROWSER, waits=True)
    def merge_pulls(self, wanted: wire.forge.MergePulls, /) -> wire.forge.Pulls:
        """Merge pull requests that are approved and green, or only show which"""

    @operation("POST", "/v1/tickets/{id}/tried", open_to=OpenTo.BROWSER)
    def tried(self, id: TicketId, wanted: wire.forge.TriedByHand, /) -> wire.forge.TryIt:
        """How to try a ticket's change by hand; or record what came out"""
