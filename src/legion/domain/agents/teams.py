"""Roles and teams: which agents work on a ticket, and in which order.

A role is an agent of its own: prompt, tools, model, provider. A team lists roles in order. Each has one part: it
advises before the work, builds, or reviews the change. Exactly one builds; advisors come before it, reviewers after it.
A crew is a team with its roles filled in: what a ticket keeps from its dispatch on.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from enum import Enum

from legion.domain.agents.agent import TIERS, Agent, tier_of
from legion.domain.errors import BadInput, NotAllowed, NotFound

SOLO = "solo"
"""The team of a ticket that names none."""
RESOLVER = "resolver"
"""The role that resolves in a team which has none with that part."""
REVIEWER = "reviewer"
"""The role that a project's policy adds after a team's own reviewers."""
NAME = re.compile(r"[a-z][a-z0-9]*(?:[_-][a-z0-9]+)*")
LONGEST_NAME = 40
MOST_ROLES = 8
"""In one team: every role is a run with a conversation of its own."""
ROUNDS = 3
READING = frozenset({"Read", "Glob", "Grep"})
"""The tools of an advisor or reviewer whose role names none."""


class RolePart(Enum):
    ADVISE = "advise"
    """Reads the ticket and the code before the work, and gives advice."""
    BUILD = "build"
    """Makes the change."""
    READ = "read"
    """Reviews the change and gives a verdict."""
    RESOLVE = "resolve"
    """Makes the change after two attempts could not resolve a conflict."""


MAKES = (RolePart.BUILD, RolePart.RESOLVE)
"""The parts that write."""


class Origin(Enum):
    SHIPPED = "shipped"
    PERSON = "yours"
    REPOSITORY = "repository"


@dataclass(frozen=True, kw_only=True)
class Role:
    name: str
    part: RolePart
    prompt: str = ""
    """Its identity and focus, given to its agent as rules."""
    about: str = ""
    """One line for people."""
    tools: frozenset[str] | None = None
    """The only tools that it has; None: what its part needs, as the person's settings say."""
    model: str = ""
    """Empty: the ticket's own for the builder, else as the person's settings say."""
    provider: str = ""
    """Empty: the person's choice."""
    driver: str = ""
    """Empty: the ticket's."""
    on: tuple[str, ...] = ()
    """Labels that its machine must have, in addition to those of the ticket."""
    origin: Origin = Origin.SHIPPED
    file: str = ""
    """Where it was read from, for people."""


@dataclass(frozen=True, kw_only=True)
class Team:
    name: str
    roles: tuple[str, ...]
    """In order; `ROLE:PART` where a role does another part than its own."""
    about: str = ""
    rounds: int = ROUNDS
    """How often its reviewers may send one change back before a person is asked."""
    origin: Origin = Origin.SHIPPED
    file: str = ""


@dataclass(frozen=True, kw_only=True)
class TeamStage:
    """A role in its place in a team."""

    role: Role
    part: RolePart

    @property
    def key(self) -> str:
        """Its name in runs, worktrees and folders; no two stages of a crew share one."""
        return self.role.name if self.part is self.role.part else f"{self.role.name}-{self.part.value}"

    @property
    def tools(self) -> frozenset[str] | None:
        """The only tools of its agent; None: all that the person's settings give."""
        if self.role.tools is not None or self.part in MAKES:
            return self.role.tools
        return READING


@dataclass(frozen=True, kw_only=True)
class Crew:
    """A team with its roles filled in."""

    team: str
    stages: tuple[TeamStage, ...]
    rounds: int = ROUNDS

    @property
    def advisers(self) -> tuple[TeamStage, ...]:
        return tuple(stage for stage in self.stages if stage.part is RolePart.ADVISE)

    @property
    def builder(self) -> TeamStage:
        return next(stage for stage in self.stages if stage.part is RolePart.BUILD)

    @property
    def resolver(self) -> TeamStage | None:
        return next((stage for stage in self.stages if stage.part is RolePart.RESOLVE), None)

    @property
    def readers(self) -> tuple[TeamStage, ...]:
        return tuple(stage for stage in self.stages if stage.part is RolePart.READ)

    def stage(self, key: str) -> TeamStage | None:
        """The stage of that key; the builder for an empty one, as in runs."""
        if not key:
            return self.builder
        return next((stage for stage in self.stages if stage.key == key), None)

    def missing_adviser(self, given: Collection[str]) -> TeamStage | None:
        """The first advisor that has not advised yet, by the keys of those that have."""
        return next((stage for stage in self.advisers if stage.key not in given), None)


@dataclass(frozen=True, kw_only=True)
class Advice:
    """A role's advice before the work."""

    ticket: int
    turn: int
    """0 for the builder's first conversation, 1 for later ones with fresh eyes."""
    role: str
    """The key of its stage."""
    run: int
    text: str
    given_at: float = 0.0


def turn_of(rung: int) -> int:
    """The advice that a rung of the ladder needs: fresh eyes get their own, and stronger models after them share it."""
    return min(rung, 1)


