"""List, show, write and remove roles and teams."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from legion.config.files.teams import DefinitionKind, Definitions, DefinitionSource, file_of, role_of, team_of
from legion.domain.agents.teams import SOLO, Origin, Role, TeamStage, find_role, find_team, name_fault
from legion.domain.errors import BadInput, LegionError, NotAllowed, StateConflict
from legion.jobs.agent import teams
from legion.jobs.board import Board
from legion.jobs.landing import target
from legion.jobs.trees import ProjectContext, Trees
from legion.service.projects import registry
from legion.service.shared.fragments import shaped
from legion.system import files
from legion.wire.projects import Done
from legion.wire.teams import DefinitionText, RoleLine, RolePage, Roles, SaveDefinition, TeamLine, TeamPage, Teams

_TEMPLATES = {
    DefinitionKind.ROLE: """\
about = ""
part = "read"    # advise before the work, build, or read the change
prompt = \"\"\"
The role, and what it checks.
\"\"\"
# tools = ["Read", "Glob", "Grep"]
# model = "opus"
# provider = ""
# driver = ""
""",
    DefinitionKind.TEAM: """\
about = ""
roles = ["tech_lead", "engineer", "qa"]    # advisors, the builder, reviewers; see `legion team role list`
rounds = 3
""",
}


def role_list(context: Trees, cwd: str | None) -> Roles:
    project = _project(context, cwd)
    found = teams.definitions(context, project)
    lines = [_role_line(found, name) for name in _names(found, DefinitionKind.ROLE)]
    return Roles(roles=lines, untrusted=_untrusted(context, project))


def team_list(context: Trees, cwd: str | None) -> Teams:
    project = _project(context, cwd)
    found = teams.definitions(context, project)
    lines = [_team_line(found, name, _default_team(project)) for name in _names(found, DefinitionKind.TEAM)]
    return Teams(teams=lines, untrusted=_untrusted(context, project))


def role_page(context: Trees, cwd: str | None, name: str) -> RolePage:
    """Raises NotFound with the list of roles, and BadInput with line and reason if its file is not valid."""
    found = teams.definitions(context, _project(context, cwd))
    role = found.role(name)
    having = [team.name for team in found.teams.values() if name in [entry.partition(":")[0] for entry in team.roles]]
    return RolePage(role=_role_line(found, name), prompt=role.prompt, teams=sorted(having))


def team_page(context: Trees, cwd: str | None, name: str) -> TeamPage:
    project = _project(context, cwd)
    found = teams.definitions(context, project)
    crew = found.crew(name)
    return TeamPage(
        team=_team_line(found, name, _default_team(project)), stages=[_stage_line(stage) for stage in crew.stages]
    )


def text(context: Trees, cwd: str | None, kind: DefinitionKind, name: str, *, new: bool, like: str) -> DefinitionText:
    """The text that an editor starts with: the present file, a copy of a shipped one, or a template."""
    _refuse_name(kind, name)
    found = teams.definitions(context, _project(context, cwd))
    there = found.texts.get((kind, name))
    if new:
        _refuse_present(kind, name, there)
        start = _text_of(found, kind, like).text if like else _TEMPLATES[kind]
        return DefinitionText(name=name, file=str(file_of(kind, name)), text=start)
    there = _text_of(found, kind, name)
    _refuse_foreign(kind, there)
    return DefinitionText(
        name=name, file=str(file_of(kind, name)), text=there.text, fault=found.faults.get((kind, name), "")
    )


def save(context: Trees, kind: DefinitionKind, wanted: SaveDefinition) -> Done:
    """Write the text. The old file stays if the new text is not valid."""
    _refuse_name(kind, wanted.name)
    project = _project(context, wanted.cwd)
    found = teams.definitions(context, project)
    there = found.texts.get((kind, wanted.name))
    if wanted.new:
        _refuse_present(kind, wanted.name, there)
    elif there is None:
        _text_of(found, kind, wanted.name)
    else:
        _refuse_foreign(kind, there)
    path = file_of(kind, wanted.name)
    one = DefinitionSource(kind=kind, name=wanted.name, text=wanted.text, origin=Origin.PERSON, file=str(path))
    if kind is DefinitionKind.ROLE:
        _refuse_breaking(found, role_of(one), path)
    else:
        _refuse_wrong_team(found, one)
    _write(path, wanted.text)
    return Done(message=f"The {kind.value} {wanted.name} is written to {path}.")


def remove(context: Trees, cwd: str | None, kind: DefinitionKind, name: str) -> Done:
    """Remove a file of the person's. A shipped one of the same name counts again."""
    _refuse_name(kind, name)
    project = _project(context, cwd)
    found, path = teams.definitions(context, project), file_of(kind, name)
    if not path.exists():
        there = _text_of(found, kind, name)
        _refuse_foreign(kind, there)
        raise NotAllowed(
            f"The {kind.value} {name} is shipped and cannot be removed: `legion {kind.value} edit "
            f"{name}` makes a copy of your own."
        )
    left = teams.definitions(context, project, without=(kind, name))
    if broken := [
        team for team in found.teams if _works(found, team) and team in left.teams and not _works(left, team)
    ]:
        raise StateConflict(
            f"The role {name} is needed by {', '.join(broken)}: remove it there first, with `legion team edit "
            f"{broken[0]}`."
        )
    kept = path.with_name(f"{path.name}.removed")
    _rename(path, kept)
    again = f"; the {left.texts[kind, name].origin.value} one counts now" if (kind, name) in left.texts else ""
    return Done(message=f"The {kind.value} {name} is removed{again}. Its text is kept in {kept}.")


