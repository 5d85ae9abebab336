"""Review policy: the risk of a change by rules that are shown, and how often it may be sent back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from legion.domain.review.path_patterns import matches
from legion.domain.review.verdicts import ReviewRequest
from legion.domain.tickets import ladder
from legion.domain.tickets.ticket import Ticket

LARGE, SMALL = 400, 50
"""Changed lines from which on a change counts as large, and up to which as small."""
MANY_ATTEMPTS = 3
MIGRATIONS = ("**/migrations/**", "**/migrate/**", "**/alembic/versions/**", "**/*.sql")
DEPENDENCIES = (
    *("**/pyproject.toml", "**/requirements*.txt", "**/setup.py", "**/setup.cfg", "**/Pipfile", "**/package.json"),
    *("**/Cargo.toml", "**/go.mod", "**/Gemfile", "**/pom.xml", "**/build.gradle*", "**/composer.json", "**/*.csproj"),
)
_NAMED = 3


@dataclass(frozen=True, kw_only=True)
class ChangeScope:
    """What is known of a change before its review."""

    paths: tuple[str, ...]
    lines: int
    """Added and removed lines together."""
    protected: tuple[str, ...] = ()
    """Those of its paths that are protected, declared or not."""
    weakened: tuple[str, ...] = ()
    """Paths of tests that look weaker."""
    unproven: int = 0
    """Criteria to which no command is bound."""
    attempts: int = 1
    """How many it took."""
    unread: tuple[str, ...] = ()
    """Binary and very large files: no lines of them are counted."""


class RiskLevel(Enum):
    LOW = "low"
    """No rule speaks against it, and it is small."""
    MIDDLE = "middle"
    HIGH = "high"


def risks(touch: ChangeScope, watched: Sequence[str]) -> tuple[str, ...]:
    """The reasons to review a change, for people. `watched` are patterns of paths that are always reviewed."""
    return (*_serious(touch, watched), *_slight(touch))


def risk_level(touch: ChangeScope, watched: Sequence[str]) -> RiskLevel:
    if _serious(touch, watched):
        return RiskLevel.HIGH
    return RiskLevel.LOW if touch.lines <= SMALL and not _slight(touch) else RiskLevel.MIDDLE


def _serious(touch: ChangeScope, watched: Sequence[str]) -> list[str]:
    found = []
    if here := [path for path in touch.paths if matches(path, watched)]:
        found.append(f"it touches what is always reviewed ({_some(here)})")
    if touch.protected:
        found.append(f"it touches protected files ({_some(touch.protected)})")
    if touch.weakened:
        found.append(f"tests look weaker ({_some(touch.weakened)})")
    if here := [path for path in touch.paths if matches(path, MIGRATIONS, any_case=True)]:
        found.append(f"it changes the database ({_some(here)})")
    if touch.lines > LARGE:
        found.append(f"it changes {touch.lines} lines")
    return found


def _slight(touch: ChangeScope) -> list[str]:
    found = []
    if touch.unproven:
        found.append(
            "one criterion has no proof" if touch.unproven == 1 else f"{touch.unproven} criteria have no proof"
        )
    if here := [path for path in touch.paths if matches(path, DEPENDENCIES)]:
        found.append(f"it may change dependencies ({_some(here)})")
    if touch.unread:
        found.append(f"git shows no lines of it ({_some(touch.unread)})")
    if touch.attempts >= MANY_ATTEMPTS:
        found.append(f"it took {touch.attempts} attempts")
    return found


class ReviewResult(Enum):
    OPEN = "open"
    """More verdicts are needed."""
    APPROVED = "approved"
    SENT_BACK = "sent-back"
    NO_VERDICT = "no-verdict"
    """No reader asks for changes, and too few gave a verdict that can be used."""


def quorum(*, approved: int, against: int, silent: int, pending: int, needed: int) -> ReviewResult:
    """The result of all verdicts on a change so far. `needed`: approvals that are enough; 0: those of all readers.

    Where all have to approve, every reader is heard before the change goes back, so that it goes back once.
    """
    everyone = approved + against + silent + pending
    enough = min(needed, everyone) or everyone
    if approved >= enough and (pending == 0 or enough < everyone):
        return ReviewResult.APPROVED
    if pending and (enough == everyone or approved + pending >= enough):
        return ReviewResult.OPEN
    return ReviewResult.SENT_BACK if against else ReviewResult.NO_VERDICT


def rounds(ticket: Ticket, readings: Iterable[ReviewRequest], since: float = 0.0) -> int:
    """How many attempts on the ticket's present rung reviewers did not approve, since the person's last decision."""
    first = ticket.spared + ladder.place(ticket) * ticket.spec.max_attempts
    against = {
        reading.attempt
        for reading in readings
        if reading.binding and reading.sends_back and reading.given_at is not None and reading.given_at > since
    }
    return sum(attempt > first for attempt in against)


def _some(paths: Sequence[str]) -> str:
    return ", ".join(paths[:_NAMED]) + (", ..." if len(paths) > _NAMED else "")
