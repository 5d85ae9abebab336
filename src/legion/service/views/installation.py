"""Read-only views of what a project has on this machine: its worktrees, and the settings in force."""

from __future__ import annotations

from legion.config.explain import explain
from legion.config.files.project import FILE
from legion.domain.runs import seated
from legion.jobs.trees import Trees
from legion.service.projects import registry
from legion.service.shared.fragments import shaped
from legion.store.board import tickets
from legion.system import trees
from legion.wire.projects import Config, SettingLine, WorktreeLine, WorktreeList


def worktrees(context: Trees, cwd: str) -> WorktreeList:
    record = registry.find(context, cwd)
    project = context.project_of(record)
    # Trees first: a ticket exists before its tree.
    found = project.worktrees.list()
    with context.store.read() as tx:
        live = {ticket.id for ticket in tickets.live(tx, project=record.id)}
    users = {tree.name: _live_ticket(tree.name, live) for tree in found}
    lines = [
        WorktreeLine(
            name=tree.name,
            path=str(tree.path),
            bytes=tree.bytes,
            ticket=users[tree.name],
            state="warm" if tree.in_pool else "in use" if users[tree.name] else "kept",
        )
        for tree in found
    ]
    return WorktreeList(root=record.worktrees, worktrees=lines, trash_bytes=trees.size(project.trash))


def config(context: Trees, cwd: str | None) -> Config:
    record = registry.find_or_none(context, cwd) if cwd else None
    if record is None:
        return Config(
            user_file=context.user.origin,
            complaint=context.settings.complaint,
            project_file="",
            settings=[shaped(SettingLine, row) for row in explain(None, "", context.user)],
            trusted=False,
        )
    project = context.project_of(record)
    origin = f"{FILE} of the {record.config_origin.value}"
    return Config(
        user_file=context.user.origin,
        complaint=context.settings.complaint,
        project_file=f"{record.root}/{FILE}",
        settings=[shaped(SettingLine, row) for row in explain(project.config, origin, context.user)],
        trusted=registry.is_trusted(context, record),
    )


def _live_ticket(seat: str, live: set[int]) -> int | None:
    """The live ticket whose agent or reviewer works in the tree of that seat."""
    found = seated(seat)
    return found[1] if found is not None and found[0] == "ticket" and found[1] in live else None
