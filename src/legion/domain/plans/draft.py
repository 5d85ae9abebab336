"""A draft: the proposed tickets of a plan, read from a planner's answer, an edited file or an expanded template.

All three have the same form, a table with `tickets`. `read` refuses what cannot be understood; whether a draft is good
is decided in checks.py.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any

from legion.domain.plans import conditions
from legion.domain.plans.conditions import ResultCondition
from legion.domain.review.path_patterns import glob_fault
from legion.domain.text import count
from legion.domain.tickets import board

KEY = re.compile(r"[a-z][a-z0-9]*(?:[_-][a-z0-9]+)*")
LONGEST_KEY = 40
LONGEST_TITLE = 300
LONGEST_TEXT = 20_000
MOST_TICKETS = 100
MOST_ITEMS = 200
"""Of any list in a ticket."""
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")


class MalformedDraft(ValueError):
    """The form is broken. The message names the ticket and the field, without a full stop."""

    def __init__(self, message: str, ticket: int | None = None, unknown: str = "") -> None:
        super().__init__(message)
        self.ticket = ticket
        """The position of the ticket that is wrong, for the line in a file."""
        self.unknown = unknown
        """The field that no plan has."""


@dataclass(frozen=True, kw_only=True)
class PlanCriterion:
    """When a ticket is done, and the command that proves it."""

    text: str
    proof: str = ""
    """A command, or the project's check in brackets: `[test]`."""
    why_not: str = ""
    """Why no command can prove it."""


@dataclass(frozen=True, kw_only=True)
class PlanTicket:
    """A ticket that is proposed, not dispatched."""

    key: str
    title: str
    text: str = ""
    context: str = ""
    plan: str = ""
    criteria: tuple[PlanCriterion, ...] = ()
    files: tuple[str, ...] = ()
    """Files that exist and that it is expected to change."""
    new_files: tuple[str, ...] = ()
    """Files that it is expected to create."""
    after: tuple[str, ...] = ()
    """Keys of tickets of the same plan."""
    after_tickets: tuple[int, ...] = ()
    """Numbers of tickets on the board."""
    checkpoint: bool = False
    labels: tuple[str, ...] = ()
    lines: int = 0
    """How many lines it is expected to change; 0: not estimated."""
    priority: int = 0
    when: ResultCondition | None = None
    """It starts only after such a result of other tickets of the plan."""

    @property
    def before(self) -> tuple[str, ...]:
        """Keys of the tickets that have ended when it starts."""
        return (*self.after, *(self.when.steps if self.when else ()))

    @property
    def touches(self) -> tuple[str, ...]:
        return (*self.files, *self.new_files)


@dataclass(frozen=True, kw_only=True)
class PlanDraft:
    """All proposed tickets."""

    tickets: tuple[PlanTicket, ...]
    summary: str = ""
    risks: str = ""
    drops: tuple[int, ...] = ()
    """Tickets of the board that this plan replaces; they are removed when all of it is approved."""

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(one.key for one in self.tickets)

    @property
    def edges(self) -> dict[int, list[int]]:
        """By position. Keys that no ticket has are left out."""
        place = {key: position for position, key in enumerate(self.keys)}
        return {n: [place[key] for key in one.before if key in place] for n, one in enumerate(self.tickets)}

    def ticket(self, key: str) -> PlanTicket | None:
        return next((one for one in self.tickets if one.key == key), None)


def earlier(draft: PlanDraft) -> dict[str, frozenset[str]]:
    """By key: everything that lands before it, at any distance. The draft has no circle."""
    edges, keys = draft.edges, draft.keys
    found: dict[str, frozenset[str]] = {}
    for position in board.topological(edges):
        before = [keys[other] for other in edges[position]]
        found[keys[position]] = frozenset(before).union(*(found[key] for key in before))
    return found


def keep_approved(approved: Collection[str], before: PlanDraft | None, new: PlanDraft) -> PlanDraft:
    """The new draft, with the approved tickets as they were: a new round cannot change what was dispatched."""
    if before is None:
        return new
    kept = tuple(one for one in before.tickets if one.key in approved)
    return replace(new, tickets=(*kept, *(one for one in new.tickets if one.key not in approved)))


