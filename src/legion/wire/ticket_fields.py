"""Describes the fields of a request: option, limits, help and documents, kept as metadata of its shape.

To add a field, add it to its shape with `described`. The command's options and the fields of forms are derived from it;
of a new ticket also the keys of plan files, the limits that the daemon enforces and the tables of the documents.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeVar

Shape = TypeVar("Shape")
REQUIRED = dataclasses.MISSING
_RULE = "ticket field"
_SHOWN = 40
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")


class FieldKind(Enum):
    """What a field holds, as its annotation says."""

    TEXT = "text"
    TEXTS = "texts"
    WHOLE = "whole"
    AMOUNT = "amount"
    """Dollars."""
    FLAG = "flag"
    TICKETS = "tickets"
    """Numbers of tickets."""
    VALUES = "values"
    """Names with their values."""


_KINDS = {
    "str": FieldKind.TEXT,
    "str | None": FieldKind.TEXT,
    "list[str]": FieldKind.TEXTS,
    "list[str] | None": FieldKind.TEXTS,
    "dict[str, str]": FieldKind.VALUES,
    "int": FieldKind.WHOLE,
    "int | None": FieldKind.WHOLE,
    "float | None": FieldKind.AMOUNT,
    "bool": FieldKind.FLAG,
    "list[int]": FieldKind.TICKETS,
}
_ALLOWED = {
    FieldKind.TEXT: "a text",
    FieldKind.TEXTS: "a list of texts",
    FieldKind.WHOLE: "a whole number",
    FieldKind.AMOUNT: "a number of dollars",
    FieldKind.FLAG: "true or false",
    FieldKind.TICKETS: "a list of ticket numbers",
    FieldKind.VALUES: "names with their values",
}


class AgentNeed(Enum):
    """What kind of agent a field is for."""

    NONE = "none"
    AGENT = "agent"
    """Any agent; refused for a checkpoint, which has none."""
    BUDGETS = "budgets"
    """A driver that stops when its budget is spent. This value and those below are names of capabilities."""
    MODELS = "models"
    """A driver that takes the model that it is given."""
    ASKS = "asks"
    """A driver that can ask a person."""
    READS_ONLY = "reads_only"
    """A driver that can be limited to reading."""


@dataclass(frozen=True, kw_only=True)
class FieldRule:
    """How one field is entered, checked and explained."""

    help: str
    short: str = ""
    """Its short option."""
    option: str = ""
    """Its long option, where that is not the field's name."""
    argument: str = ""
    """Its name in the command's usage line, where it is no option: `NAME`, `[N]` or `TO...`."""
    no_option: bool = False
    """Only plan files and forms have it."""
    secret: bool = False
    """It is neither shown nor kept as a draft."""
    metavar: str | None = None
    least: int | None = None
    above: int | None = None
    most: int | None = None
    """The largest number, the most characters of a text, or the most items of a list."""
    choices: tuple[str, ...] = ()
    item_fault: Callable[[str], str | None] = lambda item: None
    """What is wrong with one item of a list, after "which"."""
    needs: AgentNeed = AgentNeed.NONE
    label: str = ""
    """The name of its line on the page of a ticket; empty: shown in another way, or not at all."""
    see: str = ""
    """The document that explains it."""

    @property
    def by_comma(self) -> bool:
        """Its option is given once: `--labels gpu,cuda`."""
        return "," in (self.metavar or "")


