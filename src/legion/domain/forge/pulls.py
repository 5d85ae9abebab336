"""Pull requests: what CI and reviews say together, whether one may merge, and what goes back to the agent."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from legion.domain.forge.issues import ForgeComment, command_in, is_ours

_MOST = 8_000


class PullStage(Enum):
    """Where the pull request of a ticket is, as Legion has recorded it."""

    OFFERED = "offered"
    """Its change passed all checks and waits to be pushed."""
    OPEN = "open"
    """The forge has it."""
    AWAY = "away"
    """Its ticket is at work again: nothing is pushed until the next change has passed."""
    MERGED = "merged"
    """The forge merged it; the target does not contain it yet."""
    LANDED = "landed"
    CLOSED = "closed"
    """A person closed it, or its ticket ended."""


class PullState(Enum):
    """As the forge has it."""

    OPEN = "open"
    MERGED = "merged"
    CLOSED = "closed"


@dataclass(frozen=True, kw_only=True)
class PullRequest:
    number: int
    node: str
    url: str
    state: PullState
    title: str
    body: str
    author: str
    draft: bool
    branch: str
    commit: str
    base: str
    from_fork: bool = False
    mergeable: bool | None = None
    merge_commit: str = ""


class ReviewRuling(Enum):
    APPROVED = "approved"
    CHANGES = "changes"
    COMMENT = "comment"
    DISMISSED = "dismissed"


@dataclass(frozen=True, kw_only=True)
class ForgeReview:
    id: int
    author: str
    ruling: ReviewRuling
    body: str


class CiResult(Enum):
    NONE = "none"
    """No check is configured. That is not green."""
    PENDING = "pending"
    GREEN = "green"
    RED = "red"


@dataclass(frozen=True, kw_only=True)
class ForgeCheck:
    name: str
    result: CiResult
    """NONE: it was skipped."""
    text: str = ""
    url: str = ""


def ci_result(checks: Iterable[ForgeCheck]) -> CiResult:
    """All checks of one commit together."""
    results = {one.result for one in checks}
    for result in (CiResult.RED, CiResult.PENDING, CiResult.GREEN):
        if result in results:
            return result
    return CiResult.NONE


def approval(reviews: Sequence[ForgeReview], writers: Collection[str]) -> ReviewRuling | None:
    """The last word of each person who may write, together: None where none of them approved or refused."""
    latest: dict[str, ReviewRuling] = {}
    for review in reviews:
        if review.author in writers and review.ruling is not ReviewRuling.COMMENT:
            latest[review.author] = review.ruling
    if ReviewRuling.CHANGES in latest.values():
        return ReviewRuling.CHANGES
    return ReviewRuling.APPROVED if ReviewRuling.APPROVED in latest.values() else None


def merge_fault(
    pull: PullRequest,
    ci: CiResult,
    ruling: ReviewRuling | None,
    *,
    without_checks: bool = False,
    without_review: bool = False,
) -> str:
    """Why it may not merge now; empty where it may."""
    if pull.state is not PullState.OPEN:
        return f"it is {pull.state.value}"
    if pull.draft:
        return "it is a draft"
    if ci is CiResult.NONE and not without_checks:
        return "no checks are configured, which is not green: add --no-checks to accept that"
    if ci in (CiResult.RED, CiResult.PENDING):
        return "its checks failed" if ci is CiResult.RED else "its checks are running"
    if ruling is ReviewRuling.CHANGES:
        return "a reviewer requests changes"
    if ruling is None and not without_review:
        return "it has no approval: add --skip-review to accept that"
    if pull.mergeable is False:
        return "it conflicts with its base"
    return "the forge is still computing whether it can merge" if pull.mergeable is None else ""


@dataclass(frozen=True, kw_only=True)
class Remark:
    """One thing that the agent has to deal with. `source` is unique, so each is taken once."""

    source: str
    text: str
    thread: int | None = None
    """The comment on a line that gets an answer."""


def remarks_of(
    commit: str,
    checks: Sequence[ForgeCheck],
    reviews: Sequence[ForgeReview],
    comments: Sequence[ForgeComment],
    line_comments: Sequence[ForgeComment],
    *,
    writers: Collection[str],
) -> list[Remark]:
    """What of all this is for the agent: failed checks, and words of people who may write."""
    found: list[Remark] = []
    failed = [one for one in checks if one.result is CiResult.RED]
    if failed and ci_result(checks) is CiResult.RED:
        listed = "\n\n".join(f"### {one.name}\n\n{_quoted(one.text or one.url)}" for one in failed)
        found.append(Remark(source=f"ci:{commit}", text=f"CI of the forge failed on your change:\n\n{listed}"))
    for review in reviews:
        if _counts(review.author, review.body, writers) and review.ruling in (
            ReviewRuling.CHANGES,
            ReviewRuling.COMMENT,
        ):
            found.append(
                Remark(source=f"review:{review.id}", text=_quoted_comment(review.author, "reviewed it", review.body))
            )
        elif review.ruling is ReviewRuling.CHANGES and review.author in writers:
            found.append(Remark(source=f"review:{review.id}", text=f"{review.author} requests changes."))
    for one in line_comments:
        if _counts(one.author, one.body, writers):
            place = f"commented on {one.path}" + (f", line {one.line}" if one.line else "")
            text = _quoted_comment(one.author, place, one.body)
            found.append(Remark(source=f"line:{one.id}", text=text, thread=one.reply_to or one.id))
    for one in comments:
        if _counts(one.author, one.body, writers) and command_in(one.body) is None:
            found.append(Remark(source=f"comment:{one.id}", text=_quoted_comment(one.author, "commented", one.body)))
    return found


def _counts(author: str, body: str, writers: Collection[str]) -> bool:
    return author in writers and bool(body.strip()) and not is_ours(body)


def _quoted_comment(author: str, did: str, body: str) -> str:
    return f"{author} {did}:\n\n{_quoted(body)}"


def feedback(url: str, remarks: Sequence[Remark]) -> str:
    parts = [f"Your change is pull request {url}. This came back; deal with each point:"]
    return "\n\n".join([*parts, *(one.text for one in remarks)])


def _quoted(text: str) -> str:
    short = text if len(text) <= _MOST else f"{text[: _MOST // 2]}\n[... cut ...]\n{text[-_MOST // 2 :]}"
    return "\n".join(f"    {line}" for line in short.strip().splitlines()) or "    (no text)"
