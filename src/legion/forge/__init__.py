"""Forges: where issues and pull requests live. This file is the interface; each module is one kind.

Jobs are the only callers. A forge is read before it is written to, so that a repeated call changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from legion.domain.forge.issues import ForgeComment, ForgeIssue
from legion.domain.forge.pulls import ForgeCheck, ForgeReview, PullRequest


@dataclass(frozen=True, kw_only=True)
class GitRemote:
    """How git reaches the repository. The settings hold the token, so they never become arguments."""

    url: str
    settings: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class ForgeRepository:
    name: str
    default_branch: str
    may_push: bool
    login: str
    """The account that the token belongs to; empty where there is none."""


class Forge(Protocol):
    has_pulls: bool
    """False: it has branches and nothing else, and only `remote` and `repository` may be used."""

    @property
    def remote(self) -> GitRemote: ...

    def repository(self) -> ForgeRepository: ...

    def branch_tip(self, branch: str) -> str | None:
        """The commit of a branch; None where there is none."""
        ...

    def may_write(self, login: str) -> bool: ...

    # Issues

    def issues(self, label: str) -> tuple[ForgeIssue, ...]:
        """The open ones with that label."""
        ...

    def issues_of_milestone(self, title: str) -> tuple[ForgeIssue, ...] | None:
        """The open ones, oldest first; None where there is no such milestone."""
        ...

    def issue(self, number: int) -> ForgeIssue | None:
        """None where it was deleted."""
        ...

    def comments(self, number: int) -> tuple[ForgeComment, ...]: ...

    def recent_comments(self) -> tuple[ForgeComment, ...]:
        """The latest of all issues, newest first; `reply_to` is the number of the issue."""
        ...

    def say(self, number: int, body: str, *, known: int | None, mark: str) -> int:
        """Write the comment that holds `mark`, or change it. Returns its id; `known` is the one of the last call."""
        ...

    def set_label(self, number: int, name: str, *, there: bool) -> None: ...

    def close_issue(self, number: int) -> None:
        """Say that it is completed."""
        ...

    # Pull requests

    def pull_of(self, branch: str) -> PullRequest | None:
        """The latest one of a branch of this repository, in any state."""
        ...

    def pull(self, number: int) -> PullRequest | None: ...

    def open_pull(self, *, title: str, body: str, branch: str, base: str, draft: bool) -> PullRequest: ...

    def describe_pull(self, number: int, *, title: str, body: str) -> None: ...

    def set_draft(self, pull: PullRequest, draft: bool) -> None: ...

    def close_pull(self, number: int) -> None: ...

    def reviews(self, number: int) -> tuple[ForgeReview, ...]: ...

    def line_comments(self, number: int) -> tuple[ForgeComment, ...]: ...

    def reply(self, number: int, thread: int, body: str, *, mark: str) -> None: ...

    def checks(self, commit: str) -> tuple[ForgeCheck, ...]: ...

    def merge(self, pull: PullRequest, method: str) -> str:
        """Merge exactly this commit. Returns the merge commit; empty where the forge queued it."""
        ...
