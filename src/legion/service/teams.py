"""Roles and teams: listed, shown, written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from legion.config import teams as files
from legion.config.teams import Definitions, Kind, Text
from legion.domain.errors import BadInput, Conflict, LegionError, NotAllowed
from legion.domain.teams import SOLO, Origin, Role, Stage, find_role, find_team, name_fault
from legion.jobs import person, teams
from legion.jobs.world import Workshop, World
from legion.service import projects as project_cases
from legion.system import files as disk
from legion.wire.projects import Done
from legion.wire.teams import DefinitionText, RoleLine, RolePage, Roles, SaveDefinition, TeamLine, TeamPage, Teams

_TEMPLATES = {
    Kind.ROLE: """\
about = ""
part = "read"    # advise before the work, build, or read the change
prompt = \"\"\"
Who it is and what it looks at.
\"\"\"
# tools = ["Read", "Glob", "Grep"]
# model = "opus"
# provider = ""
# driver = ""
""",
    Kind.TEAM: """\
about = ""
roles = ["tech_lead", "engineer", "qa"]    # who advises, the one who builds, who reads; see `legion role list`
rounds = 3
""",
}


def role_list(world: World, cwd: str | None) -> Roles:
    shop = _shop(world, cwd)
    found = teams.definitions(world, shop)
    lines = [_role_line(found, name) for name in _names(found, Kind.ROLE)]
    return Roles(roles=lines, untrusted=_untrusted(world, shop))


def team_list(world: World, cwd: str | None) -> Teams:
    shop = _shop(world, cwd)
    found = teams.definitions(world, shop)
    lines = [_team_line(found, name, _usual(shop)) for name in _names(found, Kind.TEAM)]
    return Teams(teams=lines, untrusted=_untrusted(world, shop))


def role_page(world: World, cwd: str | None, name: str) -> RolePage:
    """Raises NotFound with the list, and BadInput with line and reason where its file makes no sense."""
    found = teams.definitions(world, _shop(world, cwd))
    role = found.role(name)
    having = [team.name for team in found.teams.values() if name in [entry.partition(":")[0] for entry in team.roles]]
    return RolePage(role=_role_line(found, name), prompt=role.prompt, teams=sorted(having))


def team_page(world: World, cwd: str | None, name: str) -> TeamPage:
    shop = _shop(world, cwd)
    found = teams.definitions(world, shop)
    crew = found.crew(name)
    return TeamPage(team=_team_line(found, name, _usual(shop)), stages=[_stage_line(stage) for stage in crew.stages])


def text(world: World, cwd: str | None, kind: Kind, name: str, *, new: bool, like: str) -> DefinitionText:
    """What an editor begins with: the file as it is, a shipped one to be made the person's, or something to fill in."""
    _refuse_name(kind, name)
    found = teams.definitions(world, _shop(world, cwd))
    there = found.texts.get((kind, name))
    if new:
        _refuse_present(kind, name, there)
        begin = _text_of(found, kind, like).text if like else _TEMPLATES[kind]
        return DefinitionText(name=name, file=str(files.file_of(kind, name)), text=begin)
    there = _text_of(found, kind, name)
    _refuse_foreign(kind, there)
    return DefinitionText(
        name=name,
        file=str(files.file_of(kind, name)),
        text=there.text,
        fault=found.faults.get((kind, name), ""),
    )


def save(world: World, kind: Kind, wanted: SaveDefinition) -> Done:
    """The old file stays where the new text makes no sense."""
    _refuse_name(kind, wanted.name)
    shop = _shop(world, wanted.cwd)
    found = teams.definitions(world, shop)
    there = found.texts.get((kind, wanted.name))
    if wanted.new:
        _refuse_present(kind, wanted.name, there)
    elif there is None:
        _text_of(found, kind, wanted.name)
    else:
        _refuse_foreign(kind, there)
    path = files.file_of(kind, wanted.name)
    one = Text(kind=kind, name=wanted.name, text=wanted.text, origin=Origin.PERSON, file=str(path))
    notes: list[str] = []
    if kind is Kind.ROLE:
        notes = _spoilt(found, files.role_of(one))
    else:
        _refuse_wrong_team(found, one)
    _write(path, wanted.text)
    return Done(message=f"The {kind.value} {wanted.name} is written to {path}.", notes=notes)


def remove(world: World, cwd: str | None, kind: Kind, name: str) -> Done:
    """Only what the person wrote can be removed. What stands below it, a shipped one, counts again."""
    _refuse_name(kind, name)
    shop = _shop(world, cwd)
    found, path = teams.definitions(world, shop), files.file_of(kind, name)
    if not path.exists():
        there = _text_of(found, kind, name)
        _refuse_foreign(kind, there)
        raise NotAllowed(
            f"The {kind.value} {name} is shipped, so there is nothing of yours to remove: `legion {kind.value} edit "
            f"{name}` makes it your own."
        )
    left = teams.definitions(world, shop, without=(kind, name))
    if broken := [
        team for team in found.teams if _works(found, team) and team in left.teams and not _works(left, team)
    ]:
        raise Conflict(
            f"The role {name} is needed by {', '.join(broken)}: take it out there first, with `legion team edit "
            f"{broken[0]}`."
        )
    kept = path.with_name(f"{path.name}.removed")
    _rename(path, kept)
    again = f"; the {left.texts[kind, name].origin.value} one counts now" if (kind, name) in left.texts else ""
    return Done(message=f"The {kind.value} {name} is removed{again}. Its text lies in {kept}.")