@dataclass(frozen=True, kw_only=True)
class TicketField:
    """A field of a request with its rule."""

    name: str
    kind: FieldKind
    default: object
    """None for a field that must be given."""
    rule: FieldRule
    is_required: bool = False

    @property
    def holds_text(self) -> bool:
        """A dash stands for stdin."""
        return (self.rule.metavar or self.rule.argument).strip("[]").endswith(("TEXT", "MESSAGE", "WHY", "QUESTION"))

    @property
    def options(self) -> tuple[str, ...]:
        """As its command takes them, the long one last; empty where it has none."""
        if self.rule.argument or self.rule.no_option:
            return ()
        long = self.rule.option or f"--{self.name.replace('_', '-')}"
        return (self.rule.short, long) if self.rule.short else (long,)

    @property
    def shown_name(self) -> str:
        """For messages: the long option, else the field's own name."""
        return self.options[-1] if self.options else self.name

    def fault(self, value: object) -> str | None:
        """What is wrong with a value, as the end of a sentence that starts with the field's name."""
        if value is None and self.default is None:
            return None
        rule = self.rule
        if not _is_of_kind(self.kind, value) or (rule.choices and value not in ("", *rule.choices)):
            return f"must be {self._allowed()}, not {_shown(value)}"
        if isinstance(value, str | list) and rule.most is not None and len(value) > rule.most:
            return f"must be {self._allowed()}, not of {len(value):,}"
        if isinstance(value, int | float) and not self._is_in_range(value):
            return f"must be {self._allowed()}, not {value:,}"
        faults = ((item, rule.item_fault(item)) for item in value) if isinstance(value, list) else ()
        return next((f"has {_shown(item)}, which {why}" for item, why in faults if why), None)

    def _is_in_range(self, value: float) -> bool:
        least, above, most = self.rule.least, self.rule.above, self.rule.most
        fits = (least is None or value >= least) and (above is None or value > above)
        return fits and (most is None or value <= most)

    def _allowed(self) -> str:
        """After "must be"."""
        rule, allowed = self.rule, _ALLOWED[self.kind]
        if rule.choices:
            return " or ".join(filter(None, (", ".join(rule.choices[:-1]), rule.choices[-1])))
        if rule.least is not None:
            return f"{allowed} from {rule.least} to {rule.most}"
        if rule.above is not None:
            return f"{allowed} above {rule.above}, at most {rule.most:,}"
        if rule.most is not None:
            return f"{allowed} of at most {rule.most:,} {'characters' if self.kind is FieldKind.TEXT else 'items'}"
        return allowed


def _is_of_kind(kind: FieldKind, value: object) -> bool:
    match kind:
        case FieldKind.TEXT:
            return isinstance(value, str)
        case FieldKind.TEXTS:
            return isinstance(value, list) and all(isinstance(item, str) for item in value)
        case FieldKind.TICKETS:
            return isinstance(value, list)
        case FieldKind.VALUES:
            return isinstance(value, dict)
        case FieldKind.FLAG:
            return isinstance(value, bool)
        case FieldKind.WHOLE | FieldKind.AMOUNT:
            types = int if kind is FieldKind.WHOLE else int | float
            return isinstance(value, types) and not isinstance(value, bool)


def described(default: object, **rule: Any) -> Any:  # noqa: ANN401 -- takes what FieldRule takes, returns a field
    """A dataclass field with a default and a rule. The defaults `list` and `dict` make a new one for each request."""
    # The OpenAPI document has the words, too, and the page's forms show them.
    metadata = {_RULE: FieldRule(**rule), "description": rule["help"].partition("; - reads")[0]}
    if default is REQUIRED:
        return dataclasses.field(metadata=metadata)
    if default is list or default is dict:
        return dataclasses.field(default_factory=default, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def request_of(shape: type[Shape], given: Mapping[str, object], cwd: str) -> Shape:
    """A request of what was given, with a folder and an id of its own where it has such fields."""
    known = {field.name for field in dataclasses.fields(shape)}  # type: ignore[arg-type]  # shapes are dataclasses
    own: dict[str, object] = {"cwd": cwd, "request": os.urandom(16).hex()}
    return shape(**{**{name: own[name] for name in own if name in known}, **given})


def fields_of(shape: type[Any]) -> dict[str, TicketField]:
    """The described fields of a dataclass by name, in order."""
    return {
        field.name: TicketField(
            name=field.name,
            kind=_KINDS[str(field.type)],
            default=_default(field),
            rule=field.metadata[_RULE],
            is_required=field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING,
        )
        for field in dataclasses.fields(shape)
        if _RULE in field.metadata
    }


def _default(field: dataclasses.Field[Any]) -> object:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return None if field.default is dataclasses.MISSING else field.default


def command_fault(command: str) -> str | None:
    return None if command.strip() else "is empty"


def label_fault(label: str) -> str | None:
    if _NAME.fullmatch(label):
        return None
    return "is no name of at most 40 letters, digits, dots, dashes and underscores"


def _shown(value: object) -> str:
    """A refused value for a message: short, on one line."""
    return repr(value[:_SHOWN]) if isinstance(value, str) else repr(value)[:_SHOWN]
