"""All that waits for the person as rows, each with what it takes to decide it; and what was answered last."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping

from legion.client.text import plans
from legion.client.text.questions import question_rows
from legion.client.text.rows import BLANK, Row, clean, flow, head, note, paragraph, row
from legion.client.text.terminal import Cell, Colour, clock, count, duration
from legion.wire.history import Events
from legion.wire.mail import Inbox, QuestionLine, WaitingLine

_SETTLED_SHOWN = 5
_TITLE = 200
ACTS = {
    "approve_plan": ("approves it", "legion approve P{id}"),
    "reject_plan": ("sends it back", "legion plan reject P{id} 'what should be different'"),
    "retry_plan": ("plans it again", "legion retry P{id}"),
    "drop_plan": ("drops it", "legion plan drop P{id}"),
    "retry": ("tries it again", "legion retry {id}"),
    "drop": ("removes it", "legion drop {id}"),
    "collect": ("brings them", "legion collect"),
}
"""What each operation does, and the command that does it."""


def rows(inbox: Inbox | None, recent: Events | None, width: int, now: float, keys: Mapping[str, str]) -> list[Row]:
    if inbox is None:
        return [note("Reading the inbox.")]
    return [*_waiting(inbox, width, now, keys), *_settled(recent, width)]


def waiting_rows(found: Inbox, width: int) -> list[Row]:
    """As `legion inbox` prints it."""
    return _waiting(found, width, time.time(), {})


def key_of(one: WaitingLine) -> str:
    """Of a question its number, of a plan that of its place."""
    if one.kind == "plan":
        return f"{plans.KEY}{one.id}"
    return str(one.id) if one.kind == "question" else f"{one.kind} {one.id or one.root}"


def _waiting(inbox: Inbox, width: int, now: float, keys: Mapping[str, str]) -> list[Row]:
    many = len(inbox.waiting)
    if not many:
        more = [note("Agents continue by themselves; what needs you appears here.")] if keys else []
        return [head("Nothing waits for you."), *more]
    made = [row(f"{count(many, 'thing waits', 'things wait')} for you{', most urgent first' if many > 1 else ''}.")]
    asked = {one.id: one for one in inbox.questions}
    for one in inbox.waiting:
        held = f"  holds up {count(one.holds_up, 'ticket')}" if one.holds_up > 1 else ""
        question = asked.get(one.id) if one.kind == "question" else None
        if question is not None:
            how = ways(question, keys) if keys else ""
            made += [BLANK, *question_rows(question, width, now, how, Cell(held, Colour.YELLOW))]
        else:
            made += [BLANK, *_thing(one, held, width, now, keys)]
    return made


def _thing(one: WaitingLine, held: str, width: int, now: float, keys: Mapping[str, str]) -> Iterator[Row]:
    key = key_of(one)
    name = {"plan": f"P{one.id}", "failed": f"#{one.id}"}.get(one.kind, "Collect")
    kind = {"collect": "landed"}.get(one.kind, clean(one.kind))
    age = f"  {duration(now - one.since)}" if one.kind != "collect" else ""
    title = (
        Cell(f"{name}  ", Colour.BOLD),
        Cell(f"{kind}, ", Colour.RED if one.kind == "failed" else Colour.YELLOW),
        Cell(f"{clean(one.title)[:_TITLE]} of {clean(one.project)}"),
        Cell(age, Colour.DIM),
        Cell(held, Colour.YELLOW),
    )
    yield from flow(title, width, key=key, indent=2)
    yield from paragraph(clean(one.words), width, indent=2, key=key)
    for fact, text in one.facts.items():
        # What a program printed: its lines cannot pass for ours.
        shown = "".join(f"\n| {line}" for line in text.splitlines()) if fact == "output" else clean(text)
        yield from paragraph(f"{fact}: {shown}", width, indent=2, colour=Colour.DIM, key=key, most=12)
    verbs = [ACTS[offer] for offer in one.offers if offer in ACTS]
    by_key = [f"{keys[at]} {verb}" for at, (verb, _) in zip(("yes", "no"), verbs, strict=False) if at in keys]
    told = ", ".join(by_key) if keys else "   or   ".join(command.format(id=one.id) for _, command in verbs)
    yield from paragraph(told, width, indent=2, colour=Colour.DIM, key=key)


def ways(question: QuestionLine, keys: Mapping[str, str]) -> str:
    yes, no = choice_for(question, yes=True), choice_for(question, yes=False)
    parts = [f"{keys['yes']} {clean(yes)}"] if yes else []
    parts += [f"{keys['no']} {clean(no)}"] if no else []
    more = len(question.choices) - len(parts)
    if more > 0 or not question.choices:
        parts.append(f"{keys['answer']} {'in words' if not question.choices else f'{more} more'}")
    return ", ".join(parts)


def choice_for(question: QuestionLine, *, yes: bool) -> str:
    """The choice behind the keys for yes and no; empty where the question has none."""
    wanted = "yes" if yes else "no"
    if wanted in question.choices:
        return wanted
    place = 0 if yes else 1
    return question.choices[place] if len(question.choices) > place else ""


def alike(questions: Iterable[QuestionLine], one: QuestionLine) -> list[QuestionLine]:
    """Those of the same kind with the same choices: they can be answered together."""
    return [other for other in questions if other.kind == one.kind and other.choices == one.choices]


def _settled(recent: Events | None, width: int) -> list[Row]:
    settled = [one for one in recent.lines if one.kind == "question.settled"] if recent is not None else []
    if not settled:
        return []
    made = [BLANK, note(f"The last {count(min(len(settled), _SETTLED_SHOWN), 'answer')}")]
    for one in reversed(settled[-_SETTLED_SHOWN:]):
        choice = clean(str(one.data.get("choice") or ("yes" if one.data.get("allowed") else "no")))
        where = f"#{one.ticket} " if one.ticket else ""
        why = clean(str(one.data.get("why") or ""))
        made += paragraph(
            f"{clock(one.at)}  question {one.data.get('question')} {where}{choice}  {why}", width, colour=Colour.DIM
        )
    return made
