# mypy: disable-error-code="empty-body"
"""The rows of the table of operations about roles and teams; `operations` explains them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from legion.wire.table import Folder, OpenTo, Table, operation

if TYPE_CHECKING:
    from legion import wire


class TeamOperations(Table):
    """Names are in the query: an invalid one gets a sentence, not the router's 404."""

    @operation("GET", "/v1/roles", open_to=OpenTo.LOOKS)
    def roles(self, cwd: Folder | None) -> wire.teams.Roles:
        """All roles, and where each is defined"""

    @operation("GET", "/v1/roles/page", open_to=OpenTo.LOOKS)
    def role(self, cwd: Folder | None, name: str) -> wire.teams.RolePage:
        """A role with its prompt"""

    @operation("GET", "/v1/roles/text", open_to=OpenTo.LOOKS)
    def role_text(self, cwd: Folder | None, name: str, new: bool = False, like: str = "") -> wire.teams.DefinitionText:
        """The text of a role's file, or a template for a new one"""

    @operation("POST", "/v1/roles", open_to=OpenTo.BROWSER)
    def save_role(self, wanted: wire.teams.SaveDefinition, /) -> wire.projects.Done:
        """Write a role of the person's own; an invalid text is refused"""

    @operation("DELETE", "/v1/roles", open_to=OpenTo.BROWSER)
    def remove_role(self, cwd: Folder | None, name: str) -> wire.projects.Done:
        """Remove a role of the person's own; its text is kept"""

    @operation("GET", "/v1/teams", open_to=OpenTo.LOOKS)
    def teams(self, cwd: Folder | None) -> wire.teams.Teams:
        """All teams, and where each is defined"""

    @operation("GET", "/v1/teams/page", open_to=OpenTo.LOOKS)
    def team(self, cwd: Folder | None, name: str) -> wire.teams.TeamPage:
        """A team with its roles in order"""

    @operation("GET", "/v1/teams/text", open_to=OpenTo.LOOKS)
    def team_text(self, cwd: Folder | None, name: str, new: bool = False, like: str = "") -> wire.teams.DefinitionText:
        """The text of a team's file, or a template for a new one"""

    @operation("POST", "/v1/teams", open_to=OpenTo.BROWSER)
    def save_team(self, wanted: wire.teams.SaveDefinition, /) -> wire.projects.Done:
        """Write a team of the person's own; an invalid text is refused"""

    @operation("DELETE", "/v1/teams", open_to=OpenTo.BROWSER)
    def remove_team(self, cwd: Folder | None, name: str) -> wire.projects.Done:
        """Remove a team of the person's own; its text is kept"""
