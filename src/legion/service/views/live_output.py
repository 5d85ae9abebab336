"""Live output of all agents at work: one long poll for any number of them. Read only.

The daemon gets no signal when a program prints: its runner appends to a file. While a client waits, the sizes of those
files are compared several times a second; without a client nothing is read.
"""

from __future__ import annotations

import time
from codecs import getincrementaldecoder
from dataclasses import dataclass
from pathlib import Path

from legion.domain.runs import Run
from legion.jobs.board import Board
from legion.jobs.run.job import run_dir
from legion.runner.journal import read_tail
from legion.runner.spec import RunFolder
from legion.service.projects import registry
from legion.service.shared.commit_signal import CommitSignal
from legion.service.shared.fragments import usage_line
from legion.store.database.transactions import ReadTransaction
from legion.store.staff import agents
from legion.store.work import runs, usage
from legion.wire.history import FollowOutput, LiveOutput, OutputPiece, RunningLine

_LOOK = 0.2
"""Seconds between two looks at the sizes of the files."""
_START, _MOST = 4 << 10, 32 << 10
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
    offset = max(one.offset, size - _MOST) if one.offset is not None else max(0, size - _START)
    try:
        with one.output.open("rb") as file:
            file.seek(offset)
            content = file.read(_MOST)
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