def _works(found: Definitions, team: str) -> bool:
    try:
        found.crew(team)
    except LegionError:
        return False
    return True


def _shop(world: World, cwd: str | None) -> Workshop | None:
    project = project_cases.find_or_none(world, cwd) if cwd else None
    if project is None:
        return None
    # Whoever has just committed a definition wants it to count.
    shop = world.workshop_of(project)
    person.look(world, shop)
    return shop


def _usual(shop: Workshop | None) -> str:
    return shop.config.agents.team if shop is not None else SOLO


def _untrusted(world: World, shop: Workshop | None) -> list[str]:
    return [one.file for one in teams.untrusted(world, shop)] if shop is not None else []


def _names(found: Definitions, kind: Kind) -> list[str]:
    return sorted({name for other, name in (*found.texts, *found.faults) if other is kind})


def _role_line(found: Definitions, name: str) -> RoleLine:
    if (Kind.ROLE, name) not in found.faults:
        return _stage_line(Stage(role=found.roles[name], part=found.roles[name].part))
    origin, file = _place(found, Kind.ROLE, name)
    fault = found.faults[Kind.ROLE, name]
    return RoleLine(
        name=name,
        about="",
        part="",
        tools=None,
        model="",
        provider="",
        driver="",
        origin=origin,
        file=file,
        fault=fault,
    )


def _stage_line(stage: Stage) -> RoleLine:
    role = stage.role
    return RoleLine(
        name=role.name,
        about=role.about,
        part=stage.part.value,
        tools=None if stage.tools is None else sorted(stage.tools),
        model=role.model,
        provider=role.provider,
        driver=role.driver,
        origin=role.origin.value,
        file=role.file,
    )


def _team_line(found: Definitions, name: str, usual: str) -> TeamLine:
    team = found.teams.get(name)
    try:
        found.crew(name)
        fault = ""
    except LegionError as wrong:
        fault = wrong.message
    origin, file = _place(found, Kind.TEAM, name)
    return TeamLine(
        name=name,
        about=team.about if team else "",
        roles=list(team.roles) if team else [],
        rounds=team.rounds if team else 0,
        origin=origin,
        file=file,
        default=name == usual,
        fault=fault,
    )


def _place(found: Definitions, kind: Kind, name: str) -> tuple[str, str]:
    """Where it is defined; a file that cannot be read is the person's."""
    one = found.texts.get((kind, name))
    return (one.origin.value, one.file) if one else (Origin.PERSON.value, str(files.file_of(kind, name)))


def _text_of(found: Definitions, kind: Kind, name: str) -> Text:
    """Raises NotFound with the list."""
    one = found.texts.get((kind, name))
    if one is not None:
        return one
    if (kind, name) in found.faults:
        raise BadInput(found.faults[kind, name])
    find_role(name, found.roles) if kind is Kind.ROLE else find_team(name, found.teams)
    raise AssertionError("what is found has a text")


def _refuse_name(kind: Kind, name: str) -> None:
    if fault := name_fault(name):
        raise BadInput(f"The name of a {kind.value} {fault}: choose another one.")


def _refuse_present(kind: Kind, name: str, there: Text | None) -> None:
    if there is not None or files.file_of(kind, name).exists():
        raise Conflict(f"There is a {kind.value} {name} already: change it with `legion {kind.value} edit {name}`.")


def _refuse_foreign(kind: Kind, there: Text) -> None:
    if there.origin is Origin.REPOSITORY:
        raise NotAllowed(
            f"The {kind.value} {there.name} is the repository's: edit {there.file} there, commit it and trust it again."
        )


def _spoilt(found: Definitions, role: Role) -> list[str]:
    """Teams that have the role and do not work with it any more."""
    after = replace(
        found,
        roles={**found.roles, role.name: role},
        faults={key: why for key, why in found.faults.items() if key != (Kind.ROLE, role.name)},
    )
    notes = []
    for team in found.teams.values():
        if role.name not in [entry.partition(":")[0] for entry in team.roles]:
            continue
        try:
            after.crew(team.name)
        except LegionError as wrong:
            notes.append(wrong.message)
    return notes


def _refuse_wrong_team(found: Definitions, one: Text) -> None:
    """Its form, and its roles as they are now."""
    team = files.team_of(one)
    others = {key: why for key, why in found.faults.items() if key != (Kind.TEAM, one.name)}
    texts = {**found.texts, (Kind.TEAM, one.name): one}
    replace(found, teams={**found.teams, one.name: team}, texts=texts, faults=others).crew(one.name)


def _write(path: Path, words: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        disk.write_whole(path, words)
    except OSError as fault:
        raise NotAllowed(f"{path} cannot be written ({fault.strerror}): make its folder writable.") from fault


def _rename(path: Path, kept: Path) -> None:
    try:
        path.replace(kept)
    except OSError as fault:
        raise NotAllowed(f"{path} cannot be renamed ({fault.strerror}): make its folder writable.") from fault
