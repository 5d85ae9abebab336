"""Shapes of requests and answers about roles and teams."""

from __future__ import annotations

from dataclasses import field

from legion.wire.lazy import dataclass


@dataclass(kw_only=True)
class RoleLine:
    name: str
    about: str
    part: str
    """`advise`, `build` or `read`; empty where its file makes no sense."""
    tools: list[str] | None
    """Null: all that the person's settings give."""
    model: str
    provider: str
    driver: str
    origin: str
    """`shipped`, `yours` or `repository`."""
    file: str
    fault: str = ""
    """What is wrong with its file."""


@dataclass(kw_only=True)
class TeamLine:
    name: str
    about: str
    roles: list[str]
    rounds: int
    origin: str
    file: str
    default: bool
    """Whether the project's tickets get it that name none."""
    fault: str = ""
    """What is wrong with its file, or that of a role of it."""


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


@dataclass(kw_only=True)
class StageLine:
    """A role in its place in a ticket's team."""

    role: str
    """Its name in runs."""
    part: str
    """`advise`, `build` or `read`."""
    model: str
    """Empty: as the person's settings say."""
    runs: list[int]
    """Those of it, oldest first."""


@dataclass(kw_only=True)
class AdviceLine:
    role: str
    run: int
    turn: int
    """0 for the first, 1 for that for fresh eyes."""
    text: str
    given_at: float


@dataclass(kw_only=True)
class CrewLine:
    """Who works on a ticket: its team as it was at the dispatch."""

    team: str
    stages: list[StageLine]
    advice: list[AdviceLine]
    changed: str = ""
    """Why a ticket that is dispatched now would get another; empty where it would not."""
