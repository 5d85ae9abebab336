"""The mapping between errors and HTTP answers, used by both sides.

Clients catch the same classes that the daemon raises, and need no other room for it. Every command imports this
first, so it does without typing and without the other shapes.
"""

from __future__ import annotations

from collections.abc import Mapping

from legion.domain.errors import BadInput, ChecksFailed, LegionError, NotAllowed, NotFound, Retryable, StateConflict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from legion.wire.projects import Problem

__all__ = [
    "HTTP_STATUS",
    "BadInput",
    "ChecksFailed",
    "LegionError",
    "NotAllowed",
    "NotFound",
    "Retryable",
    "StateConflict",
    "error_of",
    "kind_of",
    "problem_of",
]

HTTP_STATUS: dict[type[LegionError], int] = {
    BadInput: 422,
    NotFound: 404,
    NotAllowed: 403,
    StateConflict: 409,
    ChecksFailed: 422,
    Retryable: 503,
    LegionError: 500,
}
"""The HTTP status of each error; a subclass answers as its nearest parent."""

_BY_EXIT_CODE = {error.exit_code: error for error in HTTP_STATUS}


def problem_of(error: LegionError) -> Problem:
    from legion.wire.projects import Problem  # noqa: PLC0415

    return Problem(code=error.code, message=error.message, exit_code=error.exit_code)


def kind_of(exit_code: int) -> type[LegionError]:
    """The error that a program ended with."""
    return _BY_EXIT_CODE.get(exit_code, LegionError)


def error_of(problem: Mapping[str, Any]) -> LegionError:
    """The error that the other side raised, or its nearest parent that both sides know."""
    error = kind_of(problem["exit_code"])(problem["message"])
    error.code = problem["code"]
    return error
