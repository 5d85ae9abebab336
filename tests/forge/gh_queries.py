"""Answers to the GraphQL queries of `gh` 2.23, from the state of the stand-in.

The answers hold all fields that its queries name; it ignores those that it did not ask for.
"""

from __future__ import annotations

from typing import Any

from legion.demo.forge.shapes import moment
from legion.demo.forge.state import Hosted, HostedIssue
from tests.support.github_app import StandIn

Json = dict[str, Any]


def answer(body: Json, stand_in: StandIn) -> Json:
    query, values, hosted = str(body.get("query", "")), body.get("variables") or {}, stand_in.hosted
    hosted.refresh()
    if "__type(" in query:
        return {"data": {"PullRequest": {"fields": [{"name": "isInMergeQueue"}, {"name": "statusCheckRollup"}]}}}
    if "mutation PullRequestMerge" in query:
        hosted.merge(int(values["input"]["pullRequestId"].removeprefix("PR_")), by=hosted.owner)
        return {"data": {"mergePullRequest": {"clientMutationId": ""}}}
    if "PullRequestStatusChecks" in query:
        return {"data": {"node": _pull(hosted, hosted.issues[int(values["id"].removeprefix("PR_"))])}}
    there = [issue for issue in hosted.issues.values() if not issue.deleted]
    repository: Json = {"hasIssuesEnabled": True}
    if "IssueList" in query:
        found = [_issue(one) for one in there if one.pull is None and one.state.upper() in values["states"]]
        repository["issues"] = _listed(found)
    elif "PullRequestList" in query:
        states = values["state"]
        repository["pullRequests"] = _listed(
            [_pull(hosted, one) for one in there if one.pull is not None and _state(one) in states]
        )
    elif "CommentsForIssue" in query:
        asked = hosted.issues[int(values["id"].removeprefix("I_"))]
        return {"data": {"node": {"comments": _issue(asked)["comments"]}}}
    elif "IssueByNumber" in query:
        repository["issue"] = {"__typename": "Issue", **_issue(hosted.issues[values["number"]])}
    else:
        repository["pullRequest"] = _pull(hosted, hosted.issues[values["pr_number"]])
    return {"data": {"repository": repository}}


def _listed(nodes: list[Json]) -> Json:
    return {"totalCount": len(nodes), "nodes": nodes, "pageInfo": {"hasNextPage": False, "endCursor": ""}}


def _state(issue: HostedIssue) -> str:
    return "MERGED" if issue.pull is not None and issue.pull.merged else issue.state.upper()


def _issue(issue: HostedIssue) -> Json:
    comments = [
        {"id": f"C{one.id}", "author": {"login": one.author}, "body": one.body, "createdAt": moment(one.at), "url": ""}
        for one in issue.comments
    ]
    return {
        "id": f"I_{issue.number}",
        "number": issue.number,
        "title": issue.title,
        "url": f"http://github.localhost/issues/{issue.number}",
        "state": _state(issue),
        "stateReason": (issue.reason or "").upper(),
        "body": issue.body,
        "author": {"login": issue.author},
        "createdAt": moment(issue.at),
        "updatedAt": moment(issue.updated),
        "labels": _listed([{"id": name, "name": name, "description": "", "color": "ededed"} for name in issue.labels]),
        "assignees": _listed([{"id": login, "login": login, "name": ""} for login in issue.assignees]),
        "projectCards": _listed([]),
        "comments": _listed(comments),
        "reactionGroups": [],
        "milestone": None,
    }


def _pull(hosted: Hosted, issue: HostedIssue) -> Json:
    pull = issue.pull
    assert pull is not None
    checks = [
        {
            "__typename": "CheckRun",
            "name": run.name,
            "status": run.status.upper(),
            "conclusion": (run.conclusion or "").upper(),
            "startedAt": moment(run.at),
            "completedAt": moment(run.at),
            "detailsUrl": "",
            "isRequired": run.name in hosted.required,
            "checkSuite": {"workflowRun": {"workflow": {"name": "ci"}}},
        }
        for run in hosted.checks.get(pull.head_commit, [])
    ]
    rollup = {"statusCheckRollup": {"contexts": _listed(checks)}, "oid": pull.head_commit}
    return {
        **_issue(issue),
        "id": f"PR_{issue.number}",
        "isDraft": pull.draft,
        "mergeable": "MERGEABLE",
        "mergeStateStatus": "CLEAN",
        "headRefName": pull.head,
        "headRefOid": pull.head_commit,
        "baseRefName": pull.base,
        "headRepositoryOwner": {"id": "o", "login": pull.fork or hosted.owner},
        "headRepository": {"id": "r", "name": hosted.name},
        "isCrossRepository": bool(pull.fork),
        "reviews": _listed([]),
        "reviewRequests": _listed([]),
        "commits": {"totalCount": 1, "nodes": [{"commit": rollup}]},
        "statusCheckRollup": {"nodes": [{"commit": rollup}]},
    }
