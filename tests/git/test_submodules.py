"""Submodules: trees hold the files that the person's clone has; what an agent does to them is no part of its change."""

from __future__ import annotations

from pathlib import Path

import pytest

from legion.git.trees.check_trees import CheckTrees
from tests.git.making import Grounds, Person
from tests.git.test_filters import with_source

LOCAL = ("-c", "protocol.file.allow=always")


@pytest.fixture
def grounds(person: Person, tmp_path: Path) -> Grounds:
    """A project with a submodule that has one itself."""
    inner, outer = (Person.with_repository(tmp_path / name) for name in ("inner", "outer"))
    inner.commit({"deep.txt": "deep\n"})
    outer.git(*LOCAL, "submodule", "--quiet", "add", inner.path, "inner")
    outer.commit({"lib.txt": "lib\n"})
    person.git(*LOCAL, "submodule", "--quiet", "add", outer.path, "vendor/lib")
    person.git(*LOCAL, "submodule", "--quiet", "update", "--init", "--recursive")
    person.commit({}, "submodules")
    return with_source(Grounds(tmp_path / "legion", person))


def test_worktrees_and_check_trees_hold_the_files_of_submodules(grounds: Grounds):
    agent = grounds.agent()
    checks = CheckTrees(grounds.hub, grounds.folder / "checks", grounds.side)
    tree = checks.prepare("0", grounds.target)
    for top in (agent.path, tree):
        assert (top / "vendor/lib/lib.txt").read_text() == "lib\n"
        assert (top / "vendor/lib/inner/deep.txt").read_text() == "deep\n"
    assert agent.git("status", "--porcelain") == ""
    (tree / "vendor/lib/lib.txt").write_text("edited by a check\n")
    (tree / "vendor/lib/left").write_text("left by a check\n")
    tree = checks.prepare("0", grounds.target)
    assert sorted(place.name for place in (tree / "vendor/lib").iterdir()) == [".gitmodules", "inner", "lib.txt"]
    assert (tree / "vendor/lib/lib.txt").read_text() == "lib\n"


def test_an_edit_of_a_submodule_is_told_and_no_part_of_the_change(grounds: Grounds):
    agent = grounds.agent()
    assert grounds.save().submodules == ()
    agent.write("vendor/lib/lib.txt", "edited\n")
    agent.write("new", "1\n")
    saved = grounds.save()
    assert saved.submodules == ("vendor/lib",)
    assert [file.path for file in grounds.hub.changed_files(grounds.target, saved.commit)] == ["new"]


def test_a_name_that_leads_to_another_repository_brings_nothing(grounds: Grounds, tmp_path: Path):
    person = grounds.person
    other = Person.with_repository(person.git_dir / "other")
    secret = other.commit({"secret": "1\n"})
    person.git("update-index", "--add", "--cacheinfo", f"160000,{secret},stolen")
    person.write(".gitmodules", '[submodule "../other/.git"]\n\tpath = stolen\n\turl = ./x\n')
    person.git("add", ".gitmodules")
    person.git("commit", "-q", "-m", "stolen")
    tip = grounds.hub.fetch_person(person.git_dir, "main")
    assert list((grounds.agent("2", tip).path / "stolen").iterdir()) == []
    assert not grounds.hub.has(secret)
