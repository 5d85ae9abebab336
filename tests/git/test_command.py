"""One way to run git, and nothing of the surroundings takes part."""

from __future__ import annotations

import os

import pytest

from legion.git.core.command import as_text, git, read_version, version
from legion.git.core.errors import GitError, GitMissing, GitTimedOut, GitTooOld
from tests.git.making import Person, program


def test_the_program_is_new_enough():
    assert version() >= (2, 38, 0)


@pytest.mark.parametrize(
    ("said", "numbers"),
    [("git version 2.39.5", (2, 39, 5)), ("git version 2.50.1 (Apple Git-155)", (2, 50, 1)), ("git 2.38", (2, 38, 0))],
)
def test_versions_are_read_as_vendors_write_them(said: str, numbers: tuple[int, int, int]):
    assert read_version(said) == numbers


def test_a_version_without_numbers_is_too_old():
    with pytest.raises(GitTooOld, match="update git"):
        read_version("something else")


def test_a_missing_program_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GitMissing, match="install git"):
        git("version", git_dir=None)


def test_an_unexpected_exit_code_names_command_and_complaint(person: Person):
    with pytest.raises(GitError) as caught:
        git("cat-file", "commit", "nothing", git_dir=person.git_dir)
    assert caught.value.argv[1] == "cat-file"
    assert "nothing" in caught.value.complaint


def test_a_git_that_hangs_is_stopped(tmp_path):
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with pytest.raises(GitTimedOut, match="stopped after"):
        git("hash-object", "--no-filters", str(fifo), git_dir=None, cwd=tmp_path, timeout=0.3)


def test_variables_of_the_caller_do_not_reach_git(person: Person, monkeypatch: pytest.MonkeyPatch, tmp_path):
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_CONFIG_PARAMETERS", "'core.bare'='true'")
    assert git("rev-parse", "HEAD", git_dir=person.git_dir).text.strip()


def test_hooks_monitors_and_ssh_commands_of_a_repository_never_run(person: Person, tmp_path):
    proof = tmp_path / "proof"
    evil = program(tmp_path / "evil", proof)
    for hook in ("post-index-change", "reference-transaction", "post-checkout"):
        program(person.git_dir / "hooks" / hook, proof)
    person.git("config", "core.fsmonitor", str(evil))
    person.git("config", "core.sshCommand", str(evil))
    person.git("config", "remote.origin.url", "ssh://localhost/x")
    proof.unlink(missing_ok=True)
    person.write("README.md", "changed\n")
    git("add", "-A", git_dir=person.git_dir, work_tree=person.path)
    git("update-ref", "refs/heads/other", "HEAD", git_dir=person.git_dir)
    git("fetch", "origin", git_dir=person.git_dir, accept=(0, 1, 128))
    git("fetch", f"ext::{evil}", git_dir=person.git_dir, accept=(0, 1, 128))
    assert not proof.exists()


def test_a_name_that_looks_like_an_option_is_only_a_name(grounds, tmp_path):
    written = tmp_path / "written"
    assert grounds.hub.resolve(f"--output={written}") is None
    with pytest.raises(GitError):
        grounds.hub.diff(f"--output={written}", grounds.target)
    with pytest.raises(GitError):
        grounds.hub.commits_between("x", f"--output={written}")
    assert not written.exists()


def test_a_path_is_no_pattern_unless_asked_for(person: Person):
    assert git("ls-files", "--", "*.md", git_dir=person.git_dir, work_tree=person.path).text == ""
    asked = git("--no-literal-pathspecs", "ls-files", "--", "*.md", git_dir=person.git_dir, work_tree=person.path)
    assert asked.text == "README.md\n"


def test_bytes_that_are_not_text_show_as_escapes():
    assert as_text(b"caf\xe9") == "caf\\xe9"
