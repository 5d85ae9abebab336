"""Two sessions of one repository at once, with the real daemon: each lands on its own branch, and one is completed."""

from __future__ import annotations

from collections.abc import Callable

from tests.support.legion import Project


def test_two_sessions_work_at_once_land_apart_and_one_is_completed(make: Callable[..., Project]):
    project = make()
    here = project.repository
    here.git("branch", "feature/login")
    legion = project.squad.cli
    assert legion("session", "new", "feature/login", cwd=here.root).returncode == 0
    words = ("--command", "echo branch > b.txt", "-t", "On the branch")
    assert legion("dispatch", *words, cwd=here.root).returncode == 0
    words = ("--command", "echo main > m.txt", "-t", "On main")
    assert legion("dispatch", "--session", "default", *words, cwd=here.root).returncode == 0

    done = legion("session", "complete", "feature-login", "--wait", "--into", "default", cwd=here.root)
    assert done.returncode == 0, done.stderr
    assert "Session feature-login is complete. feature/login has 2 new commits." in done.stdout
    assert here.git("show", "feature/login:b.txt") == "branch"
    assert "m.txt" not in here.git("ls-tree", "--name-only", "feature/login")
    assert legion("collect", "--wait", cwd=here.root).returncode == 0
    assert (here.root / "m.txt").read_text() == "main\n"
    assert (here.root / "b.txt").read_text() == "branch\n"
    assert "Land feature/login" in here.git("log", "--format=%s")
    listed = legion("session", "list", "--all", cwd=here.root).stdout
    assert "feature-login" in listed
    assert "ended" in listed
