"""The roles and teams that count for a project: shipped, the person's, and the trusted ones of its landed code."""

from __future__ import annotations

import functools
from fnmatch import fnmatchcase
from pathlib import Path

from legion.config import teams as files
from legion.config.teams import Definitions, Kind, Text
from legion.domain import ladder
from legion.domain.errors import BadInput, NotFound
from legion.domain.teams import REVIEWER, Advice, Crew, Origin, Part, Role, Stage, turn_of
from legion.domain.tickets import Ticket
from legion.git.hub import Hub
from legion.jobs import access, claude
from legion.jobs.world import Workshop, World
from legion.runner.journal import read_journal
from legion.store import advice, crews, liveness, projects, runs
from legion.store.database import ReadTransaction

_MOST_FILES = 100
_LARGEST = 1 << 17
"""Bytes; what is larger makes no sense as a definition, and says so when it is used."""
_LONGEST_TOLD = 8000
"""Characters of a message to an adviser that whoever builds hears, too."""


def definitions(world: World, shop: Workshop | None, without: tuple[Kind, str] | None = None) -> Definitions:
    """Outside a project there are only the shipped ones and the person's; `without` as if one had not been written."""
    if shop is None:
        return files.definitions(without=without)
    theirs = repository(shop)
    with world.store.read() as tx:
        trusted = [one for one in theirs if projects.is_trusted(tx, shop.project.id, one.hash)]
    return files.definitions(trusted, without)


def untrusted(world: World, shop: Workshop) -> tuple[Text, ...]:
    """Those of the landed code that count for nothing yet."""
    theirs = repository(shop)
    with world.store.read() as tx:
        return tuple(one for one in theirs if not projects.is_trusted(tx, shop.project.id, one.hash))


def repository(shop: Workshop) -> tuple[Text, ...]:
    """Whatever the landed code defines, trusted or not. What lies in a worktree or a checkout counts for nothing."""
    found = _defined(shop.hub.path, shop.project.target or shop.target)
    if len(found) > _MOST_FILES:
        raise BadInput(f"{files.REPOSITORY} of {shop.project.name} has more than {_MOST_FILES} files: remove some.")
    return found


@functools.lru_cache(maxsize=64)
def _defined(git_dir: Path, commit: str) -> tuple[Text, ...]:
    """Up to one more than there may be. A commit never changes, and every ticket asks for it several times."""
    hub = Hub(git_dir)
    found = [(path, named) for path in hub.files_in(commit, files.REPOSITORY) if (named := files.repository_name(path))]
    contents = [(named, hub.read_file(commit, path)) for path, named in found[: _MOST_FILES + 1]]
    return tuple(_text(kind, name, content) for (kind, name), content in contents if content is not None)


def in_checkout(shop: Workshop) -> tuple[Text, ...]:
    """What the person's own folder defines: it may be trusted before it lands."""
    root = Path(shop.project.root)
    found = [
        (kind, path)
        for kind in Kind
        for path in sorted((root / files.REPOSITORY / kind.folder).glob("*.toml"))[:_MOST_FILES]
        if path.is_file() and not path.is_symlink() and path.stat().st_size <= _LARGEST
    ]
    return tuple(_text(kind, path.stem, path.read_bytes()) for kind, path in found)


def crew(world: World, shop: Workshop, team: str) -> Crew:
    """The team with all that its roles need in place. Empty: the project's default.

    Raises NotFound for unknown names, with the list, and BadInput where something of it makes no sense.
    """
    name = team or shop.config.agents.team
    try:
        found = definitions(world, shop).crew(name)
    except NotFound as unknown:
        if why := _not_yet(world, shop, name):
            raise NotFound(why) from unknown
        raise
    for stage in found.stages:
        _refuse_missing(world, stage.role)
    return found


def _text(kind: Kind, name: str, content: bytes) -> Text:
    words, path = content.decode("utf-8", "replace"), files.repository_path(kind, name)
    return Text(kind=kind, name=name, text=words, origin=Origin.REPOSITORY, file=path)


def _not_yet(world: World, shop: Workshop, team: str) -> str:
    """Why a team that somebody wrote does not count; empty where nobody did."""
    path = files.repository_path(Kind.TEAM, team)
    if path in [one.file for one in untrusted(world, shop)]:
        return f"The team {team} is defined in {path} alone, which you have not trusted: run `legion trust`."
    if path in [one.file for one in in_checkout(shop)]:
        return f"The team {team} is defined in {path} of your checkout alone: commit it, and it counts once it landed."
    return ""


def of_ticket(world: World, ticket: Ticket) -> Crew:
    """Who works on it, as it was at its dispatch."""
    with world.store.read() as tx:
        return crews.get(tx, ticket.wish.crew)


def advised(tx: ReadTransaction, ticket: Ticket) -> tuple[Advice, ...]:
    """What was said to whoever builds now; that for fresh eyes replaces what the same role said before."""
    turn = turn_of(ladder.place(ticket))
    latest = {one.role: one for one in advice.of_ticket(tx, ticket.id) if one.turn <= turn}
    return tuple(latest.values())


def at_turn(tx: ReadTransaction, ticket: Ticket, crew: Crew) -> Stage:
    """Whose run comes next: the first whose advice is missing, else who builds."""
    if not crew.advisers:
        return crew.builder
    turn = turn_of(ladder.place(ticket))
    said = [one.role for one in advice.of_ticket(tx, ticket.id) if one.turn == turn]
    return crew.missing_adviser(said) or crew.builder


def told(world: World, ticket: Ticket) -> tuple[str, ...]:
    """What a person said to those who advised: they heard it, and whoever builds has not."""
    with world.store.read() as tx:
        advisers = [run for run in runs.of_ticket(tx, ticket.id) if run.part is Part.ADVISE]
        ours = {help.message for helps in liveness.helps(tx, [run.id for run in advisers]).values() for help in helps}
    events = [event for run in advisers for event in read_journal(world.data.runs / run.name)]
    words = [str(one.facts.get("text")) for one in events if one.kind == "told" and one.facts.get("id") not in ours]
    return tuple(text if len(text) <= _LONGEST_TOLD else f"{text[:_LONGEST_TOLD]}\n[... cut ...]" for text in words)


def tools(stage: Stage, ticket: Ticket) -> frozenset[str] | None:
    """What its role and whoever dispatched the ticket both leave; None: all that the person's settings give."""
    mine, given = stage.tools, ticket.wish.tools
    if given is None:
        return mine
    return frozenset(given) if mine is None else mine & frozenset(given)


def reviewer(world: World, shop: Workshop) -> Stage:
    """Whom the project's policy adds, as it is defined now."""
    return definitions(world, shop).reader(REVIEWER)


def _refuse_missing(world: World, role: Role) -> None:
    known = access.known(world)
    if role.provider and role.provider not in known:
        there = ", ".join(known) or "none yet"
        raise BadInput(
            f"The role {role.name} in {role.file} names the provider {role.provider}, which you do not have "
            f"(there is {there}): `legion provider add {role.provider}` adds it."
        )
    wanted = world.user.claude.models
    if role.origin is Origin.REPOSITORY and role.model and wanted and not _among(role.model, wanted):
        raise BadInput(
            f"The role {role.name} in {role.file} names the model {role.model}, which is not among `claude.models` of "
            "your settings: a repository cannot widen them."
        )


def _among(model: str, wanted: tuple[str, ...]) -> bool:
    patterns = [claude.pattern(one) for one in wanted]
    return claude.pattern(model) in patterns or any(fnmatchcase(model, one) for one in patterns)
