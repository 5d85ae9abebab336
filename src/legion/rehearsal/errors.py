"""What can be wrong with a script or a request.

RehearsalError
├── BadScript      the file cannot be played, whatever is asked
└── Unexpected     no script expects this request
"""

from __future__ import annotations


class RehearsalError(Exception):
    """Base of what the rehearsal says no to; the message is one sentence for the script's author."""


class BadScript(RehearsalError):
    pass


class Unexpected(RehearsalError):
    pass
