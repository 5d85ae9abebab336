"""The part of the stand-in about roles and teams."""

from __future__ import annotations

from dataclasses import replace

from legion.domain.errors import BadInput, NotFound
from legion.wire.projects import Done
from legion.wire.teams import (
    DefinitionText,
    RoleLine,
    RolePage,
    Roles,
    SaveDefinition,
    TeamLine,
    TeamPage,
    Teams,
)


def a_role(name: str, part: str = "build", **told: object) -> RoleLine:
    plain = RoleLine(
        name=name, about="", part=part, tools=None, model="", provider="", driver="", origin="shipped", file="f.toml"
    )
    return replace(plain, **told)  # type: ignore[arg-type]


def a_team(name: str, *roles: str, **told: object) -> TeamLine:
    plain = TeamLine(
        name=name, about="", roles=list(roles), rounds=3, origin="shipped", file="t.toml", default=name == "solo"
    )
    return replace(plain, **told)  # type: ignore[arg-type]


class TeamsStandIn:
    """Remembers what was saved; a text with the word nonsense makes no sense."""

    def reset_teams(self) -> None:
        self.roles_there = {"engineer": a_role("engineer"), "qa": a_role("qa", "read")}
        self.teams_there = {"solo": a_team("solo", "engineer"), "pair": a_team("pair", "engineer", "qa")}
        self.saved: list[tuple[str, SaveDefinition]] = []

    def _ask(self, name: str) -> None:
        raise NotImplementedError

    def roles(self, cwd: str | None, /) -> Roles:
        self._ask("roles")
        return Roles(roles=list(self.roles_there.values()))

    def role(self, cwd: str | None, name: str, /) -> RolePage:
        self._ask("role")
        if name not in self.roles_there:
            raise NotFound(f"There is no role {name!r}: choose one of engineer, qa.")
        return RolePage(role=self.roles_there[name], prompt="Be good.", teams=["pair"])

    def teams(self, cwd: str | None, /) -> Teams:
        self._ask("teams")
        return Teams(teams=list(self.teams_there.values()), untrusted=[".legion/teams/other.toml"])

    def team(self, cwd: str | None, name: str, /) -> TeamPage:
        self._ask("team")
        if name not in self.teams_there:
            raise NotFound(f"There is no team {name!r}: choose one of pair, solo.")
        team = self.teams_there[name]
        return TeamPage(team=team, stages=[self.roles_there[role] for role in team.roles])

    def definition(self, kind: str, cwd: str | None, name: str, new: bool, like: str, /) -> DefinitionText:
        self._ask("definition")
        return DefinitionText(name=name, file=f"{kind}s/{name}.toml", text=f'about = "{like}"\n')

    def save_definition(self, kind: str, wanted: SaveDefinition, /) -> Done:
        self._ask("save_definition")
        if "nonsense" in wanted.text:
            raise BadInput("In t.toml, line 1, `roles` must be a list of roles.")
        self.saved.append((kind, wanted))
        return Done(message=f"The {kind} {wanted.name} is written.", notes=[])

    def remove_definition(self, kind: str, cwd: str | None, name: str, /) -> Done:
        self._ask("remove_definition")
        return Done(message=f"The {kind} {name} is removed.")