PLAIN = Crew(team=SOLO, stages=(TeamStage(role=Role(name="engineer", part=RolePart.BUILD), part=RolePart.BUILD),))
"""One agent without a prompt of its own: the crew of a ticket dispatched before there were teams."""


def name_fault(name: str) -> str | None:
    """What is wrong with the name of a role or team; None: nothing."""
    if len(name) > LONGEST_NAME:
        return f"is longer than {LONGEST_NAME} letters"
    return None if NAME.fullmatch(name) else "must be small letters, digits, _ and -, and begin with a letter"


def roles_fault(names: Iterable[str]) -> str | None:
    """What is wrong with the form of a team's list of roles; None: nothing."""
    listed = tuple(names)
    if not listed:
        return "names no role"
    if len(listed) > MOST_ROLES:
        return f"names more than {MOST_ROLES} roles"
    for entry in listed:
        name, _, part = entry.partition(":")
        if fault := name_fault(name):
            return f"names the role {name!r}, which {fault}"
        if ":" in entry and part not in [one.value for one in RolePart]:
            parts = ", ".join(one.value for one in RolePart)
            return f"gives {name} the part {part!r}, and there are only {parts}"
    return None


def assemble(team: Team, roles: Mapping[str, Role]) -> Crew:
    """The team with its roles filled in. Raises NotFound for a missing role, BadInput for a wrong order."""
    stages = tuple(_stage(entry, team, roles) for entry in team.roles)
    crew = Crew(team=team.name, stages=stages, rounds=team.rounds)
    if fault := _order_fault(stages):
        raise BadInput(f"The team {team.name} in {team.file or team.origin.value} {fault}: change its `roles`.")
    return crew


def find_team(name: str, teams: Mapping[str, Team]) -> Team:
    """Raises NotFound with the list."""
    found = teams.get(name)
    if found is None:
        raise NotFound(f"There is no team {name!r}{_near(name, teams)}: choose one of {', '.join(sorted(teams))}.")
    return found


def find_role(name: str, roles: Mapping[str, Role]) -> Role:
    """Raises NotFound with the list."""
    found = roles.get(name)
    if found is None:
        raise NotFound(f"There is no role {name!r}{_near(name, roles)}: choose one of {', '.join(sorted(roles))}.")
    return found


def _stage(entry: str, team: Team, roles: Mapping[str, Role]) -> TeamStage:
    name, _, part = entry.partition(":")
    role = roles.get(name)
    if role is None:
        raise NotFound(
            f"The team {team.name} in {team.file or team.origin.value} names the role {name!r}, which does not exist: "
            f"choose from {', '.join(sorted(roles))}."
        )
    return TeamStage(role=role, part=RolePart(part) if part else role.part)


def _order_fault(stages: tuple[TeamStage, ...]) -> str | None:
    builders = [stage for stage in stages if stage.part is RolePart.BUILD]
    if len([stage for stage in stages if stage.part is RolePart.RESOLVE]) > 1:
        return "has more than one role that resolves"
    if len(builders) != 1:
        who = ", ".join(stage.role.name for stage in builders) or "none"
        return f"must have exactly one role that builds, and {who} does"
    at = stages.index(builders[0])
    for place, stage in enumerate(stages):
        if stage.part is RolePart.ADVISE and place > at:
            return f"has {stage.role.name} advise after the work is done"
        if stage.part is RolePart.READ and place < at:
            return f"has {stage.role.name} read a change before there is one"
        if stage.part is RolePart.RESOLVE and place < at:
            return f"has {stage.role.name} resolve before there is a change"
    keys = [stage.key for stage in stages]
    twice = next((key for key in keys if keys.count(key) > 1), None)
    return f"has {twice} twice" if twice else None


def _near(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name, sorted(known), n=1)
    return f"; did you mean {near[0]}" if near else ""


def narrowed(crew: Crew, agent: Agent, usual: Crew | None) -> Crew:
    """The crew with no more rights than the agent may give.

    The project's own team gets models that the agent may give. One that the agent named is refused where it gives
    more, or less review than the `usual` team of the project.
    """
    if usual is None:
        own = [replace(stage.role, model=agent.model) if _above(agent, stage) else stage.role for stage in crew.stages]
        return replace(
            crew, stages=tuple(replace(stage, role=role) for stage, role in zip(crew.stages, own, strict=True))
        )
    there = [stage.key for stage in crew.readers]
    for stage in usual.readers:
        if stage.key not in there:
            raise NotAllowed(
                f"In this project {stage.role.name} reads every change, and the team {crew.team} has none: "
                f"choose {usual.team} or leave out team."
            )
    for stage in crew.stages:
        if stage.role.driver or stage.role.provider:
            raise NotAllowed(
                f"The role {stage.role.name} of the team {crew.team} names a program or a provider, which only a "
                "person gives: choose another team."
            )
        if _above(agent, stage):
            raise NotAllowed(
                f"You cannot give a model like {stage.role.model}, which {stage.role.name} of the team {crew.team} "
                "has: choose another team."
            )
    return crew


def _above(agent: Agent, stage: TeamStage) -> bool:
    model, tier = stage.role.model, agent.rights.tier
    return bool(model) and TIERS.index(tier_of(model, tier)) > TIERS.index(tier)
