"""The state of the stand-in: one repository with its people, issues, pull requests, reviews and checks.

Branches are those of a real bare repository. A person of a test or of the demo acts through the methods of `Hosted`.
"""

from __future__ import annotations

import subprocess
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

RIGHTS = ("none", "read", "triage", "write", "maintain", "admin")
"""What a person may do in the repository, the least first."""


@dataclass(kw_only=True)
class HostedComment:
    id: int
    author: str
    body: str
    at: datetime
    edited: datetime
    reply_to: int | None = None
    path: str = ""
    line: int | None = None
    commit: str = ""


@dataclass(kw_only=True)
class HostedReview:
    id: int
    author: str
    state: str
    body: str
    commit: str
    at: datetime


@dataclass(kw_only=True)
class HostedCheck:
    id: int
    name: str
    status: str
    conclusion: str | None
    summary: str
    text: str
    at: datetime


@dataclass(kw_only=True)
class CommitStatus:
    id: int
    context: str
    state: str
    description: str
    author: str
    at: datetime


@dataclass(kw_only=True)
class HostedIssue:
    """An issue, or the issue side of a pull request."""

    number: int
    title: str
    body: str
    author: str
    at: datetime
    updated: datetime
    state: str = "open"
    reason: str | None = None
    closed: datetime | None = None
    labels: list[str] = field(default_factory=list)
    assignees: list[str] = field(default_factory=list)
    milestone: str = ""
    comments: list[HostedComment] = field(default_factory=list)
    deleted: bool = False
    pull: HostedPull | None = None


@dataclass(kw_only=True)
class HostedPull:
    head: str
    base: str
    head_commit: str
    draft: bool
    fork: str = ""
    """The owner of the fork that it comes from; empty: the repository itself."""
    merged: str = ""
    """The merge commit."""
    merged_by: str = ""
    reviews: list[HostedReview] = field(default_factory=list)
    remarks: list[HostedComment] = field(default_factory=list)
    unknown_merges: int = 0
    """How often `mergeable` is still null."""
    queued: bool = False


