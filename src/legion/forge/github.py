"""GitHub and GitHub Enterprise as a forge, by their REST API; three mutations exist only in GraphQL."""

from __future__ import annotations

import base64
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import quote, urlencode, urlsplit

from legion.domain.forge.issues import ForgeComment, ForgeIssue
from legion.domain.forge.pulls import CiResult, ForgeCheck, ForgeReview, PullRequest, PullState, ReviewRuling
from legion.domain.text import AnyJson
from legion.forge import ForgeRepository, GitRemote
from legion.forge.errors import ForgeMoved, ForgeProblem, ForgeRefused, MergeRefused
from legion.forge.http import ForgeHttp, HttpReply, is_local, refuse_open_http

PUBLIC = "https://github.com"
ACCEPT = "application/vnd.github+json"
_GREEN = ("success",)
_SKIPPED = ("skipped", "neutral")
_OURS = "legion/"
_RULINGS = {
    "APPROVED": ReviewRuling.APPROVED,
    "CHANGES_REQUESTED": ReviewRuling.CHANGES,
    "DISMISSED": ReviewRuling.DISMISSED,
}
_MUTATION = "mutation($pull: ID!) {{ {name}(input: {{pullRequestId: $pull}}) {{ clientMutationId }} }}"
_PAGE = 100
_RIGHTS_LAST = 60.0
"""Seconds for which an answer about a person's rights counts."""


@dataclass(frozen=True, kw_only=True)
class _WriteRight:
    may: bool
    at: float


class TokenSource(Protocol):
    """A token that changes by itself, as that of a GitHub App does."""

    def token(self) -> str: ...

    def login(self) -> str:
        """The account that writes with it."""
        ...


