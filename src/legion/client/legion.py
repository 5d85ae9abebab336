"""The daemon as an object: one method per operation, with the wire's dataclasses in and out.

The methods are the rows of wire/operations; `perform` sends each as one HTTP request. A row is looked up when it is
called: a command does not pay for the shapes of the others.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from legion import __version__
from legion.client.http import ANSWER_TIMEOUT, DaemonAddress, DaemonConnection, OtherVersion
from legion.client.shapes import UnreadableAnswer, read
from legion.wire import SUBJECTS
from legion.wire.table import Operation, Table, row_of

if TYPE_CHECKING:
    from legion.wire.operations import Operations
    from legion.wire.tickets import EventLine
else:

    class Operations(Table):
        """The same rows; the subject of each is imported when it is first called."""

        def __getattr__(self, name: str) -> Callable[..., object]:
            return _method(name).__get__(self)


Shape = TypeVar("Shape")

LONGEST_WAIT = 20.0
"""Seconds of one long poll; a connection that is silent for longer is dead."""
_GRACE = 30.0
"""Seconds that the answer to a long poll may come late."""


@cache
def _method(name: str) -> Any:  # noqa: ANN401 - of any signature
    for subject in sorted(SUBJECTS, key=lambda one: f"legion.wire.{one}" not in sys.modules):
        for held in vars(import_module(f"legion.wire.{subject}")).values():
            if isinstance(held, type) and issubclass(held, Table) and name in vars(held):
                return vars(held)[name]
    raise AttributeError(name)


def row_named(name: str) -> Operation:
    return row_of(_method(name))


class Legion(Operations):
    def __init__(self, address: DaemonAddress, line: DaemonConnection | None = None) -> None:
        self.address = address
        self.line = line or DaemonConnection(address)
        self.before: Callable[[Operation, Mapping[str, Any]], None] | None = None
        """Called before each request; it may refuse one."""

    @property
    def other_version(self) -> str | None:
        """The daemon's version where it is not ours."""
        return self.line.daemon_version if self.line.daemon_version != __version__ else None

    def perform(self, row: Operation, arguments: Mapping[str, Any]) -> Any:  # noqa: ANN401 - the row says what
        """Raises OtherVersion where the answer lacks a field that this version needs."""
        if self.before is not None:
            self.before(row, arguments)
        body, timeout = row.body, ANSWER_TIMEOUT
        if "timeout" in arguments:
            timeout = max(0.0, min(arguments["timeout"], LONGEST_WAIT))
            arguments = {**arguments, "timeout": timeout}
            timeout += _GRACE
        answer = self.line.ask(
            row.method,
            row.path.format(**{one.name: _in_path(arguments[one.name]) for one in row.in_path}),
            query={one.name: arguments[one.name] for one in row.in_query},
            body=None if body is None else arguments[body.name],
            timeout=timeout,
        )
        return self.understood(row.answer, answer)

    def healthy(self) -> bool:
        """Whether the daemon answers at all; raises NotRunning where none listens."""
        return bool(self.line.ask("GET", "/health", timeout=30) == {"status": "healthy"})

    def events(self, after: int, *, cwd: str | None = None, ticket: int | None = None) -> Iterator[EventLine | None]:
        """Events after that number and then as they happen; None for each heartbeat between them."""
        from legion.wire.tickets import EventLine  # noqa: PLC0415  # most commands follow no events

        for data in self.line.follow("/v1/events", query={"after": after, "cwd": cwd, "ticket": ticket}):
            yield None if data is None else self.understood(EventLine, data)

    def understood(self, shape: type[Shape], data: object) -> Shape:
        """The daemon's answer in its shape. Raises OtherVersion where it does not fit."""
        try:
            return read(shape, data)
        except UnreadableAnswer:
            raise OtherVersion(self.line.daemon_version) from None


def _in_path(value: object) -> str:
    if isinstance(value, int):
        return str(value)
    from urllib.parse import quote  # noqa: PLC0415  # most commands name no agent

    return quote(str(value), safe="")
