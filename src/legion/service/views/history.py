"""The log of `legion status events`: the daemon's events merged with the journals of a ticket's runs. Read only."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from legion.domain.errors import BadInput, NotFound
from legion.domain.events import RENAMED, Event, EventKind
from legion.domain.rules import WORDS, decided_by
from legion.domain.runs import Run
from legion.jobs.trees import Trees
from legion.jobs.workspace import rewind_points
from legion.runner.journal import JournalEvent, read_journal
from legion.service.projects import registry
from legion.service.shared.event_text import event_text, facts_text
from legion.service.shared.fragments import end_of, start_of
from legion.store import events
from legion.store.board import projects, tickets
from legion.store.work import runs
from legion.wire.history import Events, HistoryLine

_MOST = 20_000
_COUNTED = 1_000
"""How many of those that are left out are counted: all of them would cost more with every ticket that ended."""
_LONGEST = 200
_OF_ALL = (EventKind.THROTTLE_CHANGED,)
"""Events that concern every project: an account is at a limit."""
_WHY = {rule.value: words for rule, words in WORDS.items()}
_CURSOR = re.compile(r"(\d{1,18}):(\d{1,18}):(\d{1,18})")


@dataclass(frozen=True)
class _Cursor:
    """The position up to which a client has read: events, and the journal of the latest run."""

    event: int = 0
    run: int = 0
    line: int = 0

    @staticmethod
    def read(text: str) -> _Cursor:
        found = _CURSOR.fullmatch(text)
        if text and found is None:
            raise BadInput(f"{text[:40]!r} is not a cursor: use the `cursor` of an earlier answer.")
        return _Cursor(*(int(part) for part in found.groups())) if found else _Cursor()

    def __str__(self) -> str:
        return f"{self.event}:{self.run}:{self.line}"


@dataclass(frozen=True, kw_only=True)
class EventFilter:
    """Which lines are shown. A kind is a complete one (`ticket.moved`), or the part before its dot (`ticket`)."""

    kinds: frozenset[str] = frozenset()
    start: float | None = None
    end: float | None = None

    @staticmethod
    def read(kinds: str, since: str, until: str) -> EventFilter:
        """`kinds` are separated by commas; `since` and `until` are days of UTC, both included."""
        words = filter(None, (word.strip() for word in kinds.split(",")))
        wanted = frozenset(RENAMED.get(word, word) for word in words)
        return EventFilter(kinds=wanted, start=start_of(since), end=end_of(until))

    def passes(self, line: HistoryLine) -> bool:
        of_kind = not self.kinds or line.kind in self.kinds or line.kind.partition(".")[0] in self.kinds
        return of_kind and (self.start or 0.0) <= line.at and (self.end is None or line.at < self.end)

    @property
    def is_open(self) -> bool:
        """Whether every line passes."""
        return not self.kinds and self.start is None and self.end is None

    def event_kinds(self) -> list[EventKind] | None:
        """None for all of them."""
        if not self.kinds:
            return None
        return [kind for kind in EventKind if {kind.value, kind.value.partition(".")[0]} & self.kinds]

    def refuse_unknown(self) -> None:
        known = {one for kind in EventKind for one in (kind.value, kind.value.partition(".")[0])}
        if unknown := sorted(self.kinds - known):
            groups = ", ".join(sorted({kind.value.partition(".")[0] for kind in EventKind}))
            raise BadInput(f"There is no event of the kind {unknown[0][:40]!r}. The kinds begin with: {groups}.")


def history(
    context: Trees, cwd: str | None, ticket: int | None, run: int | None, after: str, last: int, wanted: EventFilter
) -> Events:
    """The log of a ticket, a run or a project; of all projects if the folder belongs to none."""
    if ticket is None and run is None:
        # The journal of a run has kinds of its own.
        wanted.refuse_unknown()
    cursor = _Cursor.read(after)
    here = registry.find_or_none(context, cwd) if cwd and ticket is None and run is None else None
    project = here.id if here else None
    with context.store.read() as tx:
        known = {one.id: one.name for one in projects.all(tx)}
        newest = events.last(tx)
        mine: tuple[Run, ...] = ()
        if ticket is not None:
            tickets.get(tx, ticket)
            mine = _runs(runs.of_ticket(tx, ticket), ticket, run)
        elif run is not None:
            # A run of a ticket, or a turn of a standing agent.
            mine = (runs.get(tx, run),)
            project, ticket = mine[0].project, mine[0].ticket
        found = events.newest(
            tx,
            after=cursor.event,
            project=project,
            ticket=ticket,
            limit=min(last + _COUNTED, _MOST) if last and wanted.is_open and run is None else _MOST,
            unassigned=_OF_ALL if run is None else (),
            kinds=wanted.event_kinds(),
            start=wanted.start,
            end=wanted.end,
        )
    lines = [_event(event, known) for event in found if run is None or event.data.get("run") == run]
    at = _Cursor(event=newest, run=cursor.run, line=cursor.line)
    left_out = 0
    for one in mine:
        if one.id >= cursor.run:
            there, seen = _moments(context, one), _line(cursor, one)
            # A filter may pass few lines, so all of them are read then.
            most = last if last and wanted.is_open else None
            journal = read_journal(context.data.runs / one.name, after=seen, last=most)
            left_out += max(0, journal[0].number - seen - 1) if journal and most else 0
            lines += [_journal(entry, one, there) for entry in journal]
            at = _Cursor(event=newest, run=one.id, line=journal[-1].number if journal else _line(cursor, one))
    lines = sorted(filter(wanted.passes, lines), key=lambda line: line.at)
    shown = lines[-last:] if last else lines
    return Events(lines=shown, omitted=len(lines) - len(shown) + left_out, cursor=str(at))


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
        words=_short(event_text(event)),
        rule=rule,
        why=_WHY.get(rule, ""),
        data=dict(event.data),
        # The tree of a ticket's run is saved at its end.
        rewind=str(run)
        if event.kind is EventKind.RUN_ENDED and event.ticket is not None and event.data.get("saved")
        else "",
    )


def _moments(context: Trees, run: Run) -> frozenset[int]:
    """Lines of its journal that the ticket can be rewound to."""
    return frozenset(one.line for one in rewind_points.moments(context, context.project(run.project), run))


def _journal(entry: JournalEvent, run: Run, moments: frozenset[int]) -> HistoryLine:
    return HistoryLine(
        at=entry.time,
        source="run",
        n=entry.number,
        kind=entry.kind,
        project=None,
        ticket=run.ticket,
        run=run.id,
        words=_short(f"{entry.kind} {facts_text(entry.facts)}"),
        rule="",
        why="",
        data=dict(entry.facts),
        rewind=f"{run.id}:{entry.number}" if entry.number in moments else "",
    )


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
