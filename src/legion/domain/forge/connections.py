"""Stored facts about a project's forge: the connection, claims of issues, pull requests of tickets, feedback."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum

from legion.domain.forge.issues import IntakeRule
from legion.domain.forge.pulls import CiResult, PullStage


class ForgeKind(Enum):
    GITHUB = "github"
    GIT = "git"


class TokenFrom(Enum):
    """Where the token of a forge comes from."""

    KEPT = "kept"
    """A file of Legion's own, mode 0600."""
    FILE = "file"
    ENV = "env"
    COMMAND = "command"
    KEYRING = "keyring"
    GH = "gh"
    """The program `gh` prints it."""
    APP = "app"
    """A GitHub App buys one with its private key; the value is the app's id, and the key's file where it has one."""
    NONE = "none"


@dataclass(frozen=True, kw_only=True)
class ForgeConnection:
    project: int
    kind: ForgeKind
    url: str
    repository: str
    """OWNER/NAME; empty for a plain remote, whose url says all."""
    branch: str
    """The branch that landed work goes to."""
    key_from: TokenFrom
    key_value: str
    login: str
    label: str
    milestone: str
    assignee: str
    identity: str
    """Tells the claims of this Legion from those of others."""
    problem: str = ""
    problem_since: float | None = None
    wait_until: float | None = None
    synced_at: float | None = None
    added_at: float = 0.0

    @property
    def intake(self) -> IntakeRule:
        return IntakeRule(label=self.label, milestone=self.milestone, assignee=self.assignee)

    @property
    def name(self) -> str:
        return self.repository or self.url


class ClaimStage(Enum):
    CLAIMING = "claiming"
    """The claim is stored; its branch may exist or not."""
    CLAIMED = "claimed"
    TAKEN = "taken"
    """Another Legion, or a person, has it."""
    RELEASED = "released"
    """The work ended; label and comment say so."""


@dataclass(frozen=True, kw_only=True)
class IssueClaim:
    project: int
    number: int
    ticket: int | None
    stage: ClaimStage
    branch: str
    claim: str
    """The commit that the branch starts with."""
    comment: int | None = None
    wrote: str = ""
    """The digest of what the comment says."""
    request: Mapping[str, object] = field(default_factory=dict)
    """How the ticket was asked for: model, team and the like."""
    why: str = ""
    at: float = 0.0


@dataclass(frozen=True, kw_only=True)
class TicketPull:
    ticket: int
    project: int
    stage: PullStage
    branch: str
    base: str
    """The target that the change was tested on."""
    tested: str
    """The commit that passed all checks."""
    pushed: str = ""
    """The commit that Legion last put on the branch."""
    number: int | None = None
    url: str = ""
    wrote: str = ""
    foreign_commit: str = ""
    """A commit of a person on the branch: Legion leaves it alone."""
    merged: str = ""
    ci: CiResult = CiResult.NONE
    ruling: str = ""
    note: str = ""
    at: float = 0.0


PULL_OFFERS: dict[str, Callable[[TicketPull], bool]] = {
    "pull": lambda pull: True,
    "merge_pulls": lambda pull: pull.stage is PullStage.OPEN and pull.number is not None and not pull.foreign_commit,
}
"""The operations on a pull request, by their names, and whether each may be called now."""


def offered(pull: TicketPull) -> list[str]:
    return [name for name, rule in PULL_OFFERS.items() if rule(pull)]


@dataclass(frozen=True, kw_only=True)
class TakenFeedback:
    project: int
    source: str
    ticket: int
    thread: int | None
    answered: bool
