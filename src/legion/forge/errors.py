"""Errors of forges.

ForgeProblem
├── ForgeUnreachable    no network, or the forge answers with 5xx: everything waits
├── ForgeLimited        the forge's own limit, with its end
├── ForgeRefused        the token is wrong or has too few rights
├── ForgeMoved          the repository was renamed or is gone
├── MergeRefused        the forge's rules do not let it merge
└── NoPulls             a plain git remote has no issues and no pull requests
"""

from __future__ import annotations

from legion.domain.errors import BadInput, LegionError, NotAllowed, NotFound, Retryable, StateConflict


class ForgeProblem(LegionError):
    """Base of everything this room raises."""


class ForgeUnreachable(ForgeProblem, Retryable):
    pass


class ForgeLimited(ForgeProblem, Retryable):
    def __init__(self, message: str, until: float) -> None:
        super().__init__(message)
        self.until = until


class ForgeRefused(ForgeProblem, NotAllowed):
    pass


class ForgeMoved(ForgeProblem, NotFound):
    pass


class MergeRefused(ForgeProblem, StateConflict):
    pass


class NoPulls(ForgeProblem, BadInput):
    def __init__(self) -> None:
        super().__init__(
            "This forge is a plain git remote without issues and pull requests: run `legion forge add github` instead."
        )
