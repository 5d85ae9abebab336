"""Collecting fast-forwards the person's branch where it is checked out, or says in a sentence why not."""

from __future__ import annotations

from pathlib import Path

import pytest

from legion.git.core.errors import CollectRefused
from legion.git.person.collect import CollectedRange, collect
from legion.system.crash import Point
from tests.git.making import Grounds, Person, change, dies_at, photograph, program


@pytest.fixture
def landed(grounds: Grounds, tmp_path: Path) -> str:
    files = {"new.txt": "landed\n", "README.md": "# Landed\n"}
    return change(grounds.hub, grounds.target, files, tmp_path, "landed")


def test_the_branch_and_its_checkout_move(grounds: Grounds, person: Person, landed: str):
    old = person.head
    assert collect(person.path, "main", grounds.hub, landed) == CollectedRange(old=old, new=landed, files=2)
    assert person.head == landed
    assert person.git("symbolic-ref", "HEAD") == "refs/heads/main"
    assert person.git("status", "--porcelain") == ""
    assert (person.path / "new.txt").read_text() == "landed\n"
    person.git("fsck")


def test_collecting_again_changes_nothing(grounds: Grounds, person: Person, landed: str):
    collect(person.path, "main", grounds.hub, landed)
    before = photograph(person.path)
    assert collect(person.path, "main", grounds.hub, landed) == CollectedRange(old=landed, new=landed, files=0)
    assert photograph(person.path) == before


def test_a_repository_that_cannot_be_written_is_named(grounds: Grounds, person: Person, landed: str):
    for number in range(256):
        folder = person.git_dir / "objects" / f"{number:02x}"
        if not folder.exists():
            folder.touch()
    with pytest.raises(CollectRefused, match=f"could not be written into {person.git_dir} .*make it writable"):
        collect(person.path, "main", grounds.hub, landed)


def test_a_branch_that_is_ahead_of_the_landed_code_stays(grounds: Grounds, person: Person):
    old = grounds.target
    tip = person.commit({"mine": "1\n"})
    assert collect(person.path, "main", grounds.hub, old) == CollectedRange(old=tip, new=tip, files=0)


def test_only_the_branch_the_index_and_the_files_change(grounds: Grounds, person: Person, landed: str):
    person.write("README.md", "stashed\n")
    person.git("stash")
    person.git("branch", "other")
    config = (person.git_dir / "config").read_bytes()
    collect(person.path, "main", grounds.hub, landed)
    refs = person.git("for-each-ref", "--format=%(refname)").split()
    assert refs == ["refs/heads/main", "refs/heads/other", "refs/stash"]
    assert (person.git_dir / "config").read_bytes() == config
    assert not (person.git_dir / "FETCH_HEAD").exists()


def test_it_moves_the_linked_worktree_that_has_the_branch(
    grounds: Grounds, person: Person, landed: str, tmp_path: Path
):
    person.git("checkout", "-q", "-b", "elsewhere")
    person.git("worktree", "add", "-q", tmp_path / "linked worktree", "main")
    collect(person.path, "main", grounds.hub, landed)
    linked = Person(tmp_path / "linked worktree")
    assert linked.head == landed
    assert linked.git("status", "--porcelain") == ""
    assert person.git("symbolic-ref", "HEAD") == "refs/heads/elsewhere"
    assert person.git("status", "--porcelain") == ""


def test_a_branch_that_nobody_has_checked_out_is_swapped(grounds: Grounds, person: Person, landed: str):
    person.git("checkout", "-q", "-b", "elsewhere")
    here = person.head
    collect(person.path, "main", grounds.hub, landed)
    assert person.git("rev-parse", "main") == landed
    assert person.head == here
    assert person.git("status", "--porcelain") == ""


def test_a_deleted_linked_worktree_does_not_hold_the_branch(
    grounds: Grounds, person: Person, landed: str, tmp_path: Path
):
    person.git("checkout", "-q", "-b", "elsewhere")
    person.git("worktree", "add", "-q", tmp_path / "linked", "main")
    (tmp_path / "linked").rename(tmp_path / "gone")
    collect(person.path, "main", grounds.hub, landed)
    assert person.git("rev-parse", "main") == landed


def test_a_git_folder_that_lies_elsewhere_is_no_hindrance(
    grounds: Grounds, person: Person, landed: str, tmp_path: Path
):
    person.git("init", "-q", "--separate-git-dir", tmp_path / "separate")
    collect(person.path, "main", grounds.hub, landed)
    assert person.head == landed
    assert person.git("status", "--porcelain") == ""