def read(given: Mapping[str, Any], *, tickets: str = "tickets") -> PlanDraft:
    """The draft in a table of JSON or TOML. Raises MalformedDraft for the first fault."""
    _refuse_unknown(given, (tickets, "summary", "risks", "drop"), "the plan", None)
    tables = given.get(tickets)
    if not isinstance(tables, list) or not tables:
        raise MalformedDraft(f"the plan has no `{tickets}`")
    if len(tables) > MOST_TICKETS:
        raise MalformedDraft(f"the plan has {count(len(tables), 'ticket')}, and {MOST_TICKETS} are the most")
    found = [_ticket(table, n) for n, table in enumerate(tables)]
    keys = [one.key for one in found]
    for n, key in enumerate(keys):
        if key in keys[:n]:
            raise MalformedDraft(f"two tickets have the key `{key}`", n)
    return PlanDraft(
        tickets=tuple(found),
        summary=_text(given, "summary", "the plan", None),
        risks=_text(given, "risks", "the plan", None),
        drops=_numbers(given.get("drop", []), "the plan: `drop`", None),
    )


def record(draft: PlanDraft) -> dict[str, Any]:
    """The table that `read` reads; empty fields are left out."""
    plan: dict[str, Any] = {"summary": draft.summary, "risks": draft.risks, "drop": list(draft.drops)}
    return {name: value for name, value in plan.items() if value} | {"tickets": [_record(one) for one in draft.tickets]}


def _record(ticket: PlanTicket) -> dict[str, Any]:
    criteria = [
        {name: value for name, value in vars(one).items() if value or name == "text"} for one in ticket.criteria
    ]
    fields: dict[str, Any] = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in vars(ticket).items()
        if name in _FIELDS
    }
    when = str(ticket.when) if ticket.when else ""
    fields |= {"criteria": criteria, "after": [*ticket.after, *ticket.after_tickets], "when": when}
    return {name: value for name, value in fields.items() if value}


_FIELDS = (
    *("key", "title", "text", "context", "plan", "criteria", "files", "new_files"),
    *("after", "checkpoint", "labels", "lines", "priority", "when"),
)


def _ticket(table: object, n: int) -> PlanTicket:
    if not isinstance(table, Mapping):
        raise MalformedDraft(f"ticket {n + 1} is no table", n)
    key = table.get("key")
    if not isinstance(key, str) or not KEY.fullmatch(key) or len(key) > LONGEST_KEY:
        hint = f"a name of at most {LONGEST_KEY} small letters, digits, `-` and `_`"
        raise MalformedDraft(f"ticket {n + 1}: `key` must be {hint}, and is {shown(key)}", n)
    where = f"ticket `{key}`"
    _refuse_unknown(table, _FIELDS, where, n)
    title = " ".join(_text(table, "title", where, n).split())
    if not title or len(title) > LONGEST_TITLE:
        raise MalformedDraft(f"{where}: `title` must be one line of at most {LONGEST_TITLE} characters", n)
    after = _list(table, "after", where, n)
    keys = tuple(dict.fromkeys(one for one in after if isinstance(one, str)))
    numbers = _numbers([one for one in after if not isinstance(one, str)], f"{where}: `after`", n)
    checkpoint = table.get("checkpoint", False)
    if not isinstance(checkpoint, bool):
        raise MalformedDraft(f"{where}: `checkpoint` must be true or false, and is {shown(checkpoint)}", n)
    labels = _strings(table, "labels", where, n)
    if wrong := [one for one in labels if not _LABEL.fullmatch(one)]:
        raise MalformedDraft(f"{where}: {shown(wrong[0])} is no label", n)
    return PlanTicket(
        key=key,
        title=title,
        text=_text(table, "text", where, n),
        context=_text(table, "context", where, n),
        plan=_text(table, "plan", where, n),
        criteria=tuple(_criterion(one, where, n) for one in _list(table, "criteria", where, n)),
        files=_paths(table, "files", where, n),
        new_files=_paths(table, "new_files", where, n),
        after=keys,
        after_tickets=numbers,
        checkpoint=checkpoint,
        labels=labels,
        lines=_whole(table, "lines", 0, 1_000_000, where, n),
        priority=_whole(table, "priority", -1000, 1000, where, n),
        when=_when(table, keys, where, n),
    )


