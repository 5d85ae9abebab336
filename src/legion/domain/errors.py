"""The error tree: every error that is raised on purpose.

    LegionError                 exit 1
    ├── BadInput                exit 2    the request itself is invalid
    ├── NotFound                exit 3    no such ticket, project or run
    ├── NotAllowed              exit 4    understood and refused
    ├── StateConflict           exit 5    not possible in this state, or another caller was faster
    ├── ChecksFailed            exit 6    a check failed
    └── Retryable               exit 75   nothing is wrong; try again later

Each message is one sentence: what happened, then what to do.
"""

from __future__ import annotations


class LegionError(Exception):
    """Base of all errors that are shown to a person. `code` is stable and machine-readable."""

    exit_code = 1
    code = "failed"

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class BadInput(LegionError):
    exit_code = 2
    code = "bad_input"


class NotFound(LegionError):
    exit_code = 3
    code = "not_found"


class NotAllowed(LegionError):
    exit_code = 4
    code = "not_allowed"


class StateConflict(LegionError):
    exit_code = 5
    code = "conflict"


class ChecksFailed(LegionError):
    exit_code = 6
    code = "checks_failed"


class Retryable(LegionError):
    exit_code = 75
    code = "try_again"
