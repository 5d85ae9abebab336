"""The roles and teams of a project: those shipped, the person's, and the trusted ones of its landed code."""

from __future__ import annotations

import functools
from fnmatch import fnmatchcase
from pathlib import Path

from legion.config.files import teams
from legion.config.files.teams import DefinitionKind, Definitions, DefinitionSource
from legion.domain.agents.teams import RESOLVER, REVIEWER, Advice, Crew, Origin, Role, RolePart, TeamStage, turn_of
from legion.domain.errors import BadInput, NotFound
from legion.domain.tickets import ladder
from legion.domain.tickets.ticket import Ticket
from legion.drivers import registry
from legion.git.hub.repository import Hub
from legion.jobs.agent import model_access
from legion.jobs.attempts import escalation
from legion.jobs.board import Board
from legion.jobs.trees import ProjectContext
from legion.runner.journal import read_journal
from legion.store.board import crews, projects
from legion.store.database.transactions import ReadTransaction
from legion.store.work import runs, watchdog

_MOST_FILES = 100
_LARGEST = 1 << 17
"""Bytes; a larger definition is refused when it is used."""
_LONGEST_MESSAGE = 8000
"""Characters of a message to an adviser that the builder also gets."""


def definitions(
    context: Board, project: ProjectContext | None, without: tuple[DefinitionKind, str] | None = None
) -> Definitions:
    """Outside a project only those shipped and the person's; `without` leaves one definition out."""
    if project is None:
        return teams.definitions(without=without)
    theirs = repository(project)
    with context.store.read() as tx:
        trusted = [one for one in theirs if projects.is_trusted(tx, project.id, one.hash)]
    return teams.definitions(trusted, without)


def untrusted(context: Board, project: ProjectContext) -> tuple[DefinitionSource, ...]:
    """Those of the landed code that are not trusted yet."""
    theirs = repository(project)
    with context.store.read() as tx:
        return tuple(one for one in theirs if not projects.is_trusted(tx, project.id, one.hash))


def repository(project: ProjectContext) -> tuple[DefinitionSource, ...]:
    """All definitions of the landed code, trusted or not. Those of a worktree or a checkout are not used."""
    found = _defined(project.hub.path, project.record.target or project.target)
    if len(found) > _MOST_FILES:
        raise BadInput(f"{teams.REPOSITORY} of {project.name} has more than {_MOST_FILES} files: remove some.")
    return found


@functools.lru_cache(maxsize=64)
def _defined(git_dir: Path, commit: str) -> tuple[DefinitionSource, ...]:
    """Up to one more than the limit. Cached: a commit never changes, and every ticket needs it several times."""
    hub = Hub(git_dir)
    found = [(path, named) for path in hub.files_in(commit, teams.REPOSITORY) if (named := teams.repository_name(path))]
    contents = [(named, hub.read_file(commit, path)) for path, named in found[: _MOST_FILES + 1]]
    return tuple(_text(kind, name, content) for (kind, name), content in contents if content is not None)


def in_checkout(project: ProjectContext) -> tuple[DefinitionSource, ...]:
    """The definitions in the person's checkout: they may be trusted before they land."""
    root = Path(project.record.root)
    found = [
        (kind, path)
        for kind in DefinitionKind
        for path in sorted((root / teams.REPOSITORY / kind.folder).glob("*.toml"))[:_MOST_FILES]
        if path.is_file() and not path.is_symlink() and path.stat().st_size <= _LARGEST
    ]
    return tuple(_text(kind, path.stem, path.read_bytes()) for kind, path in found)


def crew(context: Board, project: ProjectContext, team: str) -> Crew:
    """The team, checked that the providers and models of its roles exist. Empty: the project's default.

    Raises NotFound for unknown names, with the list, and BadInput for an invalid definition.
    """
    name = team or project.config.agents.team
    try:
        found = definitions(context, project).crew(name)
    except NotFound as unknown:
        if why := _not_yet(context, project, name):
            raise NotFound(why) from unknown
        raise
    for stage in found.stages:
        _refuse_missing(context, stage.role)
    return found


def _text(kind: DefinitionKind, name: str, content: bytes) -> DefinitionSource:
    text, path = content.decode("utf-8", "replace"), teams.repository_path(kind, name)
    return DefinitionSource(kind=kind, name=name, text=text, origin=Origin.REPOSITORY, file=path)


