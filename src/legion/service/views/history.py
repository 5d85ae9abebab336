"""What happened: the daemon's events and, for a ticket, the journals of its runs between them. Read only."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from legion.domain.errors import BadInput, NotFound
from legion.domain.events import Event, EventKind
from legion.domain.rules import WORDS, decided_by
from legion.domain.runs import Run
from legion.jobs.context import Context
from legion.jobs.workspace import rewind_points
from legion.runner.journal import JournalEvent, read_journal
from legion.service.projects import registry as project_cases
from legion.store import events
from legion.store.board import projects, tickets
from legion.store.work import runs
from legion.wire.history import Events, HistoryLine
from legion.wire.words import clash, clashing

_MOST = 20_000
_LONGEST = 200
_OF_ALL = (EventKind.PACE,)
"""What concerns every project: its account is at a limit."""
_WHY = {rule.value: words for rule, words in WORDS.items()}
_CURSOR = re.compile(r"(\d{1,18}):(\d{1,18}):(\d{1,18})")


@dataclass(frozen=True)
class _Cursor:
    """Up to where somebody has read: events, and the journal of the latest run."""

    event: int = 0
    run: int = 0
    line: int = 0

    @staticmethod
    def read(text: str) -> _Cursor:
        found = _CURSOR.fullmatch(text)
        if text and found is None:
            raise BadInput(f"{text[:40]!r} is no place in the events: use the `cursor` of an earlier answer.")
        return _Cursor(*(int(part) for part in found.groups())) if found else _Cursor()

    def __str__(self) -> str:
        return f"{self.event}:{self.run}:{self.line}"


def history(context: Context, cwd: str | None, ticket: int | None, run: int | None, after: str, last: int) -> Events:
    """Of a ticket, of one run, or of a project; of all projects where the folder belongs to none."""
    cursor = _Cursor.read(after)
    here = project_cases.find_or_none(context, cwd) if cwd and ticket is None and run is None else None
    project = here.id if here else None
    with context.store.read() as tx:
        known = {one.id: one.name for one in projects.all(tx)}
        newest = events.last(tx)
        mine: tuple[Run, ...] = ()
        if ticket is not None:
            tickets.get(tx, ticket)
            mine = _runs(runs.of_ticket(tx, ticket), ticket, run)
        elif run is not None:
            # A ticket's, or a turn of a standing agent.
            mine = (runs.get(tx, run),)
            project, ticket = mine[0].project, mine[0].ticket
        found = events.newest(
            tx, after=cursor.event, project=project, ticket=ticket, limit=_MOST, beside=_OF_ALL if run is None else ()
        )
    lines = [_event(event, known) for event in found if run is None or event.data.get("run") == run]
    at = _Cursor(event=newest, run=cursor.run, line=cursor.line)
    for one in mine:
        if one.id >= cursor.run:
            there = _moments(context, one)
            journal = read_journal(context.data.runs / one.name, after=cursor.line if one.id == cursor.run else 0)
            lines += [_journal(entry, one, there) for entry in journal]
            at = _Cursor(event=newest, run=one.id, line=journal[-1].number if journal else _line(cursor, one))
    lines.sort(key=lambda line: line.at)
    shown = lines[-last:] if last else lines
    return Events(lines=shown, omitted=len(lines) - len(shown), cursor=str(at))


def _line(cursor: _Cursor, run: Run) -> int:
    return cursor.line if run.id == cursor.run else 0


def _runs(known: tuple[Run, ...], ticket: int, wanted: int | None) -> tuple[Run, ...]:
    if wanted is None:
        return known
    found = tuple(one for one in known if one.id == wanted)
    if not found:
        raise NotFound(f"Ticket {ticket} has no run {wanted}: see `legion ticket {ticket}`.")
    return found


def _event(event: Event, names: Mapping[int, str]) -> HistoryLine:
    rule = decided_by(event)
    run = event.data.get("run")
    return HistoryLine(
        at=event.at,
        source="event",
        n=event.n,
        kind=event.kind.value,
        project=names.get(event.project) if event.project is not None else None,
        ticket=event.ticket,
        run=run if isinstance(run, int) else None,
        words=said(event),
        rule=rule,
        why=_WHY.get(rule, ""),
        data=dict(event.data),
        # What a run of a ticket left is saved at its end.
        rewind=str(run)
        if event.kind is EventKind.RUN_ENDED and event.ticket is not None and event.data.get("saved")
        else "",
    )


def _moments(context: Context, run: Run) -> frozenset[int]:
    """Lines of its journal that the ticket can go back to."""
    return frozenset(one.line for one in rewind_points.moments(context, context.workshop(run.project), run))


def _journal(entry: JournalEvent, run: Run, moments: frozenset[int]) -> HistoryLine:
    return HistoryLine(
        at=entry.time,
        source="run",
        n=entry.number,
        kind=entry.kind,
        project=None,
        ticket=run.ticket,
        run=run.id,
        words=_short(f"{entry.kind} {_facts(entry.facts)}"),
        rule="",
        why="",
        data=dict(entry.facts),
        rewind=f"{run.id}:{entry.number}" if entry.number in moments else "",
    )


def said(event: Event) -> str:
    """The event in one line."""
    data = event.data

    def told(*names: str) -> str:
        return ", ".join(str(data[name]) for name in names if data.get(name))

    match event.kind:
        case EventKind.PROJECT_ADDED:
            at = f"ready at {told('target')[:9]}" if data.get("target") else f"on branch {told('branch')}"
            words = f"{told('root')} is a project, {at}"
        case EventKind.PROJECT_TRUSTED:
            words = f"the text {told('hash')[:12]} is trusted"
        case EventKind.COLLECTED:
            moved = data.get("old") != data.get("new")
            words = f"your branch went from {told('old')[:9]} to {told('new')[:9]}" if moved else "nothing was new"
        case EventKind.WARNING:
            words = f"{told('job')}: {told('why')}" if data.get("why") else _facts(data)
        case EventKind.CLASH_SEEN:
            words = f"will conflict with {clash(data)}"
        case EventKind.CLASH_GONE:
            words = f"will not conflict with {clashing(data)} any more"
        case EventKind.TICKET_CREATED:
            words = f"asked for: {told('title')}"
        case EventKind.TICKET_MOVED:
            reason = f": {told('reason')}" if data.get("reason") else ""
            words = f"{told('from')} -> {told('to')}, attempt {data.get('attempt', 0)}{reason}"
        case EventKind.RUN_STARTED:
            whose = f"attempt {told('attempt')}" if data.get("attempt") else f"a turn of {told('name')}"
            words = ", ".join(filter(None, (f"run {told('run')} starts", whose, told("role"))))
        case EventKind.RUN_ENDED:
            words = f"run {told('run')} ended: {told('outcome', 'detail')}"
        case EventKind.REVIEW_ASKED:
            words = f"{told('reader')} is to read {told('commit')[:9]}: {told('why')}"
        case EventKind.REVIEW_GIVEN:
            words = f"{told('reader')} on {told('commit')[:9]}, {told('verdict')}: {told('summary', 'why')}"
        case EventKind.REWOUND:
            words = f"goes back to {told('moment')}; `--to {told('run')}` is what it had"
        case EventKind.REBUILT:
            words = f"the board came back from the hub, as it was at event {told('event')}"
        case EventKind.RECEIPT:
            words = f"check {told('name')} is {told('verdict')} after {data.get('duration', 0):.1f} s"
        case EventKind.LANDED:
            words = f"landed as {told('commit')[:9]}, tested with {told('tested')[:9]}"
        case EventKind.BATCH:
            words = _tries(data)
        case EventKind.BATCH_SIZE:
            words = f"{told('why')}: the next batch may hold {_count(data.get('to'), 'change')}, not {told('from')}"
        case EventKind.LEFT_BEHIND:
            words = f"{told('why')}: it is at {told('target')[:9]}"
        case EventKind.BROUGHT_BACK:
            words = f"in the target again, which is at {told('target')[:9]}"
        case EventKind.PACE:
            why = f": {told('why')}" if data.get("why") else ""
            words = f"{told('provider')} was {told('from')} and is {told('to')}{why}"
        case EventKind.SENT_BACK:
            words = f"sent back: {told('why')}"
        case EventKind.TARGET_MOVED:
            words = f"the target is at {told('commit')[:9]} ({_numbers(data.get('tickets'))})"
        case EventKind.PERSON_SEEN:
            left = f" and left {told('left')[:9]}, which the hub keeps" if data.get("left") else ""
            words = f"your branch is at {told('tip')[:9]}{left}"
        case EventKind.ABSORBED:
            words = f"the target holds your {told('tip')[:9]}"
        case _:
            words = _facts({name: value for name, value in data.items() if name != "rule"})
    return _short(words)


def _numbers(ids: object) -> str:
    listed = [f"#{id}" for id in ids] if isinstance(ids, Iterable) else []
    return ", ".join(listed) or "your own commits"


def _tries(data: Mapping[str, object]) -> str:
    ids, lines, more = data.get("tickets"), data.get("lines"), data.get("waiting")
    if not isinstance(ids, list) or not isinstance(lines, list):
        return ""
    overdue = data.get("overdue")
    passed = overdue if isinstance(overdue, list) else []
    sizes = [
        f"{_count(many, 'line')}{', passed by' if id in passed else ''}" for id, many in zip(ids, lines, strict=False)
    ]
    listed = ", ".join(f"#{id} ({size})" for id, size in zip(ids, sizes, strict=False))
    return f"tries {listed}{' together' if len(ids) > 1 else ''}{f'; {more} more wait' if more else ''}"


def _count(many: object, thing: str) -> str:
    return f"{many} {thing}" if many == 1 else f"{many} {thing}s"


def _facts(facts: Mapping[str, object]) -> str:
    return " ".join(
        value if isinstance(value, str) else f"{name}={json.dumps(value, default=str)}"
        for name, value in facts.items()
        if value not in (None, "", [], {})
    )


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
