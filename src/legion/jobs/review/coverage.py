"""Determines which files of a change a reviewer has seen: those shown in full in its prompt, and those it opened.

The journal proves this only for a driver that can be limited to reading; otherwise the reviewer's own list counts.
"""

from __future__ import annotations

from collections.abc import Iterable

from legion.domain.agents.teams import READING
from legion.domain.review.verdicts import ReviewRequest
from legion.domain.runs import Run
from legion.jobs.board import Board
from legion.jobs.machine_runs import executor
from legion.jobs.review import prompt
from legion.jobs.trees import ProjectContext
from legion.runner.journal import JournalEvent, read_journal
from legion.runner.spec import read_spec
from legion.store.board import verdicts
from legion.store.work import runs

WHOLE_DIFF = ".legion-change.diff"
"""Holds the diff that does not fit into the prompt, in the reviewer's checkout, which is thrown away."""
_READ = "Read"


def files_opened(
    context: Board, project: ProjectContext, reading: ReviewRequest, this_run: Run
) -> frozenset[str] | None:
    """The files that it opened for this review; None where the journal cannot prove it."""
    spec = read_spec(context.data.runs / this_run.name)
    tools = spec.profile.tools(spec.options) if spec.profile.capabilities.reads_only else None
    if tools is None or _READ not in tools or not READING.issuperset(tools):
        return None
    with context.store.read() as tx:
        since = [run for run in runs.of_seat(tx, this_run) if run.started_at >= reading.asked_at]
    found: set[str] = set()
    for run in since:
        root = f"{executor.tree_path(context, project, run)}/"
        opened = _read_files(read_journal(context.data.runs / run.name))
        found.update(path.removeprefix(root).removeprefix("./") for path in opened)
    return frozenset(found)


def unseen(
    context: Board, project: ProjectContext, reading: ReviewRequest, this_run: Run, changed: Iterable[str]
) -> tuple[str, ...]:
    """Those of the changed files that were cut short in its prompt and that it never opened."""
    with context.store.read() as tx:
        earlier = verdicts.said_by(tx, reading.ticket, reading.reviewer)
    shown = project.hub.diff(earlier[-1].commit if earlier else reading.base, reading.commit)
    cut = frozenset(prompt.cut_short(shown))
    if not cut or (found := files_opened(context, project, reading, this_run)) is None or WHOLE_DIFF in found:
        return ()
    return tuple(path for path in changed if path in cut and _as_recorded(path) not in found)


def _read_files(events: Iterable[JournalEvent]) -> list[str]:
    """The inputs of all successful read calls."""
    asked: dict[object, str] = {}
    found = []
    for event in events:
        if event.kind == "called" and event.facts.get("tool") == _READ:
            asked[event.facts.get("call")] = str(event.facts.get("input"))
        elif event.kind == "returned" and event.facts.get("call") in asked and not event.facts.get("failed"):
            found.append(asked[event.facts.get("call")])
    return found


def _as_recorded(path: str) -> str:
    """A journal stores every input in one line."""
    return " ".join(path.split())