class Hosted:
    """One repository of the stand-in. All methods may be called from any thread."""

    def __init__(self, owner: str, name: str, bare: Path) -> None:
        self.lock = threading.RLock()
        self.id = 1000
        self.owner = owner
        self.name = name
        self.former: set[str] = set()
        """Full names that it had before."""
        self.bare = bare
        self.default_branch = "main"
        self.rights: dict[str, str] = {owner: "admin"}
        self.issues: dict[int, HostedIssue] = {}
        self.checks: dict[str, list[HostedCheck]] = {}
        self.statuses: dict[str, list[CommitStatus]] = {}
        self.required: list[str] = []
        """Names of checks that its branch protection requires."""
        self.approvals = 0
        """Approvals that its branch protection requires."""
        self.merge_queue = False
        self._last_id = 1000

    @property
    def full_name(self) -> str:
        return f"{self.owner}/{self.name}"

    def next_id(self) -> int:
        with self.lock:
            self._last_id += 1
            return self._last_id

    def rename(self, name: str) -> None:
        with self.lock:
            self.former.add(self.full_name)
            self.name = name

    def right_of(self, login: str) -> str:
        return self.rights.get(login, "none")

    def may(self, login: str, right: str) -> bool:
        return RIGHTS.index(self.right_of(login)) >= RIGHTS.index(right)

    # What people do

    def open_issue(self, title: str, body: str = "", *, author: str = "", labels: tuple[str, ...] = ()) -> HostedIssue:
        with self.lock:
            number = max(self.issues, default=0) + 1
            at = now()
            issue = HostedIssue(number=number, title=title, body=body, author=author or self.owner, at=at, updated=at)
            issue.labels = list(labels)
            self.issues[number] = issue
            return issue

    def milestone(self, title: str) -> int:
        """The number of a milestone; 0 for no title."""
        titles = dict.fromkeys(issue.milestone for issue in self.issues.values() if issue.milestone)
        return list(titles).index(title) + 1 if title else 0

    def label(self, number: int, *names: str) -> None:
        with self.lock:
            issue = self.issues[number]
            issue.labels += [name for name in names if name not in issue.labels]
            issue.updated = now()

    def comment(self, number: int, body: str, *, author: str) -> HostedComment:
        with self.lock:
            at = now()
            made = HostedComment(id=self.next_id(), author=author, body=body, at=at, edited=at)
            self.issues[number].comments.append(made)
            self.issues[number].updated = at
            return made

    def close(self, number: int, *, reason: str = "completed") -> None:
        with self.lock:
            issue = self.issues[number]
            issue.state, issue.reason, issue.closed = "closed", reason, now()
            issue.updated = now()

    def reopen(self, number: int) -> None:
        with self.lock:
            issue = self.issues[number]
            issue.state, issue.reason, issue.closed = "open", "reopened", None
            issue.updated = now()

    def delete_issue(self, number: int) -> None:
        with self.lock:
            self.issues[number].deleted = True

    def review(self, number: int, state: str, body: str = "", *, author: str) -> HostedReview:
        with self.lock:
            pull = self.pull(number)
            made = HostedReview(
                id=self.next_id(), author=author, state=state, body=body, commit=pull.head_commit, at=now()
            )
            pull.reviews.append(made)
            self.issues[number].updated = now()
            return made

    def remark(
        self, number: int, body: str, *, author: str, path: str, line: int = 1, reply_to: int | None = None
    ) -> HostedComment:
        """A comment on a line of a pull request."""
        with self.lock:
            pull, at = self.pull(number), now()
            made = HostedComment(
                id=self.next_id(), author=author, body=body, at=at, edited=at, path=path, line=line,
                commit=pull.head_commit, reply_to=reply_to,
            )  # fmt: skip
            pull.remarks.append(made)
            self.issues[number].updated = at
            return made

    def check(self, commit: str, name: str, conclusion: str | None, *, summary: str = "", text: str = "") -> None:
        """A check run as Actions or another app reports it; `None`: it is still running."""
        with self.lock:
            runs = [run for run in self.checks.get(commit, []) if run.name != name]
            status = "completed" if conclusion else "in_progress"
            made = HostedCheck(
                id=self.next_id(), name=name, status=status, conclusion=conclusion, summary=summary, text=text, at=now()
            )
            self.checks[commit] = [*runs, made]

    def status(self, commit: str, context: str, state: str, description: str = "", *, author: str) -> CommitStatus:
        with self.lock:
            made = CommitStatus(
                id=self.next_id(), context=context, state=state, description=description, author=author, at=now()
            )
            self.statuses.setdefault(commit, []).append(made)
            return made

    # Pull requests

    def open_pull(
        self, title: str, body: str, *, head: str, base: str, author: str, draft: bool, fork: str = ""
    ) -> HostedIssue:
        with self.lock:
            issue = self.open_issue(title, body, author=author)
            issue.pull = HostedPull(head=head, base=base, head_commit=self.tip(head) or "", draft=draft, fork=fork)
            return issue

    def pull(self, number: int) -> HostedPull:
        found = self.issues[number].pull
        assert found is not None, f"#{number} is no pull request"
        return found

    def refresh(self) -> None:
        """Follow the branches of open pull requests, as GitHub does after a push."""
        with self.lock:
            for issue in self.issues.values():
                if issue.pull is None or issue.state != "open" or issue.pull.fork:
                    continue
                tip = self.tip(issue.pull.head)
                if tip is None:
                    issue.state, issue.closed = "closed", now()
                elif tip != issue.pull.head_commit:
                    issue.pull.head_commit = tip
                    issue.updated = now()

    def mergeable(self, pull: HostedPull) -> bool:
        base = self.tip(pull.base)
        if base is None:
            return False
        merged = self.git("merge-tree", "--write-tree", base, pull.head_commit, check=False)
        return merged.returncode == 0

    def blocked(self, pull: HostedPull) -> str:
        """Why branch protection refuses the merge; empty where it does not."""
        for name in self.required:
            runs = [run.conclusion for run in self.checks.get(pull.head_commit, []) if run.name == name]
            if runs != ["success"]:
                return f'Required status check "{name}" is expected.'
        latest = {review.author: review.state for review in pull.reviews if review.state != "COMMENTED"}
        approvals = sum(1 for login, state in latest.items() if state == "APPROVED" and self.may(login, "write"))
        if "CHANGES_REQUESTED" in latest.values() and self.approvals:
            return "Changes have been requested."
        if approvals < self.approvals:
            return f"At least {self.approvals} approving review is required by reviewers with write access."
        return ""

    def merge(self, number: int, *, by: str, method: str = "merge") -> str:
        """Merge a pull request into its base. Returns the commit."""
        with self.lock:
            issue, pull = self.issues[number], self.pull(number)
            base = self.tip(pull.base)
            assert base is not None
            tree = self.git("merge-tree", "--write-tree", base, pull.head_commit).stdout.split()[0]
            parents = [base] if method in ("squash", "rebase") else [base, pull.head_commit]
            flags = [flag for parent in parents for flag in ("-p", parent)]
            commit = self.git("commit-tree", tree, *flags, "-m", f"{issue.title} (#{number})").stdout.strip()
            self.git("update-ref", f"refs/heads/{pull.base}", commit, base)
            pull.merged, pull.merged_by = commit, by
            self.close(number)
            for other in self.issues.values():
                if other.pull is None and f"closes #{other.number}\n" in f"{issue.body.lower()}\n":
                    self.close(other.number)
            return commit

    # Git

    def tip(self, branch: str) -> str | None:
        """Read from git's files: every request asks for it, and a program for each would take most of the time."""
        name = f"refs/heads/{branch}"
        try:
            return (self.bare / name).read_text().strip()
        except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
            pass
        packed = self.bare / "packed-refs"
        lines = packed.read_text().splitlines() if packed.exists() else []
        return next((line.split(" ", 1)[0] for line in lines if line.endswith(f" {name}")), None)

    def branches(self) -> dict[str, str]:
        lines = self.git("for-each-ref", "--format=%(refname:short) %(objectname)", "refs/heads/").stdout.splitlines()
        return dict(line.split(" ", 1) for line in lines)

    def git(self, *args: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        names = {
            f"GIT_{who}_{what}": value
            for who in ("AUTHOR", "COMMITTER")
            for what, value in (("NAME", "Forge"), ("EMAIL", "forge@example.invalid"))
        }
        env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "GIT_CONFIG_NOSYSTEM": "1", "HOME": "/nonexistent", **names}
        return subprocess.run(
            ("git", *args), cwd=self.bare, env=env, check=check, capture_output=True, text=True, timeout=60
        )


def now() -> datetime:
    return datetime.now(UTC)
