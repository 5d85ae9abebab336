"""Errors between a machine and its head.

MachineError
├── HeadUnreachable   no answer, or none that makes sense: try again
├── OutOfDate         the two releases are too far apart
├── NotAMachine       the token is not valid, or no longer
├── Fenced            the run is not this machine's, or no longer
└── HeadRefused           the head refuses this request
    └── OffsetGap     a piece does not continue its file
"""

from __future__ import annotations

from legion.domain.errors import LegionError, NotAllowed


class MachineError(LegionError):
    pass


class HeadUnreachable(MachineError):
    pass


class OutOfDate(MachineError):
    pass


class NotAMachine(MachineError):
    exit_code = NotAllowed.exit_code


class Fenced(MachineError):
    pass


class HeadRefused(MachineError):
    pass


class OffsetGap(HeadRefused):
    def __init__(self, size: int) -> None:
        super().__init__(f"The head has {size} bytes of this file.")
        self.size = size
