"""Which requests an agent's token opens at all, by the table of operations. Its rights there are checked behind them.

A list of what is open: a new operation is closed to agents until its row opens it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from legion.wire.operations import OPERATIONS
from legion.wire.orchestrate import OrchestrateOperations
from legion.wire.table import OpenTo, Operation, rows

CALLER = "legion.caller"
"""The key in a request's scope where the guard stores the Caller."""

_IN_PATH = {"TicketId": r"\d{1,18}", "QuestionId": r"\d{1,18}"}
_NAME = r"[A-Za-z0-9._-]{1,80}"
_NO_OPERATIONS = ("GET /health", "(GET|POST|DELETE) /mcp")


def _requests(open_to: tuple[OpenTo, ...]) -> Iterator[str]:
    yield from _NO_OPERATIONS
    for row in (*OPERATIONS.values(), *rows(OrchestrateOperations).values()):
        if row.open_to in open_to:
            yield f"{row.method} {pattern(row)}"


def pattern(row: Operation) -> str:
    """A regular expression for the paths of the row's requests."""
    return row.path.format(**{one.name: _IN_PATH.get(str(one.annotation), _NAME) for one in row.in_path})


_FOR_STANDING = re.compile("|".join(_requests((OpenTo.AGENTS, OpenTo.ALL))))
_FOR_TICKETS = re.compile("|".join(_requests((OpenTo.ALL,))))


def may_call(method: str, path: str, *, of_a_ticket: bool) -> bool:
    known = _FOR_TICKETS if of_a_ticket else _FOR_STANDING
    return known.fullmatch(f"{method} {path}") is not None
