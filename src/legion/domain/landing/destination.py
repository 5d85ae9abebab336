"""The destination of landed work: only the hub, a branch elsewhere, or a pull request."""

from __future__ import annotations

from enum import Enum


class PullUnit(Enum):
    """What becomes one pull request, with the target `pr`."""

    TICKET = "ticket"
    EPIC = "epic"
    """All tickets of an epic together; a ticket without an epic still has its own."""


class LandingTarget(Enum):
    LOCAL = "local"
    """The target branch is in the hub; `legion collect` brings it to the person."""
    BRANCH = "branch"
    """Each landed commit is pushed to the branch of the project's forge."""
    PR = "pr"
    """A proven change becomes a pull request, and lands when that is merged."""
