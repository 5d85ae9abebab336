"""Answers to requests of GitHub's REST API, and to the three GraphQL mutations that have no REST form."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from legion.demo.forge.shapes import GitHubShapes, Json
from legion.demo.forge.state import HostedIssue, now

_DOCS = "https://docs.github.com/rest"


@dataclass(frozen=True, kw_only=True)
class GitHubRequest:
    method: str
    path: str
    """Without the query and without the prefix of an Enterprise server."""
    query: Mapping[str, str]
    body: Json
    caller: str
    """The login that the token belongs to; empty without one."""


@dataclass(frozen=True, kw_only=True)
class GitHubAnswer:
    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    listed: bool = False
    """The body is a list that is sent page by page."""
    listed_as: str = ""
    """The name of a list in the body that is sent page by page."""


def refused(status: int, message: str, **more: object) -> GitHubAnswer:
    return GitHubAnswer(status=status, body={"message": message, "documentation_url": _DOCS, **more})


_NOT_FOUND = refused(404, "Not Found")
Route = Callable[["GitHubRoutes", GitHubRequest, "re.Match[str]"], GitHubAnswer]
_ROUTES: list[tuple[str, re.Pattern[str], Route]] = []


def _route(method: str, pattern: str) -> Callable[[Route], Route]:
    def keep(route: Route) -> Route:
        _ROUTES.append((method, re.compile(pattern), route))
        return route

    return keep


class GitHubRoutes:
    """The REST API of one repository."""

    def __init__(self, shapes: GitHubShapes) -> None:
        self.shapes = shapes
        self.hosted = shapes.hosted

    def answer(self, request: GitHubRequest) -> GitHubAnswer:
        if request.path == "/graphql":
            return self._graphql(request)
        if request.path == "/user":
            return GitHubAnswer(body=self.shapes.user(request.caller))
        if request.path == "/rate_limit":
            return GitHubAnswer(body={"resources": {"core": {"limit": 5000, "remaining": 4999, "reset": 0, "used": 1}}})
        found = re.fullmatch(r"/repos/([^/]+/[^/]+)(/.*)?", request.path)
        by_id = re.fullmatch(rf"/repositories/{self.hosted.id}(/.*)?", request.path)
        if found is not None and found[1] in self.hosted.former:
            url = f"{self.shapes.api}/repositories/{self.hosted.id}{found[2] or ''}"
            moved = 301 if request.method == "GET" else 307
            body = {"message": "Moved Permanently", "url": url, "documentation_url": _DOCS}
            return GitHubAnswer(status=moved, body=body, headers={"Location": url})
        if found is not None and found[1] == self.hosted.full_name:
            rest = found[2] or ""
        elif by_id is not None:
            rest = by_id[1] or ""
        else:
            return _NOT_FOUND
        return self._of_repository(request, rest)

    def _of_repository(self, request: GitHubRequest, rest: str) -> GitHubAnswer:
        for method, pattern, route in _ROUTES:
            match = pattern.fullmatch(rest)
            if match is not None and method == request.method:
                if method != "GET" and not self._may_write(request, rest):
                    return refused(403, "Resource not accessible by personal access token")
                with self.hosted.lock:
                    self.hosted.refresh()
                    return route(self, request, match)
        return _NOT_FOUND

    def _may_write(self, request: GitHubRequest, rest: str) -> bool:
        right = "read" if rest.endswith("/comments") else "write"
        return self.hosted.may(request.caller, right)

    def _issue(self, number: str, *, pull: bool = False) -> HostedIssue | GitHubAnswer:
        issue = self.hosted.issues.get(int(number))
        if issue is None or (pull and issue.pull is None):
            return _NOT_FOUND
        return refused(410, "This issue was deleted") if issue.deleted else issue

    @_route("GET", "")
    def _repository(self, request: GitHubRequest, match: re.Match[str]) -> GitHubAnswer:
        return GitHubAnswer(body=self.shapes.repository(request.caller))

    @_route("GET", r"/collaborators/([^/]+)/permission")
    def _permission(self, request: GitHubRequest, match: re.Match[str]) -> GitHubAnswer:
        if not self.hosted.may(request.caller, "write"):
            return refused(403, "Must have push access to view collaborator permission.")
        right = self.hosted.right_of(match[1])
        plain = {"triage": "read", "maintain": "write"}.get(right, right)
        return GitHubAnswer(body={"permission": plain, "role_name": right, "user": self.shapes.user(match[1])})

    # Issues

    @_route("GET", "/issues")
    def _issues(self, request: GitHubRequest, match: re.Match[str]) -> GitHubAnswer:
        query = request.query
        wanted = set(filter(None, query.get("labels", "").split(",")))
        since = datetime.fromisoformat(query["since"].replace("Z", "+00:00")) if "since" in query else None
        found = [
            issue
            for issue in self.hosted.issues.values()
            if not issue.deleted
            and query.get("state", "open") in (issue.state, "all")
            and wanted <= set(issue.labels)
            and query.get("assignee", "*") in ("*", *issue.assignees)
            and query.get("milestone", "*") in ("*", str(self.hosted.milestone(issue.milestone)))
            and (since is None or issue.updated.replace(microsecond=0) >= since.astimezone(UTC))
        ]
        found.sort(key=lambda issue: issue.updated if query.get("sort") == "updated" else issue.at, reverse=True)
        if query.get("direction") == "asc":
            found.reverse()
        return GitHubAnswer(body=[self.shapes.issue(issue) for issue in found], listed=True)

    @_route("GET", "/milestones")
    def _milestones(self, request: GitHubRequest, match: re.Match[str]) -> GitHubAnswer:
        titles = sorted({issue.milestone for issue in self.hosted.issues.values() if issue.milestone})
        found = [{"title": title, "number": self.hosted.milestone(title), "state": "open"} for title in titles]
        return GitHubAnswer(body=found, listed=True)

    @_route("POST", "/issues")
    def _open_issue(self, request: GitHubRequest, match: re.Match[str]) -> GitHubAnswer:
        made = self.hosted.open_issue(request.body["title"], request.body.get("body") or "", author=request.caller)
        return GitHubAnswer(status=201, body=self.shapes.issue(made))

    @_route("GET", r"/issues/(\d+)")
    def _one_issue(self, request: GitHubRequest, match: re.Match[str]) -> GitHubAnswer:
        issue = self._issue(match[1])
        return issue if isinstance(issue, GitHubAnswer) else GitHubAnswer(body=self.shapes.issue(issue))

    @_route("PATCH", r"/issues/(\d+)")
    def _change_issue(self, request: GitHubRequest, match: re.Match[str]) -> GitHubAnswer:
        issue = self._issue(match[1])
        if isinstance(issue, GitHubAnswer):
            return issue
        issue.title = request.body.get("title", issue.title)
        issue.body = request.body.get("body", issue.body)
        if request.body.get("state") == "closed":
            self.hosted.close(issue.number, reason=request.body.get("state_reason") or "completed")
        elif request.body.get("state") == "open":
            self.hosted.reopen(issue.number)
        issue.updated = now()
        return GitHubAnswer(body=self.shapes.issue(issue))

    @_route("GET", r"/issues/(\d+)/comments")
    def _comments(self, request: GitHubRequest, match: re.Match[str]) -> GitHubAnswer:
        issue = self._issue(match[1])
        if isinstance(issue, GitHubAnswer):
            return issue
        return GitHubAnswer(body=[self.shapes.comment(issue, one) for one in issue.comments], listed=True)

    @_route("GET", "/issues/comments")
    def _all_comments(self, request: GitHubRequest, match: re.Match[str]) -> GitHubAnswer:
        there = [(one, issue) for issue in self.hosted.issues.values() if not issue.deleted for one in issue.comments]
        there.sort(key=lambda pair: pair[0].edited, reverse=True)
        return GitHubAnswer(body=[self.shapes.comment(issue, one) for one, issue in there], listed=True)

    @_route("POST", r"/issues/(\d+)/comments")
    def _add_comment(self, request: GitHubRequest, match: re.Match[str]) -> GitHubAnswer:
        issue = self._issue(match[1])
        if isinstance(issue, GitHubAnswer):
            return issue
        if not str(request.body.get("body") or "").strip():
            return refused(422, "Validation Failed", errors=[{"resource": "IssueComment", "code": "missing_field"}])
        made = self.hosted.comment(issue.number, request.body["body"], author=request.caller)
        return GitHubAnswer(status=201, body=self.shapes.comment(issue, made))

    @_route("PATCH", r"/issues/comments/(\d+)")
    def _edit_comment(self, request: GitHubRequest, match: re.Match[str]) -> GitHubAnswer:
        for issue in self.hosted.issues.values():
            for one in issue.comments:
                if one.id == int(match[1]):
                    one.body, one.edited = request.body["body"], now()
                    return GitHubAnswer(body=self.shapes.comment(issue, one))
        return _NOT_FOUND

    @_route("POST", r"/issues/(\d+)/labels")
    def _add_labels(self, request: GitHubRequest, match: re.Match[str]) -> GitHubAnswer:
        issue = self._issue(match[1])
        if isinstance(issue, GitHubAnswer):
            return issue
        self.hosted.label(issue.number, *request.body["labels"])
        return GitHubAnswer(body=[self.shapes.label(name) for name in issue.labels])

    @_route("DELETE", r"/issues/(\d+)/labels/([^/]+)")
    def _remove_label(self, request: GitHubRequest, match: re.Match[str]) -> GitHubAnswer:
        issue = self._issue(match[1])
        if isinstance(issue, GitHubAnswer):
            return issue
        if match[2] not in issue.labels:
            return refused(404, "Label does not exist")
        issue.labels.remove(match[2])
        issue.updated = now()
        return GitHubAnswer(body=[self.shapes.label(name) for name in issue.labels])

    # Pull requests

    @_route("GET", "/pulls")
    def _pulls(self, request: GitHubRequest, match: re.Match[str]) -> GitHubAnswer:
        query, owner = request.query, self.hosted.owner
        found = [
            issue
            for issue in self.hosted.issues.values()
            if issue.pull is not None
            and query.get("state", "open") in (issue.state, "all")
            and query.get("head") in (None, f"{issue.pull.fork or owner}:{issue.pull.head}")
            and query.get("base") in (None, issue.pull.base)
        ]
        found.sort(key=lambda issue: issue.updated, reverse=True)
        return GitHubAnswer(body=[self.shapes.pull(issue) for issue in found], listed=True)

    @_route("POST", "/pulls")
    def _open_pull(self, request: GitHubRequest, match: re.Match[str]) -> GitHubAnswer:
        wanted = request.body
        head = wanted["head"].partition(":")[2] or wanted["head"]
        if self.hosted.tip(head) is None or self.hosted.tip(wanted["base"]) is None:
            wrong = "head" if self.hosted.tip(head) is None else "base"
            errors = [{"resource": "PullRequest", "field": wrong, "code": "invalid"}]
            return refused(422, "Validation Failed", errors=errors)
        if self.hosted.tip(head) == self.hosted.tip(wanted["base"]):
            message = f"No commits between {wanted['base']} and {head}"
            return refused(422, "Validation Failed", errors=[{"resource": "PullRequest", "message": message}])
        open_heads = [
            one.pull.head for one in self.hosted.issues.values() if one.pull is not None and one.state == "open"
        ]
        if head in open_heads:
            message = f"A pull request already exists for {self.hosted.owner}:{head}."
            return refused(422, "Validation Failed", errors=[{"resource": "PullRequest", "message": message}])
        made = self.hosted.open_pull(
            wanted["title"],
            wanted.get("body") or "",
            head=head,
            base=wanted["base"],
            author=request.caller,
            draft=bool(wanted.get("draft")),
        )
        return GitHubAnswer(status=201, body=self.shapes.pull(made, alone=True))

    @_route("GET", r"/pulls/(\d+)")
    def _one_pull(self, request: GitHubRequest, match: re.Match[str]) -> GitHubAnswer:
        issue = self._issue(match[1], pull=True)
        return issue if isinstance(issue, GitHubAnswer) else GitHubAnswer(body=self.shapes.pull(issue, alone=True))

    @_route("PATCH", r"/pulls/(\d+)")
    def _change_pull(self, request: GitHubRequest, match: re.Match[str]) -> GitHubAnswer:
        issue = self._issue(match[1], pull=True)
        if isinstance(issue, GitHubAnswer):
            return issue
        issue.title = request.body.get("title", issue.title)
        issue.body = request.body.get("body", issue.body)
        if request.body.get("state") == "closed":
            self.hosted.close(issue.number)
        elif request.body.get("state") == "open":
            self.hosted.reopen(issue.number)
        issue.updated = now()
        return GitHubAnswer(body=self.shapes.pull(issue, alone=True))

    @_route("GET", r"/pulls/(\d+)/reviews")
    def _reviews(self, request: GitHubRequest, match: re.Match[str]) -> GitHubAnswer:
        issue = self._issue(match[1], pull=True)
        if isinstance(issue, GitHubAnswer):
            return issue
        assert issue.pull is not None
        return GitHubAnswer(body=[self.shapes.review(issue, one) for one in issue.pull.reviews], listed=True)

    @_route("GET", r"/pulls/(\d+)/comments")
    def _remarks(self, request: GitHubRequest, match: re.Match[str]) -> GitHubAnswer:
        issue = self._issue(match[1], pull=True)
        if isinstance(issue, GitHubAnswer):
            return issue
        assert issue.pull is not None
        return GitHubAnswer(body=[self.shapes.remark(issue, one) for one in issue.pull.remarks], listed=True)

    @_route("POST", r"/pulls/(\d+)/comments/(\d+)/replies")
    def _reply(self, request: GitHubRequest, match: re.Match[str]) -> GitHubAnswer:
        issue = self._issue(match[1], pull=True)
        if isinstance(issue, GitHubAnswer):
            return issue
        assert issue.pull is not None
        above = next((one for one in issue.pull.remarks if one.id == int(match[2])), None)
        if above is None:
            return _NOT_FOUND
        made = self.hosted.remark(
            issue.number, request.body["body"], author=request.caller, path=above.path, reply_to=above.id
        )
        return GitHubAnswer(status=201, body=self.shapes.remark(issue, made))

    @_route("PUT", r"/pulls/(\d+)/merge")
    def _merge(self, request: GitHubRequest, match: re.Match[str]) -> GitHubAnswer:
        issue = self._issue(match[1], pull=True)
        if isinstance(issue, GitHubAnswer):
            return issue
        pull = issue.pull
        assert pull is not None
        if issue.state != "open" or pull.draft:
            return refused(405, "Pull Request is not mergeable")
        if request.body.get("sha") not in (None, pull.head_commit):
            return refused(409, "Head branch was modified. Review and try the merge again.")
        if self.hosted.merge_queue:
            return refused(405, "Changes must be made through the merge queue")
        if why := self.hosted.blocked(pull):
            return refused(405, why)
        if not self.hosted.mergeable(pull):
            return refused(405, "Pull Request is not mergeable")
        commit = self.hosted.merge(issue.number, by=request.caller, method=request.body.get("merge_method", "merge"))
        return GitHubAnswer(body={"sha": commit, "merged": True, "message": "Pull Request successfully merged"})

    # Commits and branches

    @_route("GET", r"/commits/([0-9a-f]+)/check-runs")
    def _check_runs(self, request: GitHubRequest, match: re.Match[str]) -> GitHubAnswer:
        runs = [self.shapes.check_run(match[1], run) for run in self.hosted.checks.get(match[1], [])]
        return GitHubAnswer(body={"total_count": len(runs), "check_runs": runs}, listed_as="check_runs")

    @_route("GET", r"/commits/([0-9a-f]+)/status")
    def _combined(self, request: GitHubRequest, match: re.Match[str]) -> GitHubAnswer:
        latest = {one.context: one for one in self.hosted.statuses.get(match[1], [])}
        states = {one.state for one in latest.values()}
        bad = states & {"failure", "error"}
        state = "failure" if bad else "success" if states == {"success"} else "pending"
        body = {
            "state": state,
            "statuses": [self.shapes.status(match[1], one) for one in latest.values()],
            "sha": match[1],
            "total_count": len(latest),
            "repository": self.shapes.repository(request.caller),
            "commit_url": f"{self.shapes.repo_url}/commits/{match[1]}",
            "url": f"{self.shapes.repo_url}/commits/{match[1]}/status",
        }
        return GitHubAnswer(body=body, listed_as="statuses")

    @_route("POST", r"/statuses/([0-9a-f]+)")
    def _add_status(self, request: GitHubRequest, match: re.Match[str]) -> GitHubAnswer:
        wanted = request.body
        made = self.hosted.status(
            match[1], wanted["context"], wanted["state"], wanted.get("description") or "", author=request.caller
        )
        return GitHubAnswer(
            status=201, body={**self.shapes.status(match[1], made), "creator": self.shapes.user(request.caller)}
        )

    @_route("GET", r"/git/ref/heads/(.+)")
    def _ref(self, request: GitHubRequest, match: re.Match[str]) -> GitHubAnswer:
        tip = self.hosted.tip(match[1])
        return _NOT_FOUND if tip is None else GitHubAnswer(body=self.shapes.ref(match[1], tip))

    @_route("GET", r"/git/matching-refs/heads/(.+)")
    def _refs(self, request: GitHubRequest, match: re.Match[str]) -> GitHubAnswer:
        there = self.hosted.branches().items()
        return GitHubAnswer(
            body=[self.shapes.ref(name, tip) for name, tip in there if name.startswith(match[1])], listed=True
        )

    def _graphql(self, request: GitHubRequest) -> GitHubAnswer:
        """Only the mutations that Legion sends; each names its pull request by its node id."""
        query, values = str(request.body.get("query", "")), request.body.get("variables") or {}
        number = str(values.get("pull", "")).removeprefix("PR_")
        issue = self.hosted.issues.get(int(number)) if number.isdigit() else None
        if issue is None or issue.pull is None or not self.hosted.may(request.caller, "write"):
            error = {"type": "NOT_FOUND", "message": "Could not resolve to a node with the global id"}
            return GitHubAnswer(body={"data": None, "errors": [error]})
        if "markPullRequestReadyForReview" in query:
            issue.pull.draft = False
        elif "convertPullRequestToDraft" in query:
            issue.pull.draft = True
        elif "enqueuePullRequest" in query:
            issue.pull.queued = True
        else:
            return GitHubAnswer(
                body={"data": None, "errors": [{"message": f"Unknown query: {json.dumps(query)[:80]}"}]}
            )
        issue.updated = now()
        return GitHubAnswer(body={"data": {"pullRequest": {"isDraft": issue.pull.draft}}})
