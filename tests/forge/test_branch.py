"""The target `branch`: landed work is pushed by fast-forward only, to GitHub or to any git remote; offline it waits."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from legion.demo.forge.server import make_bare
from legion.service.forge import connections, issues
from legion.service.tickets import dispatch
from legion.wire.dispatch import Dispatch, NewTicket
from legion.wire.errors import BadInput
from legion.wire.forge import AddForge, AssignIssues
from tests.forge.desk import Desk
from tests.support.repository import Repository


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    """Any bare repository that git can push to."""
    Repository(tmp_path / "shop", '[landing]\ntarget = "branch"\n')
    return make_bare(tmp_path / "shop", tmp_path / "remote.git")


@pytest.fixture
def plain(tmp_path: Path, remote: Path) -> Iterator[Desk]:
    one = Desk(tmp_path / "legion", Repository.at(tmp_path / "shop"))
    one.adopt()
    connections.add(one.context, AddForge(cwd=one.cwd, kind="git", address=str(remote)))
    yield one
    one.close()


def ask(desk: Desk, title: str) -> None:
    ticket = NewTicket(title=title, command="agent")
    dispatch.dispatch(desk.context, Dispatch(cwd=desk.cwd, tickets=[ticket]))


def files(remote: Path) -> set[str]:
    listed = subprocess.run(("git", "ls-tree", "--name-only", "main"), cwd=remote, capture_output=True, text=True)
    return set(listed.stdout.split())


def test_landed_work_is_pushed_and_commits_of_others_are_absorbed(plain: Desk, remote: Path, tmp_path: Path):
    ask(plain, "one")
    assert plain.round({"one.txt": "1\n"}) == ""
    assert plain.state() == "done"
    assert "one.txt" in files(remote)
    other = tmp_path / "other"
    subprocess.run(("git", "clone", "-q", str(remote), str(other)), check=True)
    theirs = Repository.at(other)
    for name in ("name", "email"):
        theirs.git("config", f"user.{name}", "w@example.invalid")
    theirs.commit("theirs", {"theirs.txt": "theirs\n"})
    theirs.git("push", "--quiet")
    ask(plain, "two")
    plain.round({"two.txt": "2\n"})
    plain.round()
    assert files(remote) >= {"one.txt", "two.txt", "theirs.txt"}
    assert plain.state(2) == "done"


def test_offline_everything_waits_and_continues(plain: Desk, remote: Path, tmp_path: Path):
    remote.rename(tmp_path / "away.git")
    ask(plain, "one")
    assert "git cannot reach the remote" in plain.round({"one.txt": "1\n"})
    assert plain.state() == "done", "it landed here"
    (line,) = connections.listed(plain.context).forges
    assert line.problem.startswith("git cannot reach the remote")
    assert line.problem_since is not None
    (tmp_path / "away.git").rename(remote)
    assert plain.look() == ""
    assert "one.txt" in files(remote)
    assert connections.listed(plain.context).forges[0].problem == ""


def test_a_plain_remote_has_no_issues(plain: Desk):
    with pytest.raises(BadInput, match="plain git remote without issues"):
        issues.assign(plain.context, AssignIssues(cwd=plain.cwd, issues=[1]))


BAD: list[tuple[dict[str, Any], str]] = [
    ({"kind": "gitlab", "address": "a/b"}, "knows no forge 'gitlab'"),
    ({"kind": "github", "address": "nowhere"}, "write OWNER/REPO"),
    ({"kind": "github", "address": "a/b"}, "The token is missing"),
    ({"kind": "github", "address": "a/b", "key": "two words"}, "one word of ASCII"),
    ({"kind": "github", "address": "a/b", "key_env": "X", "gh": True}, "comes from one place"),
    ({"kind": "github", "address": "a/b", "key": "x", "url": "ftp://x"}, "is no address"),
    ({"kind": "github", "address": "a/b", "key": "x", "url": "https://u:p@x"}, "Leave the password out"),
    ({"kind": "git", "address": "ext::sh -c x"}, "needs an address"),
    ({"kind": "git", "address": "--upload-pack=x"}, "needs an address"),
    ({"kind": "git", "address": "/x", "key": "x"}, "takes no token"),
]


def test_a_bad_forge_gets_one_sentence_and_changes_nothing(plain: Desk):
    before = connections.listed(plain.context)
    for wanted, sentence in BAD:
        with pytest.raises(BadInput, match=sentence):
            connections.add(plain.context, AddForge(cwd=plain.cwd, **wanted))
    assert connections.listed(plain.context) == before


def test_a_change_for_a_pull_request_that_no_forge_can_hold_is_parked_with_the_reason(plain: Desk, remote: Path):
    plain.shop.commit("to pull requests", {"legion.toml": '[landing]\ntarget = "pr"\n'})
    plain.shop.git("push", "--quiet", str(remote), "main")
    plain.adopt()
    plain.round()
    added = connections.add(plain.context, AddForge(cwd=plain.cwd, kind="git", address=str(remote)))
    assert added.notes == ['A git remote has no pull requests: set `target = "branch"` in [landing] of legion.toml.']
    ask(plain, "one")
    plain.round({"one.txt": "1\n"})
    assert plain.state() == "parked"
    assert "no forge with pull requests is there" in plain.tickets[1].reason


POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'a' * 64}\nsize 3\n"
LARGE = {".gitattributes": "*.bin filter=lfs\n", "a.bin": POINTER}


def test_files_of_lfs_are_not_pushed_without_their_content_and_the_cure_is_named(plain: Desk, remote: Path):
    ask(plain, "large")
    assert "a.bin" in plain.round(LARGE)
    assert plain.state() == "done"
    assert "a.bin" not in files(remote)
    trouble = plain.look()
    assert "`legion collect` and `git push`" in trouble
    words = ("git", "push", "--quiet", str(remote), f"{plain.project.target}:refs/heads/main")
    subprocess.run(words, cwd=plain.project.hub.path, check=True)
    assert plain.look() == ""
