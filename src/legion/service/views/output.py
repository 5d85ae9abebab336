"""The output and changes of agents, also while they work: `legion log`, `legion diff`, and one long poll for many.

The daemon gets no signal when a program prints: its runner appends to a file. While a client waits, the sizes of those
files are compared several times a second; without a client nothing is read.
"""

from __future__ import annotations

import time
from codecs import getincrementaldecoder
from dataclasses import dataclass
from pathlib import Path

from legion.domain.errors import NotFound
from legion.domain.review import diffs
from legion.domain.review.additions import hidden_characters
from legion.domain.runs import Run, moment
from legion.domain.tickets.ticket import State, Ticket
from legion.git.trees.snapshots import look
from legion.jobs.board import Board
from legion.jobs.machine_runs import remote
from legion.jobs.run.job import run_dir
from legion.jobs.trees import ProjectContext, Trees
from legion.jobs.workspace import rewind_points
from legion.jobs.workspace.sandbox import live_tree
from legion.jobs.workspace.save import worktree_name
from legion.runner.journal import read_tail
from legion.runner.spec import RunFolder
from legion.service.projects import registry
from legion.service.shared.commit_signal import CommitSignal
from legion.service.shared.fragments import shaped, usage_line
from legion.store.board import tickets
from legion.store.database.transactions import ReadTransaction
from legion.store.staff import agents
from legion.store.work import runs, usage
from legion.system import files
from legion.wire.history import FollowOutput, LiveOutput, OutputPiece, RunningLine
from legion.wire.ticket_pages import Diff, HiddenCharacterLine, LogText

_MOST = 512 * 1024
_END = 16 * 1024
_PATIENCE = 60.0
"""Seconds for one reading of a tree."""


def log(context: Board, ticket_id: int, run_id: int | None, offset: int) -> LogText:
    """A part of the output of one run, by default the latest."""
    with context.store.read() as tx:
        ticket = tickets.get(tx, ticket_id)
        all_runs = runs.of_ticket(tx, ticket_id)
    if run_id is None:
        run = all_runs[-1] if all_runs else None
    else:
        run = next((run for run in all_runs if run.id == run_id), None)
        if run is None:
            raise NotFound(f"Ticket {ticket_id} has no run {run_id}: see `legion ticket {ticket_id}`.")
    if run is None:
        return LogText(ticket=ticket_id, run=None, offset=0, next_offset=0, text="", ended=ticket.ended)
    try:
        with RunFolder(run_dir(context, run)).output.open("rb") as file:
            file.seek(offset)
            piece = file.read(_MOST)
            more = bool(file.read(1))
    except FileNotFoundError:
        piece, more = b"", False
    if more:
        piece = piece[: piece.rfind(b"\n") + 1] or piece
    ended = run.ended_at is not None and not more
    # The last character may be incomplete: then the next piece starts with it.
    decoder = getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(piece, final=ended)
    half, _ = decoder.getstate()
    return LogText(
        ticket=ticket_id, run=run.id, offset=offset, next_offset=offset + len(piece) - len(half), text=text, ended=ended
    )


def end_of_log(context: Board, ticket_id: int, lines: int) -> list[str]:
    """The last lines of the latest run."""
    with context.store.read() as tx:
        run = runs.latest(tx, ticket_id)
    if run is None:
        return []
    return files.end(RunFolder(run_dir(context, run)).output, _END).decode("utf-8", "replace").splitlines()[-lines:]


def diff(context: Trees, ticket_id: int, since: str = "") -> Diff:
    """The proposed change of the ticket, or the present tree of its running agent; since a moment of it, if given."""
    with context.store.read() as tx:
        ticket = tickets.get(tx, ticket_id)
    project = context.project(ticket.project)
    if project.record.removed_at is not None:
        raise NotFound(f"The project of ticket {ticket_id} was removed, and its changes with it.")
    start = rewind_points.tree_at(context, project, ticket, moment(since)) if since else ""
    as_of = None
    if ticket.change is not None:
        base, head = start or ticket.change.base, ticket.change.commit
        text, live = project.hub.diff(base, head), False
    elif (elsewhere := _run_elsewhere(context, ticket)) is not None:
        head, as_of = _arrived_tree(context, ticket, elsewhere)
        base = start or ticket.base or ""
        text, live = project.hub.diff(base, head), True
    else:
        base, head, text = _current(context, project, ticket, start)
        live = ticket.state is State.WORKING
    hidden = [shaped(HiddenCharacterLine, one) for one in hidden_characters(diffs.read(text))]
    return Diff(ticket=ticket_id, base=base, head=head, text=text, live=live, as_of=as_of, hidden_characters=hidden)


def _run_elsewhere(context: Board, ticket: Ticket) -> Run | None:
    """The run of its agent on a machine, where the tree is."""
    with context.store.read() as tx:
        last = runs.latest(tx, ticket.id)
    return last if last is not None and last.machine not in ("", context.machine) and last.ended_at is None else None


def _arrived_tree(context: Board, ticket: Ticket, run: Run) -> tuple[str, float]:
    found = remote.last_snapshot(context, run)
    if found is None:
        raise NotFound(
            f"Ticket {ticket.id} works on machine {run.machine}, and nothing of its tree has arrived yet: it is sent "
            "about every two minutes."
        )
    return found


