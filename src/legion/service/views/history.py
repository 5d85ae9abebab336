"""The log of `legion events`: the daemon's events merged with the journals of a ticket's runs. Read only."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from legion.domain.errors import BadInput, NotFound
from legion.domain.events import Event, EventKind
from legion.domain.rules import WORDS, decided_by
from legion.domain.runs import Run
from legion.domain.text import to_json
from legion.jobs.context import Context
from legion.jobs.workspace import rewind_points
from legion.runner.journal import JournalEvent, read_journal
from legion.service.projects import registry as project_cases
from legion.service.views.days import end_of, start_of
from legion.store import events
from legion.store.board import projects, tickets
from legion.store.work import runs
from legion.wire.history import Events, HistoryLine
from legion.wire.text import conflict_partner, describe_conflict

_MOST = 20_000
_LONGEST = 200
_OF_ALL = (EventKind.PACE,)
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
        wanted = frozenset(filter(None, (word.strip() for word in kinds.split(","))))
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
    context: Context,
    cwd: str | None,
    ticket: int | None,
    run: int | None,
    after: str,
    last: int,
    wanted: EventFilter,
) -> Events:
    """The log of a ticket, a run or a project; of all projects if the folder belongs to none."""
    if ticket is None and run is None:
        # The journal of a run has kinds of its own.
        wanted.refuse_unknown()
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
            # A run of a ticket, or a turn of a standing agent.
            mine = (runs.get(tx, run),)
            project, ticket = mine[0].project, mine[0].ticket
        found = events.newest(
            tx,
            after=cursor.event,
            project=project,
            ticket=ticket,
            limit=_MOST,
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
        words=_format_event(event),
        rule=rule,
        why=_WHY.get(rule, ""),
        data=dict(event.data),
        # The tree of a ticket's run is saved at its end.
        rewind=str(run)
        if event.kind is EventKind.RUN_ENDED and event.ticket is not None and event.data.get("saved")
        else "",
    )


def _moments(context: Context, run: Run) -> frozenset[int]:
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
        words=_short(f"{entry.kind} {_facts(entry.facts)}"),
        rule="",
        why="",
        data=dict(entry.facts),
        rewind=f"{run.id}:{entry.number}" if entry.number in moments else "",
    )


_SENTENCES = {
    EventKind.TICKET_CREATED: "dispatched: {title}",
    EventKind.TICKET_ADOPTED: "continues conversation {source}",
    EventKind.TICKET_FORKED: "its conversation is a copy of that of {seat} in run {run}",
    EventKind.RACE_STARTED: "race {race} starts with attempts in tickets {lanes}",
    EventKind.RACE_DECIDED: "race {race} is won by ticket {winner}: {why}",
    EventKind.REBUILT: "the board was restored from the hub, as of event {event}",
    EventKind.SENT_BACK: "sent back: {why}",
    EventKind.AGENT_HIRED: "{name} is hired",
    EventKind.AGENT_FIRED: "{name} is fired",
    EventKind.DEVICE_ADDED: "device {device} is let in: {name}",
    EventKind.QUESTION_ASKED: "question {question} ({kind}): {words}",
    EventKind.MAIL_SENT: "mail ({kind}): {text}",
}
"""Events whose facts fill a sentence as they are. Each always has these facts."""


def _format_event(event: Event) -> str:
    """The event in one line."""
    data = event.data

    def fields(*names: str) -> str:
        return ", ".join(str(data[name]) for name in names if data.get(name))

    match event.kind:
        case EventKind.PROJECT_ADDED:
            at = f"ready at {fields('target')[:9]}" if data.get("target") else f"on branch {fields('branch')}"
            text = f"{fields('root')} is a project, {at}"
        case EventKind.PROJECT_TRUSTED:
            text = f"the text {fields('hash')[:12]} is trusted"
        case EventKind.COLLECTED:
            moved = data.get("old") != data.get("new")
            text = f"your branch went from {fields('old')[:9]} to {fields('new')[:9]}" if moved else "nothing was new"
        case EventKind.WARNING:
            text = f"{fields('job')}: {fields('why')}" if data.get("why") else _facts(data)
        case EventKind.CLASH_SEEN:
            text = f"will conflict with {describe_conflict(data)}"
        case EventKind.CLASH_GONE:
            text = f"will no longer conflict with {conflict_partner(data)}"
        case EventKind.TICKET_MOVED:
            reason = f": {fields('reason')}" if data.get("reason") else ""
            text = f"{fields('from')} -> {fields('to')}, attempt {data.get('attempt', 0)}{reason}"
        case EventKind.RUN_STARTED:
            text = ", ".join(filter(None, (f"run {fields('run')} starts", _run_of(data), fields("role"))))
        case EventKind.RUN_ENDED:
            text = f"run {fields('run')} ended: {fields('outcome', 'detail')}"
        case EventKind.PLAN_CREATED | EventKind.PLAN_MOVED:
            text = _plan(data)
        case EventKind.REVIEW_ASKED:
            text = f"{fields('reader')} will review {fields('commit')[:9]}: {fields('why')}"
        case EventKind.REVIEW_GIVEN:
            text = f"{fields('reader')} on {fields('commit')[:9]}, {fields('verdict')}: {fields('summary', 'why')}"
        case EventKind.REWOUND:
            text = f"rewound to {fields('moment')}; `--to {fields('run')}` restores what it had"
        case EventKind.RECEIPT:
            text = f"check {fields('name')} is {fields('verdict')} after {data.get('duration', 0):.1f} s"
        case EventKind.LANDED:
            text = f"landed as {fields('commit')[:9]}, tested with {fields('tested')[:9]}"
        case EventKind.BATCH:
            text = _batch(data)
        case EventKind.BASELINE_GREEN if data.get("commit"):
            text = f"the target itself is green at {fields('commit')[:9]}"
        case EventKind.QUEUE_TEST:
            text = _queue_test(data)
        case EventKind.BATCH_SIZE:
            text = f"{fields('why')}: the next batch may hold {_count(data.get('to'), 'change')}, not {fields('from')}"
        case EventKind.LEFT_BEHIND:
            text = f"{fields('why')}: it is at {fields('target')[:9]}"
        case EventKind.BROUGHT_BACK:
            text = f"in the target again, which is at {fields('target')[:9]}"
        case EventKind.PACE:
            text = _pace(data)
        case EventKind.TARGET_MOVED:
            text = f"the target is at {fields('commit')[:9]} ({_numbers(data.get('tickets'))})"
        case EventKind.PERSON_SEEN:
            text = _person(data)
        case EventKind.QUESTION_SETTLED:
            text = _settled(data)
        case EventKind.DEVICE_REVOKED:
            text = f"device {fields('device')} is shut out" if data.get("device") else "all devices are shut out"
        case EventKind.ABSORBED:
            text = f"the target holds your {fields('tip')[:9]}"
        case _ if event.kind in _SENTENCES:
            text = _SENTENCES[event.kind].format_map({name: _value(value) for name, value in data.items()})
        case _:
            text = _facts({name: value for name, value in data.items() if name != "rule"})
    return _short(text)


def _pace(data: Mapping[str, object]) -> str:
    why = f": {data['why']}" if data.get("why") else ""
    return f"{data.get('provider')} was {data.get('from')} and is {data.get('to')}{why}"


def _person(data: Mapping[str, object]) -> str:
    left = f" and left {str(data['left'])[:9]}, which the hub keeps" if data.get("left") else ""
    return f"your branch is at {str(data.get('tip', ''))[:9]}{left}"


def _settled(data: Mapping[str, object]) -> str:
    why = f": {data['why']}" if data.get("why") else ""
    return f"question {data.get('question')} is settled with {data.get('choice') or 'no answer'}{why}"


def _run_of(data: Mapping[str, object]) -> str:
    if data.get("plan"):
        return f"the planner of P{data['plan']}"
    return f"attempt {data['attempt']}" if data.get("attempt") else f"a turn of {data.get('name', '')}"


def _plan(data: Mapping[str, object]) -> str:
    if "to" not in data:
        return f"P{data.get('plan')}: {data.get('goal')}"
    reason = f": {data['reason']}" if data.get("reason") else ""
    return f"P{data.get('plan')}, {data.get('from')} -> {data['to']}{reason}"


def _value(fact: object) -> str:
    return ", ".join(map(str, fact)) if isinstance(fact, list) else str(fact or "")


def _numbers(ids: object) -> str:
    listed = [f"#{id}" for id in ids] if isinstance(ids, Iterable) else []
    return ", ".join(listed) or "your own commits"


def _batch(data: Mapping[str, object]) -> str:
    ids, lines, more = data.get("tickets"), data.get("lines"), data.get("waiting")
    if not isinstance(ids, list) or not isinstance(lines, list):
        return ""
    overdue = data.get("overdue")
    overtaken = overdue if isinstance(overdue, list) else []
    sizes = [
        f"{_count(many, 'line')}{', overtaken' if id in overtaken else ''}"
        for id, many in zip(ids, lines, strict=False)
    ]
    listed = ", ".join(f"#{id} ({size})" for id, size in zip(ids, sizes, strict=False))
    return f"tries {listed}{' together' if len(ids) > 1 else ''}{f'; {more} more wait' if more else ''}"


def _queue_test(data: Mapping[str, object]) -> str:
    yours = "your commits" if data.get("upstream") else ""
    changes = " and ".join(filter(None, (yours, _numbers(data.get("tickets")) if data.get("tickets") else "")))
    how = {"part": ", a part of a red batch", "ahead": " on top of the batch in test", "alone": " alone once more"}
    return f"checks start on {changes}{how.get(str(data.get('how')), '')}"


def _count(many: object, thing: str) -> str:
    return f"{many} {thing}" if many == 1 else f"{many} {thing}s"


def _facts(facts: Mapping[str, object]) -> str:
    return " ".join(
        value if isinstance(value, str) else f"{name}={to_json(value, default=str)}"
        for name, value in facts.items()
        if value not in (None, "", [], {})
    )


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
