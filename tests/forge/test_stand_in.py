"""The stand-in of GitHub answers as GitHub does: held to recorded answers, and to `gh` as an independent client."""

from __future__ import annotations

import json
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from legion.demo.forge.routes import GitHubAnswer, refused
from tests.forge.hosting import GH, OWNER, gh
from tests.support.github_app import Fault, StandIn

RECORDED = json.loads((Path(__file__).parent / "data/shapes.json").read_text())
KINDS = {type(None): "null", bool: "boolean", int: "number", str: "string"}
REPO = "/repos/acme/shop"


def ask(
    stand_in: StandIn, method: str, path: str, body: object = None, *, token: str = "owner-token", etag: str = ""
) -> tuple[int, Any, Any]:
    """Status, headers and body of an answer."""
    headers = {"Authorization": f"Bearer {token}"} | ({"If-None-Match": etag} if etag else {})
    raw = None if body is None else json.dumps(body).encode()
    url = path if path.startswith("http") else stand_in.api + path
    request = urllib.request.Request(url, data=raw, headers=headers, method=method)
    opener = urllib.request.build_opener(NoRedirect)
    try:
        with opener.open(request, timeout=10) as found:
            content = found.read()
            return found.status, found.headers, json.loads(content) if content else None
    except urllib.error.HTTPError as found:
        with found:
            content = found.read()
            return found.code, found.headers, json.loads(content) if content else None


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


def misfits(ours: object, recorded: object, at: str = "") -> list[str]:
    """Where our answer holds something that GitHub's does not, or as another type. Null stands for any."""
    if isinstance(ours, dict):
        if not isinstance(recorded, dict):
            return [f"{at} is an object"] if recorded != "null" else []
        unknown = [f"{at}.{name} is not in GitHub's" for name in ours if recorded and name not in recorded]
        known = [name for name in ours if name in recorded]
        return unknown + [one for name in known for one in misfits(ours[name], recorded[name], f"{at}.{name}")]
    if isinstance(ours, list):
        if not isinstance(recorded, list):
            return [f"{at} is a list"]
        return [one for row in ours[:1] for kind in recorded[:1] for one in misfits(row, kind, f"{at}[]")]
    kind = KINDS[type(ours)]
    return [] if "null" in (kind, recorded) or kind == recorded else [f"{at} is {kind}, not {recorded}"]


def test_answers_have_the_fields_and_types_that_github_sent(stand_in, shop):
    stand_in.hosted.open_issue("A first issue", labels=("bug",))
    commit = shop.git("rev-parse", "HEAD").strip()
    answers = {
        "made issue": ask(stand_in, "POST", f"{REPO}/issues", {"title": "A second"}),
        "issue": ask(stand_in, "GET", f"{REPO}/issues/1"),
        "labels": ask(stand_in, "POST", f"{REPO}/issues/1/labels", {"labels": ["x"]}),
        "status": ask(stand_in, "POST", f"{REPO}/statuses/{commit}", {"state": "success", "context": "ci/1"}),
        "combined status": ask(stand_in, "GET", f"{REPO}/commits/{commit}/status"),
        "repository": ask(stand_in, "GET", REPO),
        "ref": ask(stand_in, "GET", f"{REPO}/git/ref/heads/main"),
    }
    stand_in.hosted.rename("store")
    answers["moved"] = ask(stand_in, "GET", REPO)
    assert {name: found for name, (_, _, body) in answers.items() if (found := misfits(body, RECORDED[name]))} == {}
    assert {name: status for name, (status, _, _) in answers.items()} == {
        "made issue": 201, "issue": 200, "labels": 200, "status": 201, "combined status": 200, "repository": 200,
        "ref": 200, "moved": 301,
    }  # fmt: skip


def test_lists_come_in_pages_whose_links_name_the_repository_by_its_number(stand_in):
    for number in range(7):
        stand_in.hosted.open_issue(f"Issue {number}")
    seen, path = [], f"{REPO}/issues?per_page=3"
    while path:
        _, headers, rows = ask(stand_in, "GET", path)
        seen += [row["number"] for row in rows]
        links = dict(reversed(part.split("; ")) for part in headers.get("Link", "").split(", ") if part)
        path = links.get('rel="next"', "").strip("<>")
        assert not path or "/repositories/1000/issues" in path
    assert sorted(seen) == [1, 2, 3, 4, 5, 6, 7]


