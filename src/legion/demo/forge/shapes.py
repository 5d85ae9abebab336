"""Issues, pull requests and their parts as JSON, in the shapes of GitHub's REST API."""

from __future__ import annotations

import base64
from datetime import datetime
from typing import Any

from legion.demo.forge.state import CommitStatus, Hosted, HostedCheck, HostedComment, HostedIssue, HostedReview

Json = dict[str, Any]


def moment(at: datetime | None) -> str | None:
    return None if at is None else at.strftime("%Y-%m-%dT%H:%M:%SZ")


def _node(kind: str, number: int) -> str:
    return base64.b64encode(f"0:{kind}{number}".encode()).decode()


class GitHubShapes:
    """Writes what belongs to one repository, below the addresses of one server."""

    def __init__(self, hosted: Hosted, api: str, html: str) -> None:
        self.hosted = hosted
        self.api = api
        self.html = html

    @property
    def repo_url(self) -> str:
        return f"{self.api}/repos/{self.hosted.full_name}"

    @property
    def page(self) -> str:
        return f"{self.html}/{self.hosted.full_name}"

    def user(self, login: str) -> Json:
        return {
            "login": login,
            "id": 1 + sum(login.encode()),
            "node_id": _node("User", sum(login.encode())),
            "avatar_url": f"{self.html}/avatars/{login}",
            "gravatar_id": "",
            "url": f"{self.api}/users/{login}",
            "html_url": f"{self.html}/{login}",
            "type": "User",
            "site_admin": False,
        }

    def repository(self, caller: str) -> Json:
        may = self.hosted.may
        return {
            "id": self.hosted.id,
            "node_id": _node("Repository", self.hosted.id),
            "name": self.hosted.name,
            "full_name": self.hosted.full_name,
            "private": False,
            "owner": self.user(self.hosted.owner),
            "html_url": self.page,
            "description": None,
            "fork": False,
            "url": self.repo_url,
            "clone_url": f"{self.page}.git",
            "default_branch": self.hosted.default_branch,
            "archived": False,
            "has_issues": True,
            "allow_squash_merge": True,
            "allow_merge_commit": True,
            "allow_rebase_merge": True,
            "permissions": {
                "admin": may(caller, "admin"),
                "maintain": may(caller, "maintain"),
                "push": may(caller, "write"),
                "triage": may(caller, "triage"),
                "pull": True,
            },
        }

    def label(self, name: str) -> Json:
        return {
            "id": 1 + sum(name.encode()),
            "node_id": _node("Label", sum(name.encode())),
            "url": f"{self.repo_url}/labels/{name}",
            "name": name,
            "color": "ededed",
            "default": False,
            "description": None,
        }

    def association(self, login: str) -> str:
        if login == self.hosted.owner:
            return "OWNER"
        return "COLLABORATOR" if self.hosted.right_of(login) != "none" else "NONE"

    def issue(self, issue: HostedIssue) -> Json:
        url = f"{self.repo_url}/issues/{issue.number}"
        kind = "pull" if issue.pull is not None else "issues"
        shape: Json = {
            "url": url,
            "repository_url": self.repo_url,
            "labels_url": f"{url}/labels{{/name}}",
            "comments_url": f"{url}/comments",
            "events_url": f"{url}/events",
            "html_url": f"{self.page}/{kind}/{issue.number}",
            "id": 5000 + issue.number,
            "node_id": _node("Issue", issue.number),
            "number": issue.number,
            "title": issue.title,
            "user": self.user(issue.author),
            "labels": [self.label(name) for name in issue.labels],
            "state": issue.state,
            "locked": False,
            "assignee": self.user(issue.assignees[0]) if issue.assignees else None,
            "assignees": [self.user(login) for login in issue.assignees],
            "milestone": self._milestone(issue.milestone),
            "comments": len(issue.comments),
            "created_at": moment(issue.at),
            "updated_at": moment(issue.updated),
            "closed_at": moment(issue.closed),
            "author_association": self.association(issue.author),
            "active_lock_reason": None,
            "body": issue.body,
            "state_reason": issue.reason,
        }
        if issue.pull is not None:
            shape["pull_request"] = {
                "url": f"{self.repo_url}/pulls/{issue.number}",
                "html_url": f"{self.page}/pull/{issue.number}",
                "merged_at": moment(issue.closed) if issue.pull.merged else None,
            }
        return shape

    def _milestone(self, title: str) -> Json | None:
        return {"title": title, "number": self.hosted.milestone(title), "state": "open"} if title else None

    def comment(self, issue: HostedIssue, one: HostedComment) -> Json:
        url = f"{self.repo_url}/issues/comments/{one.id}"
        return {
            "url": url,
            "html_url": f"{self.page}/issues/{issue.number}#issuecomment-{one.id}",
            "issue_url": f"{self.repo_url}/issues/{issue.number}",
            "id": one.id,
            "node_id": _node("IssueComment", one.id),
            "user": self.user(one.author),
            "created_at": moment(one.at),
            "updated_at": moment(one.edited),
            "author_association": self.association(one.author),
            "body": one.body,
        }

    def remark(self, issue: HostedIssue, one: HostedComment) -> Json:
        shape: Json = {
            "url": f"{self.repo_url}/pulls/comments/{one.id}",
            "pull_request_review_id": None,
            "id": one.id,
            "node_id": _node("PullRequestReviewComment", one.id),
            "diff_hunk": "",
            "path": one.path,
            "line": one.line,
            "commit_id": one.commit,
            "user": self.user(one.author),
            "body": one.body,
            "created_at": moment(one.at),
            "updated_at": moment(one.edited),
            "html_url": f"{self.page}/pull/{issue.number}#discussion_r{one.id}",
            "pull_request_url": f"{self.repo_url}/pulls/{issue.number}",
            "author_association": self.association(one.author),
        }
        return shape if one.reply_to is None else {**shape, "in_reply_to_id": one.reply_to}

    def review(self, issue: HostedIssue, one: HostedReview) -> Json:
        return {
            "id": one.id,
            "node_id": _node("PullRequestReview", one.id),
            "user": self.user(one.author),
            "body": one.body,
            "state": one.state,
            "html_url": f"{self.page}/pull/{issue.number}#pullrequestreview-{one.id}",
            "pull_request_url": f"{self.repo_url}/pulls/{issue.number}",
            "submitted_at": moment(one.at),
            "commit_id": one.commit,
            "author_association": self.association(one.author),
        }

    def pull(self, issue: HostedIssue, *, alone: bool = False) -> Json:
        """In a list, GitHub leaves out what it has to compute."""
        pull = issue.pull
        assert pull is not None
        fork = f"{pull.fork}/{self.hosted.name}" if pull.fork else self.hosted.full_name
        owner = pull.fork or self.hosted.owner
        shape: Json = {
            "url": f"{self.repo_url}/pulls/{issue.number}",
            "id": 7000 + issue.number,
            "node_id": f"PR_{issue.number}",
            "html_url": f"{self.page}/pull/{issue.number}",
            "issue_url": f"{self.repo_url}/issues/{issue.number}",
            "number": issue.number,
            "state": issue.state,
            "locked": False,
            "title": issue.title,
            "user": self.user(issue.author),
            "body": issue.body,
            "created_at": moment(issue.at),
            "updated_at": moment(issue.updated),
            "closed_at": moment(issue.closed),
            "merged_at": moment(issue.closed) if pull.merged else None,
            "merge_commit_sha": pull.merged or None,
            "assignees": [self.user(login) for login in issue.assignees],
            "labels": [self.label(name) for name in issue.labels],
            "draft": pull.draft,
            "head": {
                "label": f"{owner}:{pull.head}",
                "ref": pull.head,
                "sha": pull.head_commit,
                "user": self.user(owner),
                "repo": {"full_name": fork, "name": self.hosted.name, "owner": self.user(owner)},
            },
            "base": {
                "label": f"{self.hosted.owner}:{pull.base}",
                "ref": pull.base,
                "sha": self.hosted.tip(pull.base),
                "user": self.user(self.hosted.owner),
                "repo": {"full_name": self.hosted.full_name, "name": self.hosted.name},
            },
            "author_association": self.association(issue.author),
            "auto_merge": None,
        }
        if alone:
            shape |= self._computed(issue)
        return shape

    def _computed(self, issue: HostedIssue) -> Json:
        pull = issue.pull
        assert pull is not None
        known = pull.unknown_merges <= 0
        pull.unknown_merges -= 1
        mergeable = None if not known or pull.merged else self.hosted.mergeable(pull)
        state = "unknown" if mergeable is None else "clean" if mergeable else "dirty"
        if mergeable and self.hosted.blocked(pull):
            state = "blocked"
        if mergeable and pull.draft:
            state = "draft"
        return {
            "merged": bool(pull.merged),
            "mergeable": mergeable,
            "rebaseable": mergeable,
            "mergeable_state": state,
            "merged_by": self.user(pull.merged_by) if pull.merged_by else None,
            "comments": len(issue.comments),
            "review_comments": len(pull.remarks),
            "commits": 1,
        }

    def check_run(self, commit: str, run: HostedCheck) -> Json:
        return {
            "id": run.id,
            "head_sha": commit,
            "node_id": _node("CheckRun", run.id),
            "external_id": "",
            "url": f"{self.repo_url}/check-runs/{run.id}",
            "html_url": f"{self.page}/runs/{run.id}",
            "details_url": f"{self.page}/runs/{run.id}",
            "status": run.status,
            "conclusion": run.conclusion,
            "started_at": moment(run.at),
            "completed_at": moment(run.at) if run.conclusion else None,
            "output": {"title": run.name, "summary": run.summary, "text": run.text, "annotations_count": 0},
            "name": run.name,
            "app": {"id": 1, "slug": "ci", "name": "CI"},
        }

    def status(self, commit: str, one: CommitStatus) -> Json:
        return {
            "url": f"{self.repo_url}/statuses/{commit}",
            "avatar_url": f"{self.html}/avatars/{one.author}",
            "id": one.id,
            "node_id": _node("StatusContext", one.id),
            "state": one.state,
            "description": one.description,
            "target_url": None,
            "context": one.context,
            "created_at": moment(one.at),
            "updated_at": moment(one.at),
        }

    def ref(self, branch: str, commit: str) -> Json:
        return {
            "ref": f"refs/heads/{branch}",
            "node_id": _node("Ref", 1),
            "url": f"{self.repo_url}/git/refs/heads/{branch}",
            "object": {"sha": commit, "type": "commit", "url": f"{self.repo_url}/git/commits/{commit}"},
        }
