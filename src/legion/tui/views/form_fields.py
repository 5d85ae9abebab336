"""Fields of forms, as the requests describe them; text to value and back. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from legion.wire.agents import HireAgent
from legion.wire.dispatch import TICKET_FIELDS
from legion.wire.plans import NewPlan
from legion.wire.projects import SetNumbers
from legion.wire.providers import AddProvider, SetRoute
from legion.wire.sessions import NewSession
from legion.wire.terminal import NewByHand
from legion.wire.ticket_fields import FieldKind, TicketField, fields_of

_BIG = ("text", "context", "criteria", "prove", "task", "feedback", "to", "prompt", "goal")
"""Fields with room for several lines; `plan` of a ticket, too, which a hire has as a flag."""
_SHORT_FORM = ("title", "text", "context", "criteria", "after", "prove")
_LEFT_OUT = ("key", "worker_id")
_TITLE = 40
_YES = ("yes", "true", "on")


@dataclass(frozen=True, kw_only=True)
class FormField:
    """One field: how it is labelled and explained, and how its text becomes a value."""

    name: str
    kind: FieldKind
    help: str
    choices: tuple[str, ...] = ()
    secret: bool = False
    """It is not shown and not kept as a draft."""
    check: Callable[[object], str | None] = lambda value: None
    """What is wrong with a value, after the field's name."""

    @property
    def label(self) -> str:
        return self.name.replace("_", " ")

    @property
    def big(self) -> bool:
        return self.name in _BIG or (self.name == "plan" and self.kind is FieldKind.TEXT)

    def fault(self, text: str) -> str | None:
        """A sentence about text that cannot be sent; None where it can."""
        if not text.strip():
            return None
        try:
            value = read(self.kind, text)
        except ValueError as wrong:
            return f"{self.label} {wrong}."
        why = self.check(value)
        return f"{self.label} {why}." if why else None


def read(kind: FieldKind, text: str) -> object:
    """The value of a text. Raises ValueError with the end of a sentence."""
    match kind:
        case FieldKind.TEXT:
            return text.strip("\n")
        case FieldKind.TEXTS:
            return [line.strip() for line in text.splitlines() if line.strip()]
        case FieldKind.VALUES:
            pairs = [line.partition("=") for line in text.splitlines() if line.strip()]
            return {name.strip(): value for name, _, value in pairs}
        case FieldKind.FLAG:
            return text.strip().lower() in _YES
        case FieldKind.TICKETS:
            words = [word.removeprefix("#") for word in text.replace(",", " ").split()]
            if not all(word.isdecimal() for word in words):
                raise ValueError("must be numbers of tickets, such as 3, 5")
            return [int(word) for word in words]
        case FieldKind.WHOLE:
            return _number(int, text, "must be a whole number")
        case FieldKind.AMOUNT:
            return _number(float, text.removeprefix("$"), "must be a number of dollars")


def _number(convert: Callable[[str], float], text: str, why: str) -> float:
    try:
        return convert(text.strip())
    except ValueError:
        raise ValueError(why) from None


def ticket_fields(*, every: bool) -> list[FormField]:
    """The fields of `legion dispatch`; the short form has those that most tickets need."""
    names = [name for name in TICKET_FIELDS if name not in _LEFT_OUT and (every or name in _SHORT_FORM)]
    return [_described(TICKET_FIELDS[name]) for name in names]


def _described(field: TicketField) -> FormField:
    return FormField(
        name=field.name,
        kind=field.kind,
        help=field.rule.help.removesuffix("; - reads it from stdin.").rstrip(".") + ".",
        choices=("", *field.rule.choices) if field.rule.choices else (),
        secret=field.rule.secret,
        check=field.fault,
    )


def _form_of(request: type[Any], names: str) -> list[FormField]:
    """Fields of a request, as its shape describes them."""
    known = fields_of(request)
    return [_described(known[name]) for name in names.split()]


RETRY_FIELDS = [
    FormField(name="feedback", kind=FieldKind.TEXT, help="What its agent should do differently; may be empty."),
    FormField(name="text", kind=FieldKind.TEXT, help="What you want: the ticket's own text, as it is now."),
    FormField(name="context", kind=FieldKind.TEXT, help="What its agent should know."),
    FormField(name="criteria", kind=FieldKind.TEXT, help="How it is decided whether it is done."),
]
BY_HAND_FIELDS = _form_of(NewByHand, "name prompt profile branch program model accepts")
PLAN_FIELDS = _form_of(NewPlan, "goal questions depth stop_at budget team model")
HIRE_FIELDS = _form_of(HireAgent, "task name role driver model budget headcount plan delegate")
PROVIDER_FIELDS = _form_of(AddProvider, "name key url kind model")
ROUTE_FIELDS = _form_of(SetRoute, "model to agent role team")
WORKER_FIELDS = _form_of(SetNumbers, "workers retries")
SESSION_FIELDS = _form_of(NewSession, "branch base")
NAME_FIELDS = [FormField(name="name", kind=FieldKind.TEXT, help="Its name; your editor opens next.")]


def values(fields: list[FormField], texts: Mapping[str, str]) -> dict[str, object]:
    """What was filled in, by name. Raises ValueError with the first sentence about what is wrong."""
    found: dict[str, object] = {}
    for field in fields:
        text = texts.get(field.name, "")
        fault = field.fault(text)
        if fault is not None:
            raise ValueError(fault)
        if text.strip():
            found[field.name] = read(field.kind, text)
    return found


def with_title(given: dict[str, object]) -> dict[str, object]:
    """Without a title, the first letters of the text are one."""
    if given.get("title"):
        return given
    line = " ".join(str(given.get("text", "")).split())
    if not line:
        raise ValueError("Write a title, or what you want as the text.")
    return {**given, "title": line if len(line) <= _TITLE else line[:_TITLE].rstrip() + "…"}