def _current(context: Trees, project: ProjectContext, ticket: Ticket, start: str) -> tuple[str, str, str]:
    """Start, end and difference. Nothing of the tree goes into the hub: its agent may be writing there."""
    tree = project.worktrees.path(worktree_name(ticket.id))
    if ticket.spec.checkpoint:
        raise NotFound(f"Ticket {ticket.id} is a checkpoint, which changes nothing: see `legion ticket {ticket.id}`.")
    if ticket.base is None or not tree.exists():
        raise NotFound(f"Ticket {ticket.id} has changed nothing yet: it is {ticket.state.value}.")
    index = project.folder / "looks" / worktree_name(ticket.id)
    live = live_tree(context, project, tree)
    with look(live, index, parent=ticket.base, timeout=_PATIENCE, durable=False) as seen:
        base = start or ticket.base
        return base, seen.tree, seen.place.history.diff(base, seen.tree)


_LOOK = 0.2
"""Seconds between two looks at the sizes of the files."""
_LIVE_START, _LIVE_MOST = 4 << 10, 32 << 10
"""Bytes of a run that the caller has not read yet, and of one that it follows."""
_JOURNAL_END = 4 << 10
_LONGEST_ACTIVITY = 200


@dataclass(frozen=True)
class _FollowedRun:
    run: Run
    output: Path
    offset: int | None
    """How far the caller has read; None for a run that is new to it."""

    @property
    def size(self) -> int:
        try:
            return self.output.stat().st_size
        except FileNotFoundError:
            return 0

    @property
    def has_news(self) -> bool:
        return self.offset is not None and self.size > self.offset


def follow(context: Board, news: CommitSignal, wanted: FollowOutput, timeout: float) -> LiveOutput:
    """Return when a run has printed, started or ended, when the time is up, or when the daemon ends."""
    project = registry.find(context, wanted.cwd).id if wanted.cwd else None
    deadline = time.monotonic() + timeout
    while True:
        event = news.last()
        followed = _followed(context, project, wanted)
        known = {str(one.run.id) for one in followed} == set(wanted.seen)
        is_over = news.is_closed or time.monotonic() >= deadline
        if not known or any(one.has_news for one in followed) or is_over:
            return _answer(context, followed)
        while not any(one.has_news for one in followed) and time.monotonic() < deadline and not news.is_closed:
            if news.wait(event, min(_LOOK, max(0.0, deadline - time.monotonic()))):
                break


def _followed(context: Board, project: int | None, wanted: FollowOutput) -> list[_FollowedRun]:
    with context.store.read() as tx:
        active = [
            run for run in runs.active(tx) if project in (None, run.project) and wanted.ticket in (None, run.ticket)
        ]
    return [_FollowedRun(run, RunFolder(run_dir(context, run)).output, wanted.seen.get(str(run.id))) for run in active]


def _answer(context: Board, followed: list[_FollowedRun]) -> LiveOutput:
    with context.store.read() as tx:
        running = _running(context, tx, [one.run for one in followed])
    pieces = [_piece(one) for one in followed if one.has_news or one.offset is None]
    return LiveOutput(running=running, pieces=pieces)


def _running(context: Board, tx: ReadTransaction, active: list[Run]) -> list[RunningLine]:
    names = agents.names(tx)
    spent = usage.of_runs(tx, [run.id for run in active])
    lines = []
    for run in active:
        agent = "" if run.agent is None else run.conversation
        activity, at = _activity(run_dir(context, run))
        line = RunningLine(
            run=run.id,
            ticket=run.ticket,
            agent=agent,
            name=names.get(agent, "") if agent else run.role,
            started_at=run.started_at,
            activity=activity,
            activity_at=at,
            usage=usage_line(spent.get(run.id)),
        )
        lines.append(line)
    return lines


def _activity(folder: Path) -> tuple[str, float | None]:
    """The last tool that the run's program called, and when."""
    for event in reversed(read_tail(folder, _JOURNAL_END)):
        if event.kind == "called":
            words = f"{event.facts.get('tool', '')} {event.facts.get('input', '')}"
            return " ".join(words.split())[:_LONGEST_ACTIVITY], event.time
    return "", None


def _piece(one: _FollowedRun) -> OutputPiece:
    size = one.size
    offset = max(one.offset, size - _LIVE_MOST) if one.offset is not None else max(0, size - _LIVE_START)
    try:
        with one.output.open("rb") as file:
            file.seek(offset)
            content = file.read(_LIVE_MOST)
    except FileNotFoundError:
        content = b""
    if offset and offset != one.offset:
        # Text that starts in the middle of a line, or of a character, starts with the next line.
        first = content.find(b"\n") + 1
        offset, content = offset + first, content[first:]
    # The last character may be incomplete: then the next piece starts with it.
    decoder = getincrementaldecoder("utf-8")("replace")
    text = decoder.decode(content)
    half, _ = decoder.getstate()
    return OutputPiece(run=one.run.id, offset=offset, next_offset=offset + len(content) - len(half), text=text)