def test_local_changes_elsewhere_stay_as_they_are(grounds: Grounds, person: Person, landed: str):
    person.write("src/app.py", "my work\n")
    person.write("untracked", "mine\n")
    collect(person.path, "main", grounds.hub, landed)
    assert (person.path / "src/app.py").read_text() == "my work\n"
    assert person.git("status", "--porcelain") == "M src/app.py\n?? untracked"


def test_the_persons_own_filters_and_hooks_take_part(grounds: Grounds, person: Person, tmp_path: Path):
    base = person.commit({".gitattributes": "*.txt filter=shout\n"})
    grounds.hub.fetch_person(person.git_dir, "main")
    commit = change(grounds.hub, base, {"new.txt": "landed\n"}, tmp_path)
    person.git("config", "filter.shout.smudge", "tr a-z A-Z")
    program(person.git_dir / "hooks/post-merge", tmp_path / "proof")
    collect(person.path, "main", grounds.hub, commit)
    assert (person.path / "new.txt").read_text() == "LANDED\n"
    assert (tmp_path / "proof").exists()


class TestRefusing:
    def refused(self, grounds: Grounds, landed: str, words: str, person: Person | None = None) -> None:
        at = person or grounds.person
        tip = at.git("rev-parse", "--verify", "-q", "main", accept=(0, 1))
        status = at.git("status", "--porcelain")
        with pytest.raises(CollectRefused, match=words):
            collect(at.path, "main", grounds.hub, landed)
        assert at.git("rev-parse", "--verify", "-q", "main", accept=(0, 1)) == tip
        assert at.git("status", "--porcelain") == status

    def test_a_branch_with_commits_of_its_own(self, grounds: Grounds, person: Person, landed: str):
        person.commit({"mine": "1\n"})
        self.refused(grounds, landed, "main has commits that are not in the landed code")

    def test_local_changes_in_the_way_are_named(self, grounds: Grounds, person: Person, landed: str):
        person.write("README.md", "my work\n")
        self.refused(grounds, landed, r"are in the way \(README\.md\)")
        assert (person.path / "README.md").read_text() == "my work\n"

    def test_untracked_files_in_the_way_are_named(self, grounds: Grounds, person: Person, landed: str):
        person.write("new.txt", "my own\n")
        self.refused(grounds, landed, r"are in the way \(new\.txt\)")
        assert (person.path / "new.txt").read_text() == "my own\n"

    def test_local_changes_are_never_stashed_away(self, grounds: Grounds, person: Person, landed: str):
        person.git("config", "merge.autoStash", "true")
        person.write("README.md", "my work\n")
        self.refused(grounds, landed, "are in the way")

    def test_a_deleted_branch(self, grounds: Grounds, person: Person, landed: str):
        person.git("checkout", "-q", "-b", "other")
        person.git("branch", "-D", "main")
        self.refused(grounds, landed, "main is not in the repository any more")

    def test_a_merge_in_progress(self, grounds: Grounds, person: Person, landed: str):
        person.git("checkout", "-q", "-b", "other")
        person.commit({"run.sh": "other\n"})
        person.git("checkout", "-q", "main")
        person.git("merge", "-q", "--no-ff", "--no-commit", "other")
        self.refused(grounds, landed, "A merge is in progress")

    def test_a_rebase_of_the_branch_in_progress(self, grounds: Grounds, person: Person, landed: str):
        first = person.head
        person.git("branch", "other")
        tip = person.commit({"run.sh": "mine\n"})
        person.git("checkout", "-q", "other")
        person.commit({"run.sh": "other\n"})
        person.git("rebase", "-q", "other", "main", accept=(1,))
        person.git("update-ref", "refs/heads/main", first, tip)
        self.refused(grounds, landed, "main is being rebased or bisected")

    def test_another_git_at_work(self, grounds: Grounds, person: Person, landed: str):
        (person.git_dir / "index.lock").touch()
        self.refused(grounds, landed, "would not fast-forward main")


@pytest.mark.parametrize("point", [Point.GIT_COLLECT_AFTER_FETCH, Point.GIT_COLLECT_AFTER_MOVE])
def test_a_crash_while_collecting_is_mended_by_collecting_again(
    grounds: Grounds, person: Person, landed: str, point: Point
):
    assert dies_at(point, lambda: collect(person.path, "main", grounds.hub, landed))
    collect(person.path, "main", grounds.hub, landed)
    assert person.head == landed
    assert person.git("status", "--porcelain") == ""
