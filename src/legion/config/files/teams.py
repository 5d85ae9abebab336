"""Files of roles and teams: roles/NAME.toml and teams/NAME.toml, shipped, the person's, and a repository's.

A nearer definition replaces a farther one completely. An invalid file is refused where its name is used; the farther
definition is never taken in its place. The caller checks what a repository may define.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cache
from importlib.resources import files
from pathlib import Path

from legion.config.base import settings
from legion.config.base.settings import REQUIRED, Unfit, choice, plain_text, setting, text, whole
from legion.config.base.source import SettingsText, line_of, read
from legion.config.files.project import hash_of
from legion.config.sections.machine import machine_labels
from legion.domain.agents.teams import (
    MAKES,
    READING,
    ROUNDS,
    Crew,
    Origin,
    Role,
    RolePart,
    Team,
    TeamStage,
    assemble,
    find_role,
    find_team,
    name_fault,
    roles_fault,
)
from legion.domain.errors import BadInput
from legion.domain.text import count
from legion.system.paths import user_config_file

LONGEST_PROMPT = 8000
"""Characters: they are sent with every turn of the role's agent."""
MOST_ROUNDS = 20


class DefinitionKind(Enum):
    ROLE = "role"
    TEAM = "team"
    TEMPLATE = "template"
    """Parsed where it is used: see templates.py."""

    @property
    def folder(self) -> str:
        return f"{self.value}s"


REPOSITORY = ".legion"
"""The folder of a repository with its roles, teams and templates."""


@dataclass(frozen=True, kw_only=True)
class DefinitionSource:
    """The text of one definition, before it is parsed."""

    kind: DefinitionKind
    name: str
    text: str
    origin: Origin
    file: str
    """Its name in messages."""

    @property
    def hash(self) -> str:
        """What trust in it stores: its place and every character."""
        return hash_of(f"{self.file}\n{self.text}")


def _prompt(value: object) -> str:
    words = plain_text(value).strip()
    if not words:
        raise Unfit(value)
    if len(words) > LONGEST_PROMPT:
        raise Unfit(words[:20] + "...", f"has {count(len(words), 'character')}, and {LONGEST_PROMPT} are the most")
    return words


def _tools(value: object) -> frozenset[str]:
    if not isinstance(value, list) or not value:
        raise Unfit(value)
    for name in value:
        if not plain_text(name).strip() or any(letter.isspace() or letter == "," for letter in name):
            raise Unfit(name, "is no name of a tool")
    return frozenset(value)