class GitHub:
    has_pulls = True

    def __init__(
        self, repository: str, token: str | TokenSource, *, url: str = PUBLIC, clock: Callable[[], float] = time.time
    ) -> None:
        refuse_open_http(url)
        self._name = repository
        self._source = None if isinstance(token, str) else token
        self._token: Callable[[], str] = (lambda: token) if isinstance(token, str) else token.token
        self._site = url.rstrip("/")
        api = api_of(url)
        self._graphql = f"{api}/graphql" if self._site == PUBLIC else f"{self._site}/api/graphql"
        # Writes are a second apart, as GitHub asks for; a stand-in on this machine has no such limit.
        pace = 0.0 if is_local(self._site) else 1.0
        self._http = ForgeHttp(api, self._token, accept=ACCEPT, pace=pace, clock=clock)
        self._repo = f"/repos/{repository}"
        self._clock = clock
        self._writers: dict[str, _WriteRight] = {}

    @property
    def remote(self) -> GitRemote:
        basic = base64.b64encode(f"x-access-token:{self._token()}".encode()).decode()
        scheme = urlsplit(self._site).scheme
        return GitRemote(
            url=f"{self._site}/{self._name}.git",
            settings={
                f"protocol.{scheme}.allow": "always",
                f"http.{self._site}/.extraHeader": f"Authorization: Basic {basic}",
                "http.followRedirects": "false",
            },
        )

    def repository(self) -> ForgeRepository:
        found = self._get(self._repo)
        login = self._login()
        # A token of an app is sold with write access or not at all, and its `permissions` are those of no person.
        may_push = self._source is not None or bool((found.get("permissions") or {}).get("push"))
        self._writers.clear()
        return ForgeRepository(
            name=str(found["full_name"]), default_branch=str(found["default_branch"]), may_push=may_push, login=login
        )

    def branch_tip(self, branch: str) -> str | None:
        reply = self._http.get(f"{self._repo}/git/ref/heads/{quote(branch)}", accept=(200, 404))
        if reply.status == 404:
            # A repository that is gone answers alike, and is another matter.
            self._get(self._repo)
            return None
        self._raise_unless(reply, 200)
        return str(reply.body["object"]["sha"])

    def may_write(self, login: str) -> bool:
        """Asked again after a minute: rights are given and taken while Legion runs."""
        known = self._writers.get(login)
        if known is None or self._clock() - known.at >= _RIGHTS_LAST:
            reply = self._http.get(f"{self._repo}/collaborators/{quote(login)}/permission", accept=(200, 404))
            if reply.status not in (200, 404):
                self._raise(reply)
            told = reply.body or {}
            may = reply.status == 200 and told.get("permission") in ("admin", "write")
            known = self._writers[login] = _WriteRight(may=may, at=self._clock())
        return known.may

    # Issues

    def issues(self, label: str) -> tuple[ForgeIssue, ...]:
        query = urlencode({"state": "open", "labels": label, "sort": "updated", "per_page": _PAGE})
        rows = self._all(f"{self._repo}/issues?{query}")
        return tuple(_issue(row) for row in rows if "pull_request" not in row)

    def issues_of_milestone(self, title: str) -> tuple[ForgeIssue, ...] | None:
        listed = self._all(f"{self._repo}/milestones?{urlencode({'state': 'all', 'per_page': _PAGE})}")
        number = next((int(row["number"]) for row in listed if row["title"] == title), None)
        if number is None:
            return None
        query = urlencode({"state": "open", "milestone": number, "direction": "asc", "per_page": _PAGE})
        rows = self._all(f"{self._repo}/issues?{query}")
        return tuple(_issue(row) for row in rows if "pull_request" not in row)

    def issue(self, number: int) -> ForgeIssue | None:
        reply = self._http.get(f"{self._repo}/issues/{number}", accept=(200, 404, 410))
        if reply.status in (404, 410):
            # A repository that is gone answers alike, and is another matter.
            self._get(self._repo)
            return None
        self._raise_unless(reply, 200)
        return None if "pull_request" in reply.body else _issue(reply.body)

    def comments(self, number: int) -> tuple[ForgeComment, ...]:
        rows = self._all(f"{self._repo}/issues/{number}/comments?per_page={_PAGE}")
        return tuple(_comment(row) for row in rows)

    def recent_comments(self) -> tuple[ForgeComment, ...]:
        query = urlencode({"sort": "updated", "direction": "desc", "per_page": _PAGE})
        rows = self._all(f"{self._repo}/issues/comments?{query}", most=1)
        return tuple(_comment(row, issue=int(str(row["issue_url"]).rsplit("/", 1)[1])) for row in rows)

    def say(self, number: int, body: str, *, known: int | None, mark: str) -> int:
        found = known
        if found is None:
            found = next(
                (one.id for one in self.comments(number) if mark in one.body and self._is_us(one.author)), None
            )
        if found is not None:
            reply = self._http.send("PATCH", f"{self._repo}/issues/comments/{found}", {"body": body}, accept=(200, 404))
            if reply.status == 200:
                return found
            if reply.status != 404:
                self._raise(reply)
        reply = self._http.send("POST", f"{self._repo}/issues/{number}/comments", {"body": body})
        self._raise_unless(reply, 201)
        return int(reply.body["id"])

    def set_label(self, number: int, name: str, *, there: bool) -> None:
        if there:
            reply = self._http.send("POST", f"{self._repo}/issues/{number}/labels", {"labels": [name]})
        else:
            path = f"{self._repo}/issues/{number}/labels/{quote(name, safe='')}"
            reply = self._http.send("DELETE", path, None, accept=(200, 204, 404, 410))
        self._raise_unless(reply, 200, 204, 404, 410)

    def close_issue(self, number: int) -> None:
        wanted = {"state": "closed", "state_reason": "completed"}
        reply = self._http.send("PATCH", f"{self._repo}/issues/{number}", wanted, accept=(200, 404, 410))
        # An issue that a person deleted needs no end.
        self._raise_unless(reply, 200, 404, 410)

    # Pull requests

    def pull_of(self, branch: str) -> PullRequest | None:
        owner = self._name.partition("/")[0]
        query = urlencode({"head": f"{owner}:{branch}", "state": "all", "per_page": _PAGE})
        rows = [row for row in self._all(f"{self._repo}/pulls?{query}") if not _pull(row).from_fork]
        newest = max(rows, key=lambda row: int(row["number"]), default=None)
        return None if newest is None else self.pull(int(newest["number"]))

    def pull(self, number: int) -> PullRequest | None:
        reply = self._http.get(f"{self._repo}/pulls/{number}", accept=(200, 404, 410))
        self._raise_unless(reply, 200, 404, 410)
        return _pull(reply.body) if reply.status == 200 else None

    def open_pull(self, *, title: str, body: str, branch: str, base: str, draft: bool) -> PullRequest:
        wanted = {"title": title, "body": body, "head": branch, "base": base, "draft": draft}
        reply = self._http.send("POST", f"{self._repo}/pulls", wanted, accept=(201, 422))
        if reply.status == 422:
            # Another process of ours may have made it, or the list lags behind.
            there = self.pull_of(branch)
            if there is not None and there.state is PullState.OPEN:
                return there
        self._raise_unless(reply, 201)
        return _pull(reply.body)

    def describe_pull(self, number: int, *, title: str, body: str) -> None:
        self._raise_unless(
            self._http.send("PATCH", f"{self._repo}/pulls/{number}", {"title": title, "body": body}), 200
        )

    def set_draft(self, pull: PullRequest, draft: bool) -> None:
        self._mutate("convertPullRequestToDraft" if draft else "markPullRequestReadyForReview", pull)

    def close_pull(self, number: int) -> None:
        self._raise_unless(self._http.send("PATCH", f"{self._repo}/pulls/{number}", {"state": "closed"}), 200)

    def reviews(self, number: int) -> tuple[ForgeReview, ...]:
        rows = self._all(f"{self._repo}/pulls/{number}/reviews?per_page={_PAGE}")
        return tuple(
            ForgeReview(
                id=int(row["id"]),
                author=_login(row),
                ruling=_RULINGS.get(str(row["state"]), ReviewRuling.COMMENT),
                body=str(row.get("body") or ""),
            )
            for row in rows
            if row["state"] != "PENDING"
        )

    def line_comments(self, number: int) -> tuple[ForgeComment, ...]:
        rows = self._all(f"{self._repo}/pulls/{number}/comments?per_page={_PAGE}")
        return tuple(_comment(row, issue=row.get("in_reply_to_id")) for row in rows)

    def reply(self, number: int, thread: int, body: str, *, mark: str) -> None:
        if any(mark in one.body and self._is_us(one.author) for one in self.line_comments(number)):
            return
        path = f"{self._repo}/pulls/{number}/comments/{thread}/replies"
        # A thread that a person deleted needs no answer.
        self._raise_unless(self._http.send("POST", path, {"body": body}), 201, 404)

    def checks(self, commit: str) -> tuple[ForgeCheck, ...]:
        """On all pages: one that is not read could be the red one."""
        runs = self._all(f"{self._repo}/commits/{commit}/check-runs?per_page={_PAGE}", rows="check_runs")
        statuses = self._all(f"{self._repo}/commits/{commit}/status?per_page={_PAGE}", rows="statuses")
        return (*(_check_run(one) for one in runs), *(_status(one) for one in statuses if _foreign(one)))

    def merge(self, pull: PullRequest, method: str) -> str:
        path = f"{self._repo}/pulls/{pull.number}/merge"
        reply = self._http.send(
            "PUT", path, {"sha": pull.commit, "merge_method": method}, accept=(200, 403, 405, 409, 422)
        )
        if reply.status == 200:
            return str(reply.body["sha"])
        if reply.status == 405 and "merge queue" in reply.message.lower():
            self._mutate("enqueuePullRequest", pull)
            return ""
        raise MergeRefused(f"The forge does not merge pull request {pull.number} now: {reply.message or reply.status}")

    def _mutate(self, name: str, pull: PullRequest) -> None:
        body = {"query": _MUTATION.format(name=name), "variables": {"pull": pull.node}}
        reply = self._http.send("POST", self._graphql, body)
        self._raise_unless(reply, 200)
        if isinstance(reply.body, dict) and reply.body.get("errors"):
            raise ForgeProblem(f"The forge refused {name} for pull request {pull.number}: {reply.message}")

    def _is_us(self, author: str) -> bool:
        return author == self._login()

    def _login(self) -> str:
        return str(self._get("/user")["login"]) if self._source is None else self._source.login()

    def _get(self, path: str) -> AnyJson:
        reply = self._http.get(path)
        self._raise_unless(reply, 200)
        return reply.body

    def _all(self, path: str, *, most: int = 50, rows: str = "") -> list[Any]:
        return self._http.all(path, lambda reply: self._raise_unless(reply, 200), most=most, rows=rows)

    def _raise_unless(self, reply: HttpReply, *good: int) -> None:
        if reply.status not in good:
            self._raise(reply)

    def _raise(self, reply: HttpReply) -> None:
        if reply.status == 401:
            raise ForgeRefused("The forge refuses the token: give another one with `legion forge add github`.")
        if reply.status == 403:
            raise ForgeRefused(
                f"The token may not do that in {self._name} ({reply.message}): give it read and write access to "
                "contents, issues and pull requests."
            )
        if reply.status in (301, 302, 307, 308):
            raise ForgeMoved(
                f"The repository {self._name} was renamed or moved: run `legion forge add github` with its new name."
            )
        if reply.status == 404:
            raise ForgeMoved(
                f"There is no repository {self._name} that this token can see: check the name and the token's rights."
            )
        raise ForgeProblem(f"The forge refused a request ({reply.status}): {reply.message or 'no reason given'}")


