"""Events in words: the one sentence that every log, page and list shows for an event."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from legion.domain.events import Event, EventKind
from legion.domain.text import count, to_json

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
    EventKind.BATCH_SIZE: "{why}: the next batch holds at most {to}, not {from}",
    EventKind.PROJECT_TRUSTED: "the text {hash:.12} is trusted",
    EventKind.REVIEW_ASKED: "{reader} will review {commit:.9}: {why}",
    EventKind.REWOUND: "rewound to {moment}; `--to {run}` restores what it had",
    EventKind.LANDED: "landed as {commit:.9}, tested with {tested:.9}",
    EventKind.LEFT_BEHIND: "{why}: it is at {target:.9}",
    EventKind.BROUGHT_BACK: "in the target again, which is at {target:.9}",
    EventKind.ABSORBED: "the target holds your {tip:.9}",
    EventKind.MAIL_SENT: "mail ({kind}): {text}",
    EventKind.TICKET_ADVISED: "{role} advised in run {run}",
    EventKind.TICKET_DROPPED: "dropped",
    EventKind.FLAKY: "{name} was red and then green on the same tree: flaky",
    EventKind.TRIED: "the checks were tried with broken code; they see it: {sees}",
    EventKind.REVERSED: "tested without the change, and without {tried} pieces of it",
}
"""Events whose facts fill a sentence as they are. A fact that an event of an earlier release lacks is left out."""
_STEPS = {"nudge": "nudged", "interrupt": "interrupted with advice", "end": "its run is ended"}


def event_text(event: Event) -> str:
    """The event in one line."""
    data = event.data

    def fields(*names: str) -> str:
        return ", ".join(str(data[name]) for name in names if data.get(name))

    def why(name: str) -> str:
        return f": {data[name]}" if data.get(name) else ""

    match event.kind:
        case EventKind.PROJECT_ADDED:
            at = f"ready at {fields('target')[:9]}" if data.get("target") else f"on branch {fields('branch')}"
            text = f"{fields('root')} is a project, {at}"
        case EventKind.COLLECTED:
            moved = data.get("old") != data.get("new")
            text = f"your branch went from {fields('old')[:9]} to {fields('new')[:9]}" if moved else "nothing was new"
        case EventKind.WARNING:
            text = f"{fields('job')}: {fields('why')}" if data.get("why") else facts_text(data)
        case EventKind.CONFLICT_PREDICTED:
            text = f"will conflict with {_conflict(data)}"
        case EventKind.CONFLICT_GONE:
            text = f"will no longer conflict with {_partner(data)}"
        case EventKind.TICKET_MOVED:
            text = f"{fields('from')} -> {fields('to')}, attempt {data.get('attempt', 0)}{why('reason')}"
        case EventKind.RUN_STARTED:
            text = ", ".join(filter(None, (f"run {fields('run')} starts", _run_of(data), fields("role"))))
        case EventKind.RUN_ENDED:
            text = f"run {fields('run')} ended: {fields('outcome').replace('_', ' ')}{why('detail')}"
        case EventKind.PLAN_CREATED | EventKind.PLAN_MOVED:
            text = _plan(data)
        case EventKind.REVIEW_GIVEN:
            text = f"{fields('reader')} on {fields('commit')[:9]}, {fields('verdict')}: {fields('summary', 'why')}"
        case EventKind.RECEIPT:
            text = f"check {fields('name')} is {fields('verdict')} after {data.get('duration', 0):.1f} s"
        case EventKind.BATCH:
            text = _batch(data)
        case EventKind.BASELINE_GREEN if data.get("commit"):
            text = f"the target itself is green at {fields('commit')[:9]}"
        case EventKind.QUEUE_TEST:
            text = _queue_test(data)
        case EventKind.THROTTLE_CHANGED:
            text = _pace(data)
        case EventKind.TARGET_MOVED:
            text = f"the target is at {fields('commit')[:9]} ({_numbers(data.get('tickets'))})"
        case EventKind.PERSON_SEEN:
            text = _person(data)
        case EventKind.QUESTION_SETTLED:
            text = _settled(data)
        case EventKind.WATCHDOG_STEP:
            text = f"{_STEPS.get(fields('step'), 'watchdog')}: {fields('why')}"
        case EventKind.DEVICE_REVOKED:
            text = f"device {fields('device')} is shut out" if data.get("device") else "all devices are shut out"
        case _ if event.kind in _SENTENCES:
            text = _SENTENCES[event.kind].format_map(
                defaultdict(str, {name: _value(one) for name, one in data.items()})
            )
        case _:
            text = facts_text({name: value for name, value in data.items() if name != "rule"})
    return " ".join(text.split())


def _pace(data: Mapping[str, object]) -> str:
    why = f": {data['why']}" if data.get("why") else ""
    return f"{data.get('provider')} was {data.get('from')} and is {data.get('to')}{why}"


def _person(data: Mapping[str, object]) -> str:
    left = f" and left {str(data['left'])[:9]}, which the hub keeps" if data.get("left") else ""
    return f"your branch is at {str(data.get('tip', ''))[:9]}{left}"


def _settled(data: Mapping[str, object]) -> str:
    why = f": {data['why']}" if data.get("why") else ""
    # Events of earlier releases know only yes and no.
    choice = data.get("choice") or {"True": "yes", "False": "no"}.get(str(data.get("allowed")), "no answer")
    return f"question {data.get('question')} is settled with {choice}{why}"


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
        f"{count(many, 'line')}{', overtaken' if id in overtaken else ''}" for id, many in zip(ids, lines, strict=False)
    ]
    listed = ", ".join(f"#{id} ({size})" for id, size in zip(ids, sizes, strict=False))
    return f"tries {listed}{' together' if len(ids) > 1 else ''}{f'; {more} more wait' if more else ''}"


def _queue_test(data: Mapping[str, object]) -> str:
    yours = "your commits" if data.get("upstream") else ""
    changes = " and ".join(filter(None, (yours, _numbers(data.get("tickets")) if data.get("tickets") else "")))
    how = {"part": ", a part of a red batch", "ahead": " on top of the batch in test", "alone": " alone once more"}
    return f"checks start on {changes}{how.get(str(data.get('how')), '')}"


def facts_text(facts: Mapping[str, object]) -> str:
    return " ".join(
        value if isinstance(value, str) else f"{name}={to_json(value, default=str)}"
        for name, value in facts.items()
        if value not in (None, "", [], {})
    )


def _conflict(facts: Mapping[str, object]) -> str:
    """The other change of a predicted conflict and its place, from the event."""
    places = facts.get("places")
    listed = [one for one in places if isinstance(one, Mapping)] if isinstance(places, list) else []
    named = [str(one.get("name") or one.get("path")) for one in listed]
    return f"{_partner(facts)} in {', '.join(dict.fromkeys(named)) or 'some file'}"


def _partner(facts: Mapping[str, object]) -> str:
    """Without a ticket number the other side is landed code."""
    return f"#{facts['with']}" if facts.get("with") else "what landed"