def _roles(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise Unfit(value)
    listed = tuple(plain_text(one) for one in value)
    if fault := roles_fault(listed):
        raise Unfit(list(listed), fault)
    return listed


def _is_name(value: str) -> bool:
    return value == "" or settings.NAME.fullmatch(value) is not None


def _one_line(value: str) -> bool:
    return "\n" not in value and len(value) <= 200


@dataclass(frozen=True, kw_only=True)
class RoleFile:
    part: RolePart = choice(
        REQUIRED, RolePart, help="What it does: advise before the work, build, review the change, or resolve conflicts."
    )
    prompt: str = setting(
        REQUIRED, allowed="a text that is not empty", help="Who it is and what it looks at.", read=_prompt
    )
    about: str = text("", allowed="one line", fits=_one_line, help="What `legion team role list` says of it.")
    tools: frozenset[str] | None = setting(
        None,
        allowed="a list of names of tools that is not empty",
        help="The only tools that it has, of those that your settings leave. Left out: what its part needs.",
        read=_tools,
    )
    model: str = text("", allowed="the name of a model, or empty", help="Empty: as the ticket and your settings say.")
    provider: str = text(
        "", allowed="the name of one of your providers, or empty", fits=_is_name, help="Empty: as your settings say."
    )
    driver: str = text(
        "",
        allowed='"claude", the name of one of your [drivers.NAME], or empty',
        fits=_is_name,
        help="Which kind of agent program it is. Empty: as the ticket and your settings say.",
    )
    on: tuple[str, ...] = machine_labels("Labels that its machine must have, in addition to those of the ticket.")


@dataclass(frozen=True, kw_only=True)
class TeamFile:
    roles: tuple[str, ...] = setting(
        REQUIRED,
        allowed='a list of roles like ["tech_lead", "engineer", "qa"]',
        help="In order: advisors, the one builder, reviewers. `ROLE:PART` gives a role another part.",
        read=_roles,
    )
    about: str = text("", allowed="one line", fits=_one_line, help="What `legion team list` says of it.")
    rounds: int = whole(
        ROUNDS,
        1,
        MOST_ROUNDS,
        help="How many times its reviewers may reject a change; after the last one you are asked.",
    )


@dataclass(frozen=True, kw_only=True)
class Definitions:
    """All roles and teams, each from its nearest file."""

    roles: Mapping[str, Role]
    teams: Mapping[str, Team]
    texts: Mapping[tuple[DefinitionKind, str], DefinitionSource]
    faults: Mapping[tuple[DefinitionKind, str], str] = field(default_factory=dict)
    """Faults of files. Their names are refused, whatever a farther file defines."""

    def crew(self, team: str) -> Crew:
        """Raises NotFound for unknown names, with the list, and BadInput where a file of it is invalid."""
        found = self.team(team)
        for entry in found.roles:
            self._refuse_broken(DefinitionKind.ROLE, entry.partition(":")[0])
        return assemble(replace(found, file=self._place(found)), self.roles)

    def team(self, name: str) -> Team:
        self._refuse_broken(DefinitionKind.TEAM, name)
        return find_team(name, self.teams)

    def role(self, name: str) -> Role:
        self._refuse_broken(DefinitionKind.ROLE, name)
        return find_role(name, self.roles)

    def reader(self, name: str) -> TeamStage:
        """A reviewer role outside of a team."""
        return TeamStage(role=self.role(name), part=RolePart.READ)

    def _place(self, team: Team) -> str:
        """The place of its list of roles, for the person who has to fix it."""
        one = self.texts.get((DefinitionKind.TEAM, team.name))
        line = line_of(one.text, ["roles"]) if one is not None and one.file == team.file else None
        return f"{team.file}, line {line}," if line else team.file

    def _refuse_broken(self, kind: DefinitionKind, name: str) -> None:
        if (kind, name) in self.faults:
            raise BadInput(self.faults[kind, name])


def definitions(
    repository: Iterable[DefinitionSource] = (), without: tuple[DefinitionKind, str] | None = None
) -> Definitions:
    """Shipped, then the person's over them, then a repository's trusted ones over both. `without`: as if the person had
    not written it.
    """
    roles: dict[str, Role] = {}
    teams: dict[str, Team] = {}
    texts: dict[tuple[DefinitionKind, str], DefinitionSource] = {}
    faults: dict[tuple[DefinitionKind, str], str] = {}
    unreadable: dict[tuple[DefinitionKind, str], str] = {}
    persons = [one for one in _persons(unreadable) if (one.kind, one.name) != without]
    unreadable = {key: why for key, why in unreadable.items() if key != without}
    for one in (*shipped(), *persons, *repository):
        key = (one.kind, one.name)
        texts[key] = one
        faults.pop(key, None)
        if one.kind is DefinitionKind.TEMPLATE:
            continue
        known: dict[str, Role] | dict[str, Team] = roles if one.kind is DefinitionKind.ROLE else teams
        try:
            if one.kind is DefinitionKind.ROLE:
                roles[one.name] = role_of(one, under=roles.get(one.name))
            else:
                teams[one.name] = team_of(one)
        except BadInput as wrong:
            known.pop(one.name, None)
            faults[key] = wrong.message
    nearer = {key for key, one in texts.items() if one.origin is Origin.REPOSITORY}
    faults |= {key: why for key, why in unreadable.items() if key not in nearer}
    return Definitions(roles=roles, teams=teams, texts=texts, faults=faults)


def role_of(one: DefinitionSource, under: Role | None = None) -> Role:
    """`under` is what it replaces: a repository's role has no more tools than that. Raises BadInput with the line."""
    source = _source(one, RoleFile)
    made = settings.read_section(RoleFile, source, [])
    role = Role(
        name=one.name,
        part=made.part,
        prompt=made.prompt,
        about=made.about,
        tools=made.tools,
        model=made.model,
        provider=made.provider,
        driver=made.driver,
        on=made.on,
        origin=one.origin,
        file=one.file,
    )
    return _narrowed(role, under, source) if one.origin is Origin.REPOSITORY else role


def team_of(one: DefinitionSource) -> Team:
    made = settings.read_section(TeamFile, _source(one, TeamFile), [])
    return Team(name=one.name, roles=made.roles, about=made.about, rounds=made.rounds, origin=one.origin, file=one.file)


def folder_of(kind: DefinitionKind) -> Path:
    """The folder of the person's own."""
    return user_config_file().with_name(kind.folder)


def file_of(kind: DefinitionKind, name: str) -> Path:
    return folder_of(kind) / f"{name}.toml"


def repository_path(kind: DefinitionKind, name: str) -> str:
    return f"{REPOSITORY}/{kind.folder}/{name}.toml"


def repository_name(path: str) -> tuple[DefinitionKind, str] | None:
    """What a file of a repository defines, by its path; None: nothing."""
    for kind in DefinitionKind:
        name = path.removeprefix(f"{REPOSITORY}/{kind.folder}/").removesuffix(".toml")
        if path == repository_path(kind, name) and "/" not in name:
            return kind, name
    return None


@cache
def shipped() -> tuple[DefinitionSource, ...]:
    return tuple(
        DefinitionSource(
            kind=kind,
            name=file.name.removesuffix(".toml"),
            text=file.read_text("utf-8"),
            origin=Origin.SHIPPED,
            file=f"{kind.folder}/{file.name}",
        )
        for kind in DefinitionKind
        for file in sorted((files("legion.config") / "shipped" / kind.folder).iterdir(), key=lambda file: file.name)
        if file.name.endswith(".toml")
    )


def _persons(unreadable: dict[tuple[DefinitionKind, str], str]) -> Iterator[DefinitionSource]:
    for kind in DefinitionKind:
        for path in sorted(folder_of(kind).glob("*.toml")):
            try:
                words = path.read_text("utf-8")
            except UnicodeDecodeError:
                unreadable[kind, path.stem] = f"{path} is not UTF-8 text: save it as such."
            except OSError as fault:
                unreadable[kind, path.stem] = f"{path} cannot be read ({fault.strerror}): make it a readable file."
            else:
                yield DefinitionSource(kind=kind, name=path.stem, text=words, origin=Origin.PERSON, file=str(path))


def _source(one: DefinitionSource, section: type[RoleFile] | type[TeamFile]) -> SettingsText:
    if fault := name_fault(one.name):
        raise BadInput(f"The name of {one.file} {fault}: rename it.")
    source = read(one.text, one.file)
    known = settings.rules(section)
    for name in settings.required(section):
        if name not in source.table:
            raise BadInput(f"{one.file} lacks `{name}`, which must be {known[name].allowed}.")
    return source


def _narrowed(role: Role, under: Role | None, source: SettingsText) -> Role:
    """What a repository may define of a role: credentials and programs are the person's."""
    for name in ("provider", "driver"):
        if getattr(role, name):
            raise source.fault(
                [name], f"is yours alone to choose, so put the role into {file_of(DefinitionKind.ROLE, role.name)}"
            )
    may = _may(role.part, under)
    if may is None:
        return role
    beyond = sorted((role.tools or frozenset()) - may)
    if beyond:
        raise source.fault(
            ["tools"], f"has {beyond[0]}, and a repository's role may have no more than {', '.join(sorted(may))}"
        )
    return role if role.tools is not None else replace(role, tools=may)


def _may(part: RolePart, under: Role | None) -> frozenset[str] | None:
    """The tools that a repository may give; None: all that the person's settings leave."""
    standard = None if part in MAKES else READING
    if under is None or under.tools is None:
        return standard
    return under.tools
