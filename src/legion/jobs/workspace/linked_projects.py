"""Projects that a project depends on: tickets there that block new ones here, and read-only repositories for agents.

An agent gets one bare repository per such project, made of references alone: `landed` is the target there, `ticket-N` a
change that has not landed. The objects stay in that project's hub, which its sandbox shows read-only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from legion.domain.projects import Project
from legion.domain.tickets.ticket import Ticket
from legion.jobs.context import Context, ProjectContext
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


def open_tickets(tx: ReadTransaction, record: Project, names: Sequence[str]) -> list[LinkedTickets]:
    return [
        LinkedTickets(project=one.name, open=tickets.live(tx, project=one.id))
        for one in found(tx, record, names).values()
    ]


def write(context: Context, project: ProjectContext, given: Path) -> tuple[Path, ...]:
    """Write the repositories below `given`. Returns the folders of objects that the sandbox has to show."""
    names = project.config.project.depends_on
    if not names:
        return ()
    with context.store.read() as tx:
        there = found(tx, project.record, names)
        changes = {name: tickets.live(tx, project=one.id) for name, one in there.items()}
    shown = []
    for name, one in there.items():
        other = context.project_of(one)
        branches = {"landed": other.target}
        branches |= {f"ticket-{live.id}": live.change.commit for live in changes[name] if live.change is not None}
        _write_repository(given / FOLDER / name, other.hub.objects, branches)
        shown.append(other.hub.objects)
    return tuple(shown)


def _write_repository(folder: Path, objects: Path, branches: dict[str, str]) -> None:
    heads = folder / "refs" / "heads"
    heads.mkdir(parents=True, exist_ok=True)
    (folder / "objects" / "info").mkdir(parents=True, exist_ok=True)
    (folder / "objects" / "info" / "alternates").write_text(f"{objects}\n")
    long = len(branches["landed"]) > _SHA1_LENGTH
    (folder / "config").write_text(_CONFIG.format(version=int(long), extension=_SHA256 if long else ""))
    (folder / "HEAD").write_text("ref: refs/heads/landed\n")
    for stale in heads.iterdir():
        if stale.name not in branches:
            stale.unlink()
    for name, commit in branches.items():
        (heads / name).write_text(f"{commit}\n")
