"""What can go wrong with a rehearsal.

RehearsalError
├── BadScript      the file cannot be played, whatever is asked
├── Unexpected     no script expects this request
└── NotStarted     the process does not listen
"""

from __future__ import annotations


class RehearsalError(Exception):
    """Base of what the rehearsal says no to; the message is one sentence for a person."""


class BadScript(RehearsalError):
    pass


class Unexpected(RehearsalError):
    pass


class RehearsalNotStarted(RehearsalError):
    pass
