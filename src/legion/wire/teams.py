"""Roles and teams."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from legion.wire.bases import DefinitionLine
from legion.wire.lazy import dataclass
from legion.wire.table import Folder, OpenTo, Table, operation

if TYPE_CHECKING:
    from legion import wire


@dataclass(kw_only=True)
class RoleLine(DefinitionLine):
    part: str
    """`advise`, `build`, `read` or `resolve`; empty where its file makes no sense."""
    tools: list[str] | None
    """Null: all that the person's settings give."""
    model: str
    provider: str
    driver: str


@dataclass(kw_only=True)
class TeamLine(DefinitionLine):
    roles: list[str]
    rounds: int
    default: bool
    """Whether the project's tickets get it that name none."""


@dataclass(kw_only=True)
class Roles:
    schema: str = "legion.roles/1"
    roles: list[RoleLine]
    untrusted: list[str] = field(default_factory=list)
    """Files of the repository that count for nothing yet."""


@dataclass(kw_only=True)
class Teams:
    schema: str = "legion.teams/1"
    teams: list[TeamLine]
    untrusted: list[str] = field(default_factory=list)


@dataclass(kw_only=True)
class RolePage:
    schema: str = "legion.role/1"
    role: RoleLine
    prompt: str
    teams: list[str]
    """Those that have it."""


@dataclass(kw_only=True)
class TeamPage:
    schema: str = "legion.team/1"
    team: TeamLine
    stages: list[RoleLine]
    """Its roles in order, each with the part that it has here."""


@dataclass(kw_only=True)
class DefinitionText:
    """A role or team as it is written: what an editor starts with."""

    schema: str = "legion.definition/1"
    name: str
    file: str
    """Where it is saved."""
    text: str
    fault: str = ""


@dataclass(kw_only=True)
class SaveDefinition:
    """The body of a role or team that a person wrote."""

    cwd: str
    name: str
    text: str
    new: bool = False
    """Refused where it is there already."""


class TeamRows(Table):
    """Names are in the query: an invalid one gets a sentence, not the router's 404."""

    @operation("GET", "/v1/roles", open_to=OpenTo.LOOKS)
    def roles(self, cwd: Folder | None) -> Roles:
        """All roles, and where each is defined"""

    @operation("GET", "/v1/roles/page", open_to=OpenTo.LOOKS)
    def role(self, cwd: Folder | None, name: str) -> RolePage:
        """A role with its prompt"""

    @operation("GET", "/v1/roles/text", open_to=OpenTo.LOOKS)
    def role_text(self, cwd: Folder | None, name: str, new: bool = False, like: str = "") -> DefinitionText:
        """The text of a role's file, or a template for a new one"""

    @operation("POST", "/v1/roles", open_to=OpenTo.BROWSER)
    def save_role(self, wanted: SaveDefinition, /) -> wire.projects.Done:
        """Write a role of the person's own; an invalid text is refused"""

    @operation("DELETE", "/v1/roles", open_to=OpenTo.BROWSER, asks="Remove {what}? Its text is kept.")
    def remove_role(self, cwd: Folder | None, name: str) -> wire.projects.Done:
        """Remove a role of your own; a shipped role of the same name counts again

        Its text is kept next to it. A role that a team needs is not removed.
        """

    @operation("GET", "/v1/teams", open_to=OpenTo.LOOKS)
    def teams(self, cwd: Folder | None) -> Teams:
        """All teams, and where each is defined"""

    @operation("GET", "/v1/teams/page", open_to=OpenTo.LOOKS)
    def team(self, cwd: Folder | None, name: str) -> TeamPage:
        """A team with its roles in order"""

    @operation("GET", "/v1/teams/text", open_to=OpenTo.LOOKS)
    def team_text(self, cwd: Folder | None, name: str, new: bool = False, like: str = "") -> DefinitionText:
        """The text of a team's file, or a template for a new one"""

    @operation("POST", "/v1/teams", open_to=OpenTo.BROWSER)
    def save_team(self, wanted: SaveDefinition, /) -> wire.projects.Done:
        """Write a team of the person's own; an invalid text is refused"""

    @operation("DELETE", "/v1/teams", open_to=OpenTo.BROWSER, asks="Remove {what}? Its text is kept.")
    def remove_team(self, cwd: Folder | None, name: str) -> wire.projects.Done:
        """Remove a team of your own; a shipped team of the same name counts again

        Its text is kept next to it. Tickets keep the team that they were dispatched with.
        """
