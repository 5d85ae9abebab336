"""Projects that a project depends on: tickets there that block new ones here, and read-only repositories for agents.

An agent gets one bare repository per such project, made of references alone: `landed` is the target there, `ticket-N` a
change that has not landed, `epic-NAME` the branch of an epic. The objects stay in that project's hubs, which its
sandbox shows read-only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from legion.domain.projects import EPIC_SESSION, Project, is_session_of_epic
from legion.domain.tickets.ticket import State, Ticket
from legion.jobs.trees import ProjectContext, Trees
from legion.store.board import projects, tickets
from legion.store.database.transactions import ReadTransaction

VARIABLE = "LEGION_PROJECTS"
FOLDER = "projects"
_CONFIG = "[core]\n\trepositoryformatversion = {version}\n\tbare = true\n{extension}"
_SHA256 = "[extensions]\n\tobjectformat = sha256\n"
_SHA1_LENGTH = 40


@dataclass(frozen=True, kw_only=True)
class LinkedTickets:
    project: str
    open: tuple[Ticket, ...]


def found(tx: ReadTransaction, record: Project, names: Sequence[str]) -> dict[str, Project]:
    """By name: the default session of each project that is there. A project does not depend on itself."""
    there = [one for one in projects.all(tx) if one.target and not one.session]
    return {one.name: one for one in there if one.name in names and one.common_dir != record.common_dir}


def sessions_of_epics(tx: ReadTransaction, linked: Project) -> tuple[Project, ...]:
    """The open sessions of a linked project that are branches of epics."""
    there = projects.sessions_of(tx, linked.common_dir)
    return tuple(one for one in there if one.target and one.session.startswith(EPIC_SESSION))


def open_tickets(tx: ReadTransaction, record: Project, names: Sequence[str], epic: str) -> list[LinkedTickets]:
    """Those of the linked projects that a new ticket comes after; on the branch of an epic only those of its own."""
    linked = []
    for one in found(tx, record, names).values():
        live = list(tickets.live(tx, project=one.id))
        for session in sessions_of_epics(tx, one) if epic else ():
            live += [ticket for ticket in tickets.live(tx, project=session.id) if ticket.spec.epic == epic]
        linked.append(LinkedTickets(project=one.name, open=tuple(live)))
    return linked


def unlanded_epic(tx: ReadTransaction, record: Project, names: Sequence[str], epic: str) -> str:
    """The first of these projects in which the epic has not landed: a ticket of it is not done, or it has a branch."""
    for one in found(tx, record, names).values():
        own = any(is_session_of_epic(session.session, epic) for session in sessions_of_epics(tx, one))
        if own or any(ticket.state is not State.DONE for ticket in tickets.of_epic(tx, one.id, epic)):
            return one.name
    return ""


def write(context: Trees, project: ProjectContext, given: Path) -> tuple[Path, ...]:
    """Write the repositories below `given`. Returns the folders of objects that the sandbox has to show."""
    names = project.config.project.depends_on
    if not names:
        return ()
    with context.store.read() as tx:
        there = found(tx, project.record, names)
        sessions = {name: sessions_of_epics(tx, one) for name, one in there.items()}
        changes = {
            name: [live for part in (one, *sessions[name]) for live in tickets.live(tx, project=part.id)]
            for name, one in there.items()
        }
    shown: list[Path] = []
    for name, one in there.items():
        branches = {"landed": context.project_of(one).target}
        branches |= {session.session: session.target for session in sessions[name]}
        branches |= {f"ticket-{live.id}": live.change.commit for live in changes[name] if live.change is not None}
        objects = [context.project_of(part).hub.objects for part in (one, *sessions[name])]
        _write_repository(given / FOLDER / name, objects, branches)
        shown += objects
    return tuple(shown)


def _write_repository(folder: Path, objects: Sequence[Path], branches: dict[str, str]) -> None:
    heads = folder / "refs" / "heads"
    heads.mkdir(parents=True, exist_ok=True)
    (folder / "objects" / "info").mkdir(parents=True, exist_ok=True)
    (folder / "objects" / "info" / "alternates").write_text("".join(f"{place}\n" for place in objects))
    long = len(branches["landed"]) > _SHA1_LENGTH
    (folder / "config").write_text(_CONFIG.format(version=int(long), extension=_SHA256 if long else ""))
    (folder / "HEAD").write_text("ref: refs/heads/landed\n")
    for stale in heads.iterdir():
        if stale.name not in branches:
            stale.unlink()
    for name, commit in branches.items():
        (heads / name).write_text(f"{commit}\n")
