"""Fields of forms: those of a new ticket as the wire describes them, those of a hire; text to value and back. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from legion.wire.dispatch import TICKET_FIELDS
from legion.wire.ticket_fields import FieldKind, TicketField

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
    return [_of_ticket(TICKET_FIELDS[name]) for name in names]


def _of_ticket(field: TicketField) -> FormField:
    return FormField(
        name=field.name,
        kind=field.kind,
        help=field.rule.help.removesuffix("; - reads it from stdin.").rstrip(".") + ".",
        choices=("", *field.rule.choices) if field.rule.choices else (),
        check=field.fault,
    )


RETRY_FIELDS = [
    FormField(name="feedback", kind=FieldKind.TEXT, help="What its agent should do differently; may be empty."),
    FormField(name="text", kind=FieldKind.TEXT, help="What you want: the ticket's own text, as it is now."),
    FormField(name="context", kind=FieldKind.TEXT, help="What its agent should know."),
    FormField(name="criteria", kind=FieldKind.TEXT, help="How it is decided whether it is done."),
]
BY_HAND_FIELDS = [
    FormField(name="name", kind=FieldKind.TEXT, help="What you want to work on; the ticket's title."),
    FormField(name="prompt", kind=FieldKind.TEXT, help="The agent's first message; you type it if left out."),
    FormField(name="profile", kind=FieldKind.TEXT, help="One of your [drivers.NAME]; Claude Code if left out."),
    FormField(name="branch", kind=FieldKind.TEXT, help="Start with the files of this branch of yours."),
    FormField(name="program", kind=FieldKind.TEXT, help="Any interactive command line instead."),
    FormField(name="model", kind=FieldKind.TEXT, help="The model that the agent should use."),
    FormField(name="accepts", kind=FieldKind.FLAG, help="Accept what the program's description names; all recorded."),
]
PLAN_FIELDS = [
    FormField(
        name="goal", kind=FieldKind.TEXT, help="What should be there in the end; a planner proposes the tickets."
    ),
    FormField(name="questions", kind=FieldKind.FLAG, help="The planner may ask you once before it plans."),
    FormField(name="spec", kind=FieldKind.FLAG, help="It writes a specification first."),
    FormField(name="budget", kind=FieldKind.AMOUNT, help="Dollars that the planner may cost."),
    FormField(name="team", kind=FieldKind.TEXT, help="For the tickets; the project's own if left out."),
    FormField(name="model", kind=FieldKind.TEXT, help="The planner's model; as your settings say if left out."),
]
HIRE_FIELDS = [
    FormField(name="task", kind=FieldKind.TEXT, help="What it is there for."),
    FormField(name="name", kind=FieldKind.TEXT, help="How you call it; one is chosen if left out."),
    FormField(name="role", kind=FieldKind.TEXT, help="In a few words; leader: it leads the project."),
    FormField(name="driver", kind=FieldKind.TEXT, help="Its program, such as codex; Claude Code if left out."),
    FormField(name="model", kind=FieldKind.TEXT, help="Its model; as your settings say if left out."),
    FormField(name="budget", kind=FieldKind.AMOUNT, help="Dollars for itself and all below it."),
    FormField(name="headcount", kind=FieldKind.WHOLE, help="How many agents it may have below it."),
    FormField(name="plan", kind=FieldKind.FLAG, help="It only reads until you approve its plan."),
    FormField(name="delegate", kind=FieldKind.FLAG, help="It only leads, and uses no other tools."),
]
PROVIDER_FIELDS = [
    FormField(name="name", kind=FieldKind.TEXT, help="anthropic, or a name of yours."),
    FormField(name="key", kind=FieldKind.TEXT, help="Its key; kept in a file that only you can read.", secret=True),
    FormField(name="url", kind=FieldKind.TEXT, help="Its address, if its name is not that of a known provider."),
    FormField(name="kind", kind=FieldKind.TEXT, help="Which API it speaks; anthropic if left out."),
    FormField(name="model", kind=FieldKind.TEXT, help="The model that it is asked for, whatever an agent names."),
]
ROUTE_FIELDS = [
    FormField(name="model", kind=FieldKind.TEXT, help="The model that agents name."),
    FormField(
        name="to", kind=FieldKind.TEXTS, help="provider or provider/model, in the order in which they are asked."
    ),
    FormField(name="agent", kind=FieldKind.TEXT, help="Only for runs of this agent."),
    FormField(name="role", kind=FieldKind.TEXT, help="Only for runs of this role."),
    FormField(name="team", kind=FieldKind.TEXT, help="Only for runs of this team."),
]
WORKER_FIELDS = [
    FormField(name="workers", kind=FieldKind.WHOLE, help="How many agents work at once; 0: as in legion.toml."),
    FormField(name="retries", kind=FieldKind.WHOLE, help="How often a ticket is tried; 0: as in legion.toml."),
]
SESSION_FIELDS = [
    FormField(name="branch", kind=FieldKind.TEXT, help="The branch that it lands on; the checked out one if left out."),
    FormField(name="base", kind=FieldKind.TEXT, help="Make the branch, from this one; left out: it must exist."),
]
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
