"""The machinery of `operations`: what a row is, and how a class of signatures becomes a table of operations."""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Mapping
from enum import Flag, auto
from typing import Any, TypeAlias, TypeVar, cast

TicketId = int
PlanId = int
"""3 for P3."""
MemoryId = int
NoteId = int
RoutineId = int
QuestionId = int
RunId = int
AgentName = str
"""An id, the first characters of one, or a name."""
ToolName = str
MachineName = str
Folder = str
"""Any folder inside the project."""
Text = str
Cursor = str
Number = int
Count = int
Hours = float
Seconds = float
"""At most LONGEST_WAIT."""
TicketIds = list[int] | None

_ROW = "__operation__"
LONGEST_WAIT = 25.0
"""Seconds of one long poll."""


class OpenTo(Flag):
    """The identities that may call a route. The person's token opens every one; a row that says no more is closed."""

    PERSON = 0
    """The person's token alone."""
    NO_LOGIN = auto()
    """No login at all."""
    READ_ONLY = auto()
    """A browser that was let in to look."""
    LIMITED = auto()
    """A browser that reaches Legion over a plain network, where others may read what it sends."""
    BROWSER = auto()
    """A browser on this machine, or behind TLS."""
    PLUGIN = auto()
    """The plugin of the person's own Claude Code."""
    AGENTS = auto()
    """A standing agent, in its own project."""
    TICKET = auto()
    """The agent of a ticket, in its own project."""
    MACHINE = auto()
    """A machine that joined, for the runs that it was given."""
    ALL = AGENTS | TICKET
    """Every agent."""
    ACTS = LIMITED | BROWSER
    """Browsers that may act, also over a plain network: nothing that decides which programs run as the person."""
    LOOKS = READ_ONLY | ACTS
    """Every browser: it changes nothing."""


IDENTITIES = {
    OpenTo.NO_LOGIN: "no login",
    OpenTo.READ_ONLY: "read-only browser",
    OpenTo.LIMITED: "browser over a plain network",
    OpenTo.BROWSER: "browser",
    OpenTo.PLUGIN: "plugin",
    OpenTo.TICKET: "agent of a ticket",
    OpenTo.AGENTS: "standing agent",
    OpenTo.MACHINE: "machine",
}
"""As documents name them, from the narrowest on."""


class Operation:
    def __init__(
        self,
        declared: Callable[..., Any],
        method: str,
        path: str,
        *,
        open_to: OpenTo,
        plain: str,
        waits: bool,
        created: bool,
        asks: str,
    ) -> None:
        self.declared = declared
        """The row's signature, with annotations as text."""
        self.method = method
        self.path = path
        self.open_to = open_to
        self.plain = frozenset(plain.split())
        """The fields of its body that a browser over a plain network may set."""
        self.waits = waits
        self.created = created
        """The answer has status 201."""
        self.asks = asks
        """The question that a client asks a person before it calls, with the name of the thing at `{what}`; for an
        answer only where it is a lasting rule. Empty: it needs none."""

    @property
    def name(self) -> str:
        return self.declared.__name__

    @property
    def summary(self) -> str:
        """Its first paragraph, without a full stop."""
        return " ".join(self.help.partition("\n\n")[0].split()).removesuffix(".")

    @property
    def help(self) -> str:
        """The words of its command."""
        first, blank, more = (inspect.getdoc(self.declared) or "").partition("\n\n")
        return f"{first.removesuffix('.')}.{blank}{more}"

    @property
    def on(self) -> str:
        """What it is about, as paths name it: `tickets`, `plans`, `machines`."""
        return self.path.split("/")[2]

    @functools.cached_property
    def parameters(self) -> tuple[inspect.Parameter, ...]:
        """All but self."""
        return tuple(inspect.signature(self.declared).parameters.values())[1:]

    @property
    def in_path(self) -> tuple[inspect.Parameter, ...]:
        return tuple(one for one in self.parameters if f"{{{one.name}}}" in self.path)

    @property
    def body(self) -> inspect.Parameter | None:
        before_the_slash = [one for one in self.parameters if one.kind is one.POSITIONAL_ONLY]
        return next((one for one in before_the_slash if one not in self.in_path), None)

    @property
    def in_query(self) -> tuple[inspect.Parameter, ...]:
        return tuple(one for one in self.parameters if one.kind is not one.POSITIONAL_ONLY)

    @property
    def answer_name(self) -> str:
        """As the row writes it: `Acted`, or with its module, `wire.tickets.Acted`."""
        return str(self.declared.__annotations__["return"])

    @property
    def answer(self) -> type[Any]:
        module, _, shape = self.answer_name.rpartition(".")
        found = getattr(importlib.import_module(f"legion.{module}" if module else self.declared.__module__), shape)
        assert isinstance(found, type)
        return found


AnyAnswer: TypeAlias = Any
"""The row says which."""
_Declared = TypeVar("_Declared", bound=Callable[..., Any])


def operation(
    method: str,
    path: str,
    *,
    open_to: OpenTo = OpenTo.PERSON,
    plain: str = "",
    waits: bool = False,
    created: bool = False,
    asks: str = "",
) -> Callable[[_Declared], _Declared]:
    """Makes a signature a row. Calling it passes the row and its arguments, defaults included, to `perform`."""

    def row(declared: _Declared) -> _Declared:
        made = Operation(declared, method, path, open_to=open_to, plain=plain, waits=waits, created=created, asks=asks)

        @functools.wraps(declared)
        def call(self: Table, *given: object, **named: object) -> object:
            bound = inspect.signature(declared).bind(self, *given, **named)
            bound.apply_defaults()
            _, *arguments = bound.arguments.items()
            return self.perform(made, dict(arguments))

        setattr(call, _ROW, made)
        return cast(_Declared, call)

    return row


class Table:
    """A class whose methods are rows. A subclass performs them, by `perform` or one by one."""

    def perform(self, row: Operation, arguments: Mapping[str, Any]) -> AnyAnswer:
        """Do what the row asks for, with arguments by name in the row's order."""
        raise NotImplementedError(row.name)

    def call(self, row: Operation, arguments: Mapping[str, Any]) -> AnyAnswer:
        """Call the row's method, with arguments by name."""
        positional = [arguments[one.name] for one in row.parameters if one.kind is one.POSITIONAL_ONLY]
        return getattr(self, row.name)(*positional, **{one.name: arguments[one.name] for one in row.in_query})


def row_of(method: object) -> Operation:
    """The row of a table's method."""
    found = getattr(method, _ROW)
    assert isinstance(found, Operation)
    return found


def rows(table: type[Table]) -> dict[str, Operation]:
    """All rows of a table by name, then those of the tables that it extends."""
    declared = [pair for one in table.__mro__ for pair in vars(one).items()]
    return {name: row for name, method in declared if (row := getattr(method, _ROW, None))}