def _works(found: Definitions, team: str) -> bool:
    try:
        found.crew(team)
    except LegionError:
        return False
    return True


def _project(context: Trees, cwd: str | None) -> ProjectContext | None:
    record = registry.find_or_none(context, cwd) if cwd else None
    if record is None:
        return None
    # Include definitions that the person has just committed.
    project = context.project_of(record)
    target.fetch(context, project)
    return project


def _default_team(project: ProjectContext | None) -> str:
    return project.config.agents.team if project is not None else SOLO


def _untrusted(context: Board, project: ProjectContext | None) -> list[str]:
    return [one.file for one in teams.untrusted(context, project)] if project is not None else []


def _names(found: Definitions, kind: DefinitionKind) -> list[str]:
    return sorted({name for other, name in (*found.texts, *found.faults) if other is kind})


def _role_line(found: Definitions, name: str) -> RoleLine:
    if (DefinitionKind.ROLE, name) not in found.faults:
        return _stage_line(TeamStage(role=found.roles[name], part=found.roles[name].part))
    origin, file = _place(found, DefinitionKind.ROLE, name)
    fault = found.faults[DefinitionKind.ROLE, name]
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


def _stage_line(stage: TeamStage) -> RoleLine:
    return shaped(RoleLine, stage, stage.role)


def _team_line(found: Definitions, name: str, usual: str) -> TeamLine:
    team = found.teams.get(name)
    try:
        found.crew(name)
        fault = ""
    except LegionError as wrong:
        fault = wrong.message
    origin, file = _place(found, DefinitionKind.TEAM, name)
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


def _place(found: Definitions, kind: DefinitionKind, name: str) -> tuple[str, str]:
    """Origin and file of a definition; a file that cannot be read is the person's."""
    one = found.texts.get((kind, name))
    return (one.origin.value, one.file) if one else (Origin.PERSON.value, str(file_of(kind, name)))


def _text_of(found: Definitions, kind: DefinitionKind, name: str) -> DefinitionSource:
    """Raises NotFound with the list of names."""
    one = found.texts.get((kind, name))
    if one is not None:
        return one
    if (kind, name) in found.faults:
        raise BadInput(found.faults[kind, name])
    find_role(name, found.roles) if kind is DefinitionKind.ROLE else find_team(name, found.teams)
    raise AssertionError("an existing definition has a text")


def _refuse_name(kind: DefinitionKind, name: str) -> None:
    if fault := name_fault(name):
        raise BadInput(f"The name of a {kind.value} {fault}: choose another one.")


def _refuse_present(kind: DefinitionKind, name: str, there: DefinitionSource | None) -> None:
    if there is not None or file_of(kind, name).exists():
        raise StateConflict(
            f"There is a {kind.value} {name} already: change it with `legion {kind.value} edit {name}`."
        )


def _refuse_foreign(kind: DefinitionKind, there: DefinitionSource) -> None:
    if there.origin is Origin.REPOSITORY:
        raise NotAllowed(
            f"The {kind.value} {there.name} belongs to the repository: edit {there.file} there, commit it and run "
            "`legion trust`."
        )


def _refuse_breaking(found: Definitions, role: Role, path: Path) -> None:
    """A team that works must not stop to work by the text of a role: every dispatch with it would be refused."""
    after = replace(
        found,
        roles={**found.roles, role.name: role},
        faults={key: why for key, why in found.faults.items() if key != (DefinitionKind.ROLE, role.name)},
    )
    for team in found.teams:
        if _works(found, team) and not _works(after, team):
            raise StateConflict(
                f"The role {role.name} is not written, because as `{role.part.value}` it would break the team {team}: "
                f"give it the part it had, or change that team first with `legion team edit {team}`."
            )


def _refuse_wrong_team(found: Definitions, one: DefinitionSource) -> None:
    """Check its format, and its roles as they are now."""
    team = team_of(one)
    others = {key: why for key, why in found.faults.items() if key != (DefinitionKind.TEAM, one.name)}
    texts = {**found.texts, (DefinitionKind.TEAM, one.name): one}
    replace(found, teams={**found.teams, one.name: team}, texts=texts, faults=others).crew(one.name)


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_atomic(path, text)
    except OSError as fault:
        raise NotAllowed(f"{path} cannot be written ({fault.strerror}): make its folder writable.") from fault


def _rename(path: Path, kept: Path) -> None:
    try:
        path.replace(kept)
    except OSError as fault:
        raise NotAllowed(f"{path} cannot be renamed ({fault.strerror}): make its folder writable.") from fault