def _not_yet(context: Board, project: ProjectContext, team: str) -> str:
    """Why a team that is defined cannot be used yet; empty where it is not defined."""
    path = teams.repository_path(DefinitionKind.TEAM, team)
    if path in [one.file for one in untrusted(context, project)]:
        return f"The team {team} is defined in {path} alone, which you have not trusted: run `legion trust`."
    if path in [one.file for one in in_checkout(project)]:
        return f"The team {team} is defined in {path} of your checkout alone: commit it, and it counts once it landed."
    return ""


def of_ticket(context: Board, ticket: Ticket) -> Crew:
    """The ticket's crew, as it was at its dispatch."""
    with context.store.read() as tx:
        return crews.get(tx, ticket.spec.crew)


def advice_for_builder(tx: ReadTransaction, ticket: Ticket) -> tuple[Advice, ...]:
    """The advice for the current builder; after an escalation the newest advice of each role counts."""
    turn = turn_of(ladder.place(ticket))
    latest = {one.role: one for one in crews.advice_of(tx, ticket.id) if one.turn <= turn}
    return tuple(latest.values())


def at_turn(tx: ReadTransaction, ticket: Ticket, crew: Crew) -> TeamStage:
    """The stage that runs next: the first adviser whose advice is missing, else who makes the change."""
    turn = turn_of(ladder.place(ticket))
    given = [one.role for one in crews.advice_of(tx, ticket.id) if one.turn == turn] if crew.advisers else []
    resolver = crew.resolver if escalation.is_neutral(tx, ticket) else None
    return crew.missing_adviser(given) or resolver or crew.builder


def maker(context: Board, project: ProjectContext, ticket: Ticket) -> TeamStage:
    """Who makes the change: the ticket's builder, or after failed resolutions of a conflict a neutral hand."""
    crew = of_ticket(context, ticket)
    with context.store.read() as tx:
        if not escalation.is_neutral(tx, ticket):
            return crew.builder
    return crew.resolver or TeamStage(role=definitions(context, project).role(RESOLVER), part=RolePart.RESOLVE)


def messages_to_advisers(context: Board, ticket: Ticket) -> tuple[str, ...]:
    """A person's messages to the advisers, which the builder has not got."""
    with context.store.read() as tx:
        advisers = [run for run in runs.of_ticket(tx, ticket.id) if run.part is RolePart.ADVISE]
        ours = {
            help.message
            for helps in watchdog.interventions(tx, [run.id for run in advisers]).values()
            for help in helps
        }
    events = [event for run in advisers for event in read_journal(context.data.runs / run.name)]
    texts = [str(one.facts.get("text")) for one in events if one.kind == "told" and one.facts.get("id") not in ours]
    return tuple(
        text if len(text) <= _LONGEST_MESSAGE else f"{text[:_LONGEST_MESSAGE]}\n[... cut ...]" for text in texts
    )


def tools(stage: TeamStage, ticket: Ticket) -> frozenset[str] | None:
    """The tools that both its role and the ticket's dispatcher allow; None: all of the person's settings."""
    mine, given = stage.tools, ticket.spec.tools
    if given is None:
        return mine
    return frozenset(given) if mine is None else mine & frozenset(given)


def reviewer(context: Board, project: ProjectContext) -> TeamStage:
    """The reviewer that the project's policy adds, as it is defined now."""
    return definitions(context, project).reader(REVIEWER)


def _refuse_missing(context: Board, role: Role) -> None:
    known = model_access.known(context)
    if role.provider and role.provider not in known:
        there = ", ".join(known) or "none yet"
        raise BadInput(
            f"The role {role.name} in {role.file} names the provider {role.provider}, which you do not have "
            f"(there is {there}): `legion provider add {role.provider}` adds it."
        )
    wanted = context.user.claude.models
    if role.origin is Origin.REPOSITORY and role.model and wanted and not _among(role.model, wanted):
        raise BadInput(
            f"The role {role.name} in {role.file} names the model {role.model}, which is not among `claude.models` of "
            "your settings: a repository cannot widen them."
        )


def _among(model: str, wanted: tuple[str, ...]) -> bool:
    pattern = registry.default().model_pattern
    patterns = [pattern(one) for one in wanted]
    return pattern(model) in patterns or any(fnmatchcase(model, one) for one in patterns)
