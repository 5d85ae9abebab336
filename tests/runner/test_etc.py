"""The copy of /etc for sandboxes: all that is allowed, nothing else, and always as /etc is now."""

from __future__ import annotations

import os
from pathlib import Path

from legion.runner import etc
from legion.runner.sandbox import Sandbox
from tests.runner.runs import Workbench
from tests.runner.test_sandbox import HOME, inside


def everything(folder: Path) -> set[str]:
    found = (Path(top, name) for top, folders, files in os.walk(folder) for name in (*folders, *files))
    return {str(path.relative_to(folder)) for path in found}


def test_the_copy_shows_what_mounting_each_entry_shows(sandboxed: Workbench):
    copy = etc.sync(sandboxed.root / "etc")
    # Modes and owners of the folders in between are ours, so only names, links and contents are compared.
    script = "cd /etc; find . -type f -exec cksum {} + | sort; find . -type l -printf '%p %l\\n' | sort; find . -type d"
    apart, copied = (
        inside(sandboxed, script, Sandbox(home=HOME, writable=(sandboxed.worktree,), etc=folder))
        for folder in (None, copy)
    )
    assert any("./passwd" in line for line in copied)
    assert sorted(copied) == sorted(apart)


def test_private_entries_are_not_copied(sandboxed: Workbench):
    copy = etc.sync(sandboxed.root / "etc")
    assert not everything(copy) & {"shadow", "gshadow", "ssh", "sudoers", "ssl/private", "machine-id"}
    sandbox = Sandbox(home=HOME, writable=(sandboxed.worktree,), etc=copy)
    assert inside(sandboxed, "touch /etc/x 2>/dev/null || echo read-only", sandbox) == ["read-only"]


def test_what_changed_or_went_is_put_right_by_the_next_sync(tmp_path: Path):
    copy = etc.sync(tmp_path / "etc")
    before = everything(copy)
    passwd = (copy / "passwd").read_bytes()
    (copy / "passwd").write_text("changed")
    (copy / "left-over").write_text("x")
    (copy / "ssl").mkdir(exist_ok=True)
    (copy / "ssl/private").mkdir()
    (copy / "hosts").unlink()
    (copy / "hosts").mkdir()
    untouched = (copy / "group").stat().st_ino
    etc._sync(copy)
    assert everything(copy) == before
    assert (copy / "passwd").read_bytes() == passwd
    assert (copy / "hosts").is_file()
    assert (copy / "group").stat().st_ino == untouched


def test_a_small_sandbox_has_git_and_the_listed_folders_and_little_else(sandboxed: Workbench):
    sandbox = Sandbox(home=HOME, readable=(sandboxed.worktree,), small=True)
    assert inside(sandboxed, "git --version | cut -c1-3; ls -d /etc /proc /home /run 2>/dev/null", sandbox) == ["git"]
    assert inside(sandboxed, "touch x /usr/x /x 2>/dev/null; ls -A . ; ls /", sandbox)[-1:] == ["usr"]


def test_the_mark_of_a_run_does_not_reach_the_program_in_a_sandbox(sandboxed: Workbench):
    assert inside(sandboxed, "echo ${LEGION_RUN-unset}", Sandbox(home=HOME, writable=(sandboxed.worktree,))) == [
        "unset"
    ]