def _when(table: Mapping[str, Any], after: Collection[str], where: str, n: int) -> ResultCondition | None:
    text = _text(table, "when", where, n)
    if not text:
        return None
    found = conditions.parse(text)
    if found is None:
        hint = 'like "other.failed", "other.landed" or "other.result == \'word\'"'
        raise MalformedDraft(f"{where}: `when` must be {hint}, and is {shown(text)}", n)
    if found.excludes_landing and (both := [key for key in found.steps if key in after]):
        raise MalformedDraft(f"{where}: it comes after `{both[0]}`, and `when` starts it only if that did not land", n)
    return found


def _criterion(given: object, where: str, n: int) -> PlanCriterion:
    if isinstance(given, str):
        given = {"text": given}
    if not isinstance(given, Mapping):
        raise MalformedDraft(f"{where}: a criterion must be a text or a table with `text`, and is {shown(given)}", n)
    where = f"{where}, criterion"
    _refuse_unknown(given, ("text", "proof", "why_not"), where, n)
    texts = {name: " ".join(_text(given, name, where, n).split()) for name in ("text", "proof", "why_not")}
    if not texts["text"]:
        raise MalformedDraft(f"{where}: `text` is empty", n)
    return PlanCriterion(**texts)


def _refuse_unknown(table: Mapping[str, Any], known: Sequence[str], where: str, n: int | None) -> None:
    for name in table:
        if name not in known:
            near = get_close_matches(str(name), known, 1)
            hint = f"did you mean `{near[0]}`?" if near else f"there are {', '.join(known)}"
            raise MalformedDraft(f"{where} has no field {shown(name)}; {hint}", n, unknown=str(name))


def _text(table: Mapping[str, Any], name: str, where: str, n: int | None) -> str:
    value = table.get(name, "")
    if not isinstance(value, str):
        raise MalformedDraft(f"{where}: `{name}` must be a text, and is {shown(value)}", n)
    if len(value) > LONGEST_TEXT:
        raise MalformedDraft(f"{where}: `{name}` is longer than {LONGEST_TEXT:,} characters", n)
    return value.replace("\0", "").strip()


def _list(table: Mapping[str, Any], name: str, where: str, n: int) -> list[Any]:
    value = table.get(name, [])
    if not isinstance(value, list) or len(value) > MOST_ITEMS:
        raise MalformedDraft(f"{where}: `{name}` must be a list of at most {MOST_ITEMS} items", n)
    return value


def _strings(table: Mapping[str, Any], name: str, where: str, n: int) -> tuple[str, ...]:
    value = _list(table, name, where, n)
    if wrong := [one for one in value if not isinstance(one, str)]:
        raise MalformedDraft(f"{where}: `{name}` must hold texts only, and holds {shown(wrong[0])}", n)
    return tuple(dict.fromkeys(value))


def _paths(table: Mapping[str, Any], name: str, where: str, n: int) -> tuple[str, ...]:
    paths = tuple(dict.fromkeys(one.removeprefix("./") for one in _strings(table, name, where, n)))
    for path in paths:
        if fault := glob_fault(path):
            raise MalformedDraft(f"{where}: `{name}` has {shown(path)}, which {fault}", n)
    return paths


def _numbers(values: object, where: str, n: int | None) -> tuple[int, ...]:
    if not isinstance(values, list):
        raise MalformedDraft(f"{where} must be a list", n)
    for one in values:
        if not isinstance(one, int) or isinstance(one, bool) or one < 1:
            raise MalformedDraft(f"{where} must hold keys and ticket numbers, and holds {shown(one)}", n)
    return tuple(dict.fromkeys(values))


def _whole(table: Mapping[str, Any], name: str, least: int, most: int, where: str, n: int) -> int:
    value = table.get(name, 0)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise MalformedDraft(f"{where}: `{name}` must be a whole number from {least} to {most}", n)
    return value


def shown(value: object) -> str:
    """A refused value for a message: short, on one line."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:60]}..."
