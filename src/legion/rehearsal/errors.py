"""The errors of a rehearsal.

RehearsalError
├── BadScript              the file of a script cannot be used
├── Unexpected             no script expects this request
└── RehearsalNotStarted    the process does not listen
"""

from __future__ import annotations


class RehearsalError(Exception):
    """Base of all errors here; the message is one sentence for a person."""


class BadScript(RehearsalError):
    pass


class Unexpected(RehearsalError):
    pass


class RehearsalNotStarted(RehearsalError):
    pass
