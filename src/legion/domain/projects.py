"""A project: a git repository that Legion manages, and what is known of its target."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from legion.domain.checks import CheckResult

DEFAULT_SESSION = "default"
EPIC_SESSION = "epic-"
"""The start of the name of a session that is the branch of an epic."""
_SLUG = 45
_SESSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}")


class ConfigOrigin(Enum):
    """Where the legion.toml in force was read from."""

    TARGET = "target"
    """From the target commit: the normal case."""
    CHECKOUT = "checkout"
    """From the person's checkout, because the target has none yet."""


@dataclass(frozen=True, kw_only=True)
class Project:
    id: int
    name: str
    root: str
    """The person's checkout."""
    common_dir: str
    """The git folder that all checkouts of the repository share: one project per such folder and session."""
    branch: str
    worktrees: str
    """The folder that holds its worktrees."""
    config_text: str
    """The legion.toml in force."""
    config_hash: str
    config_origin: ConfigOrigin
    target: str
    """The commit of the integration branch, as the hub has it."""
    paused: bool = False
    baseline_commit: str | None = None
    """The commit on which the project's checks ran last."""
    baseline_verdict: CheckResult | None = None
    person_tip: str | None = None
    """The last commit seen on the person's branch."""
    person_absorbed: str | None = None
    """The person's last commit that the target holds."""
    person_refused: str | None = None
    """The person's commit that could not be absorbed; not tried again."""
    created_at: float = 0.0
    removed_at: float | None = None
    workers: int | None = None
    """How many agents work at once, where the person set that without a commit; None: as legion.toml says."""
    retries: int | None = None
    """How often a ticket is tried, where the person set that; None: as legion.toml says."""
    frozen: bool = False
    """The person froze everything: nothing new starts until `legion resume --all`."""
    session: str = ""
    """The name of the session; empty for the default one. All sessions of a repository share `common_dir`."""
    chosen: bool = False
    """Whether commands act on this session where they name none. Without a chosen one they act on the default."""
    base_commit: str | None = None
    """Where its branch was when the session was made."""
    version: int = 0

    @property
    def session_name(self) -> str:
        return self.session or DEFAULT_SESSION

    @property
    def resumed_by(self) -> str:
        """The command that lets a paused project start work again."""
        return "legion resume --all" if self.frozen else "legion resume"

    @property
    def baseline_known(self) -> bool:
        """The checks have run on the target as it is now."""
        return self.baseline_commit == self.target and self.baseline_verdict is not None

    @property
    def baseline_red(self) -> bool:
        return self.baseline_known and self.baseline_verdict is CheckResult.RED

    @property
    def upstream_pending(self) -> bool:
        """The person committed something that the target lacks and that was not refused yet."""
        settled = (None, self.target, self.person_absorbed, self.person_refused)
        return self.person_tip not in settled


def session_of_branch(branch: str) -> str:
    """The name of a session that is bound to this branch."""
    return branch.replace("/", "-")


def epic_slug(epic: str) -> str:
    """The epic's name as a part of a branch and of a session."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", epic).replace("..", ".").strip("-.")[:_SLUG].strip("-.") or "work"


def is_session_of_epic(session: str, epic: str) -> bool:
    """Whether a session is the epic's own: `epic-NAME`, or `epic-NAME-2` where the name was used before."""
    return re.fullmatch(rf"{EPIC_SESSION}{re.escape(epic_slug(epic))}(-[0-9]+)?", session) is not None


def session_fault(name: str) -> str:
    """Why a session cannot have this name; empty where it can."""
    if name == DEFAULT_SESSION:
        return "is the session that every project has"
    if not _SESSION.fullmatch(name) or ".." in name or name.endswith("."):
        return "must be at most 60 letters, digits, `-`, `_` and `.`"
    return ""


def acting(sessions: Iterable[Project]) -> Project | None:
    """Of the sessions of one repository, the one that commands act on."""
    there = sorted(sessions, key=lambda one: (not one.chosen, one.session != "", one.id))
    return there[0] if there else None
