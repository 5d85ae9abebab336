"""Clones that lack objects: shallow ones and partial ones work from init to collect."""

from __future__ import annotations

from pathlib import Path

import pytest

from legion.git.hub.incoming import agent_commits
from legion.git.hub.repository import Hub
from legion.git.person.collect import collect
from tests.git.making import Grounds, Person, in_tree


@pytest.mark.parametrize("how", ["--depth=1", "--filter=blob:none"])
def test_shallow_and_partial_clones_work_and_the_persons_git_fetches_what_is_missing(
    person: Person, tmp_path: Path, how: str
):
    person.commit({"README.md": "second\n"})
    person.git("config", "uploadpack.allowFilter", "true")
    person.git("config", "uploadpack.allowAnySHA1InWant", "true")
    person.git("clone", "-q", how, "--no-checkout", f"file://{person.path}", tmp_path / "clone")
    clone = Person(tmp_path / "clone")
    clone.git("config", "user.name", "Pat")
    clone.git("config", "user.email", "pat@example.org")
    hub = Hub.create(clone.git_dir, tmp_path / "grounds/hub.git", tip=clone.head)
    clone.git("checkout", "-q", "main")
    grounds = Grounds(tmp_path / "grounds", clone)
    hub.start_target(hub.fetch_person(clone.git_dir, "main"))
    agent = grounds.agent()
    assert (agent.path / "README.md").read_text() == "second\n"
    agent.commit({"new": "1\n"})
    saved = grounds.save(parent=agent_commits(hub, base=grounds.target, run_sandboxed=in_tree(agent.path)))
    collect(clone.path, "main", hub, saved.commit)
    assert (clone.path / "new").read_text() == "1\n"
    # Blobs of commits that were never checked out are missing until the person's git fetches them.
    person.commit({"README.md": "between\n"})
    person.commit({"README.md": "third\n"})
    clone.git("pull", "-q", "--no-rebase", "--no-edit")
    tip = hub.fetch_person(clone.git_dir, "main")
    assert hub.read_file(tip, "README.md") == b"third\n"
    hub.tidy()
    assert hub.read_file(tip, "new") == b"1\n"
