"""A ticket's work as a new branch of the person's repository, whatever the repository hashes with."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from legion.git.hub.repository import Hub
from legion.git.person.branches import offer


def made(folder: Path, kind: str) -> str:
    """A repository with one commit."""
    git = ("git", "-c", "user.name=P", "-c", "user.email=p@example.invalid", "-C", str(folder))
    subprocess.run(("git", "init", "-q", "-b", "main", f"--object-format={kind}", str(folder)), check=True)
    subprocess.run((*git, "commit", "-q", "--allow-empty", "-m", "first"), check=True)
    return subprocess.run((*git, "rev-parse", "HEAD"), check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.parametrize("kind", ["sha1", "sha256"])
def test_a_branch_is_made_once_and_one_that_is_there_is_never_moved(tmp_path: Path, kind: str):
    person = tmp_path / "person"
    commit = made(person, kind)
    hub = Hub.create(person / ".git", tmp_path / "hub.git")
    hub.start_target(hub.fetch_person(person / ".git", "main"))
    assert offer(person, hub, commit, "legion/1-it") == "legion/1-it"
    assert offer(person, hub, commit, "legion/1-it") == "legion/1-it"
    git = ("git", "-c", "user.name=P", "-c", "user.email=p@example.invalid", "-C", str(person))
    subprocess.run((*git, "commit", "-q", "--allow-empty", "-m", "second"), check=True)
    subprocess.run((*git, "branch", "mine"), check=True)
    assert offer(person, hub, commit, "mine") == "mine-2"