def test_an_etag_answers_304_which_costs_nothing_and_differs_by_token(stand_in):
    stand_in.hosted.open_issue("One")
    _, headers, _ = ask(stand_in, "GET", f"{REPO}/issues")
    used = stand_in.used
    assert ask(stand_in, "GET", f"{REPO}/issues", etag=headers["ETag"])[0] == 304
    assert stand_in.used == used
    assert ask(stand_in, "GET", f"{REPO}/issues", etag=headers["ETag"], token="robot-token")[0] == 200
    stand_in.hosted.label(1, "new")
    assert ask(stand_in, "GET", f"{REPO}/issues", etag=headers["ETag"])[0] == 200


def test_faults_limits_and_late_lists_can_be_asked_for(stand_in):
    stand_in.faults.append(Fault(answer=refused(502, "Server Error")))
    assert ask(stand_in, "GET", REPO)[0] == 502
    assert ask(stand_in, "GET", REPO)[0] == 200
    limited = GitHubAnswer(status=403, body={"message": "secondary rate limit"}, headers={"Retry-After": "7"})
    stand_in.faults.append(Fault(answer=limited, match="POST"))
    status, headers, _ = ask(stand_in, "POST", f"{REPO}/issues", {"title": "x"})
    assert (status, headers["Retry-After"]) == (403, "7")
    assert ask(stand_in, "GET", f"{REPO}/issues")[2] == []
    stand_in.stale["/repos/acme/shop/issues"] = 1
    stand_in.hosted.open_issue("One")
    assert ask(stand_in, "GET", f"{REPO}/issues")[2] == []
    assert len(ask(stand_in, "GET", f"{REPO}/issues")[2]) == 1


def push(stand_in: StandIn, shop: Any, token: str, spec: str) -> int:
    url = stand_in.clone_url.replace("://", f"://x-access-token:{token}@")
    return subprocess.run(
        ("git", "-C", shop.root, "push", "-q", url, spec), capture_output=True, check=False
    ).returncode


def test_git_pushes_with_a_token_that_may_write_and_with_no_other(stand_in, shop):
    assert push(stand_in, shop, "robot-token", "HEAD:refs/heads/topic") == 0
    assert stand_in.hosted.tip("topic") == shop.git("rev-parse", "HEAD").strip()
    for token in ("reader-token", "wrong-token"):
        assert push(stand_in, shop, token, "HEAD:refs/heads/other") != 0
    assert stand_in.hosted.tip("other") is None


@pytest.mark.skipif(GH is None, reason="the program gh is not installed")
def test_the_program_gh_sees_issues_and_pull_requests_and_merges_one(stand_in, shop, tmp_path):
    stand_in.hosted.open_issue("Add a login", "Please.", labels=("bug",))
    shop.git("checkout", "-q", "-b", "topic")
    shop.commit("A change", {"new.txt": "new\n"})
    assert push(stand_in, shop, "owner-token", "HEAD:refs/heads/topic") == 0
    made = ask(
        stand_in, "POST", f"{REPO}/pulls", {"title": "A pull", "head": "topic", "base": "main", "body": "Closes #1"}
    )[2]
    commit = shop.git("rev-parse", "HEAD").strip()
    stand_in.hosted.check(commit, "test", "success")
    assert gh(stand_in, "issue", "list", folder=tmp_path).split("\t")[:4] == ["1", "OPEN", "Add a login", "bug"]
    assert "author:\tacme" in gh(stand_in, "issue", "view", "1", folder=tmp_path)
    assert made["number"] == 2
    assert "A pull\ttopic\tOPEN" in gh(stand_in, "pr", "list", folder=tmp_path)
    assert "Closes #1" in gh(stand_in, "pr", "view", "2", folder=tmp_path)
    assert "test\tpass" in gh(stand_in, "pr", "checks", "2", folder=tmp_path)
    gh(stand_in, "pr", "merge", "2", "--merge", folder=tmp_path)
    assert stand_in.hosted.pull(2).merged == stand_in.hosted.tip("main")
    assert stand_in.hosted.issues[1].state == "closed"
    assert stand_in.hosted.pull(2).merged_by == OWNER