def api_of(url: str) -> str:
    """The address of the REST API of a GitHub."""
    site = url.rstrip("/")
    return "https://api.github.com" if site == PUBLIC else f"{site}/api/v3"


def _login(row: dict[str, Any]) -> str:
    return str((row.get("user") or {}).get("login") or "ghost")


def _issue(row: dict[str, Any]) -> ForgeIssue:
    return ForgeIssue(
        number=int(row["number"]),
        title=str(row["title"]),
        body=str(row.get("body") or ""),
        author=_login(row),
        url=str(row["html_url"]),
        open=row["state"] == "open",
        labels=tuple(str(one["name"]) for one in row.get("labels") or ()),
        assignees=tuple(str(one["login"]) for one in row.get("assignees") or ()),
        milestone=str((row.get("milestone") or {}).get("title") or ""),
    )


def _comment(row: dict[str, Any], *, issue: int | None = None) -> ForgeComment:
    return ForgeComment(
        id=int(row["id"]),
        author=_login(row),
        body=str(row.get("body") or ""),
        url=str(row["html_url"]),
        path=str(row.get("path") or ""),
        line=row.get("line"),
        reply_to=issue,
    )


def _pull(row: dict[str, Any]) -> PullRequest:
    merged = bool(row.get("merged") or row.get("merged_at"))
    state = PullState.MERGED if merged else PullState(row["state"])
    # A fork that was deleted has no repository any more.
    home = (row["head"].get("repo") or {}).get("full_name")
    return PullRequest(
        number=int(row["number"]),
        node=str(row["node_id"]),
        url=str(row["html_url"]),
        state=state,
        title=str(row["title"]),
        body=str(row.get("body") or ""),
        author=_login(row),
        draft=bool(row.get("draft")),
        branch=str(row["head"]["ref"]),
        commit=str(row["head"]["sha"]),
        base=str(row["base"]["ref"]),
        from_fork=home != row["base"]["repo"]["full_name"],
        mergeable=row.get("mergeable"),
        merge_commit=str(row.get("merge_commit_sha") or "") if merged else "",
    )


def _check_run(row: dict[str, Any]) -> ForgeCheck:
    if row["status"] != "completed":
        result = CiResult.PENDING
    elif row["conclusion"] in _SKIPPED:
        result = CiResult.NONE
    else:
        result = CiResult.GREEN if row["conclusion"] in _GREEN else CiResult.RED
    output = row.get("output") or {}
    text = "\n\n".join(str(output[part]) for part in ("summary", "text") if output.get(part))
    return ForgeCheck(name=str(row["name"]), result=result, text=text, url=str(row.get("html_url") or ""))


def _foreign(row: dict[str, Any]) -> bool:
    return not str(row["context"]).startswith(_OURS)


def _status(row: dict[str, Any]) -> ForgeCheck:
    results = {"success": CiResult.GREEN, "pending": CiResult.PENDING}
    return ForgeCheck(
        name=str(row["context"]),
        result=results.get(str(row["state"]), CiResult.RED),
        text=str(row.get("description") or ""),
        url=str(row.get("target_url") or ""),
    )
