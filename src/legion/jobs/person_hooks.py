"""Runs the person's blocking hooks: outside every sandbox, only for a trusted project, for a limited time."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from legion.domain.checks import HookKind, HookResult, judge
from legion.domain.events import EventKind
from legion.domain.projects import Project
from legion.domain.rules import Rule
from legion.domain.tickets.ticket import Ticket
from legion.jobs.board import Board
from legion.jobs.trees import Trees
from legion.store.board import projects
from legion.system import process
from legion.system.process import ProgramMissing

_LONGEST = 4000
"""Characters of a hook's text that an agent gets."""


def is_set(context: Board, kind: HookKind) -> bool:
    return bool(getattr(context.user.hooks, kind.value))


def refusal(context: Trees, project: Project, kind: HookKind, facts: Mapping[str, object]) -> str | None:
    """The text of a hook that sends the work back; None where there is no hook or it lets the work pass."""
    argv: tuple[str, ...] = getattr(context.user.hooks, kind.value)
    if not argv:
        return None
    with context.store.read() as tx:
        if not projects.is_trusted(tx, project.id, project.config_hash):
            return None
    result = _run(context, project, kind, argv, facts)
    if result.trouble:
        ticket = facts.get("task_id")
        number = int(str(ticket)) if ticket else None
        with context.store.write() as tx:
            why = f"{kind.value} decided nothing: {result.trouble}"
            data = {"job": "your hook", "why": why, "rule": Rule.PERSON_HOOK.value}
            tx.record(EventKind.WARNING, project=project.id, ticket=number, data=data)
    return result.text[:_LONGEST] if result.blocks else None


def ticket_facts(ticket: Ticket) -> dict[str, object]:
    """A ticket under the names that hooks of Claude Code's teams read."""
    change = {"commit": ticket.change.commit, "base": ticket.change.base} if ticket.change is not None else {}
    return {
        "task_id": str(ticket.id),
        "task_subject": ticket.spec.title,
        "task_description": ticket.spec.text,
        "teammate_name": f"ticket-{ticket.id}",
        **change,
    }


def _run(
    context: Trees, project: Project, kind: HookKind, argv: tuple[str, ...], facts: Mapping[str, object]
) -> HookResult:
    root, seconds = Path(project.root), context.user.hooks.timeout
    given = {"hook_event_name": kind.event, "cwd": project.root, "team_name": project.name, **facts}
    variables = {
        "LEGION_EVENT": kind.value,
        "LEGION_PROJECT": project.name,
        "LEGION_TICKET": str(facts.get("task_id", "")),
        "LEGION_TITLE": str(facts.get("task_subject", "")),
        "LEGION_COMMIT": str(facts.get("commit", "")),
        "LEGION_HUB": str(context.hub(project.id).path),
    }
    try:
        ended = process.run(
            argv,
            cwd=root if root.is_dir() else Path.home(),
            env={**os.environ, **variables},
            stdin=json.dumps(given).encode(),
            timeout=seconds,
            lingers=True,
        )
    except (ProgramMissing, OSError) as missing:
        return HookResult(trouble=f"it could not be started: {missing}")
    stderr = ended.stderr.decode("utf-8", "replace")
    return judge(ended.code, stderr=stderr, timed_out=ended.timed_out, seconds=seconds)
