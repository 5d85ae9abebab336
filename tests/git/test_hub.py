"""The hub holds what Legion knows, and the person's repository never notices."""

from __future__ import annotations

import os
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from legion.git.core.command import git
from legion.git.core.errors import BranchGone, GitError, TargetMoved
from legion.git.core.history import FileStatus
from legion.git.hub.repository import Hub, write_ref
from legion.git.trees.worktrees import Worktrees
from legion.system.crash import Point
from tests.git.making import Grounds, Person, change, dies_at, photograph, save


def test_making_and_using_a_hub_leaves_the_person_untouched_to_the_byte(person: Person, tmp_path):
    person.git("repack", "-adq")
    person.commit({"loose.txt": "not packed\n"})
    person.git("tag", "v1")
    before = photograph(person.path)
    grounds = Grounds(tmp_path / "legion", person)
    # Saving a file that the person has as well makes git touch the objects it finds.
    agent = grounds.agent()
    agent.write("copy.py", (person.path / "src/app.py").read_bytes())
    agent.write("copy.txt", (person.path / "loose.txt").read_bytes())
    grounds.save()
    grounds.hub.tidy()
    grounds.hub.fetch_person(person.git_dir, "main")
    assert photograph(person.path) == before


def test_a_hub_that_is_there_is_adopted(grounds: Grounds, person: Person):
    again = Hub.create(person.git_dir, grounds.hub.path)
    assert again.target() == grounds.target


def test_threads_that_make_the_same_hub_get_one(person: Person, tmp_path):
    with ThreadPoolExecutor(4) as threads:
        hubs = list(threads.map(lambda _: Hub.create(person.git_dir, tmp_path / "hubs/hub.git"), range(4)))
    assert {hub.path for hub in hubs} == {tmp_path / "hubs/hub.git"}
    assert [entry.name for entry in (tmp_path / "hubs").iterdir()] == ["hub.git"]


def test_the_hub_has_no_remote_no_branch_and_no_hook(grounds: Grounds):
    config = (grounds.hub.path / "config").read_text()
    assert "remote" not in config
    assert not (grounds.hub.path / "hooks").exists()
    assert list(grounds.hub.kept()) == ["person/main", "target"]


def test_the_hub_survives_gc_and_prune_of_the_person(grounds: Grounds, person: Person):
    old = grounds.target
    person.git("checkout", "-q", "--orphan", "other")
    person.commit({"only": "this\n"})
    person.git("branch", "-D", "main")
    person.git("reflog", "expire", "--expire=now", "--all")
    person.git("gc", "-q", "--prune=now")
    person.git("cat-file", "-e", old, accept=(1, 128))
    assert grounds.hub.read_file(old, "README.md") == b"# A project\n"
    grounds.hub._git("fsck", "--connectivity-only")


def test_a_repository_that_borrows_its_objects_gives_a_hub_that_stands_alone(person: Person, tmp_path):
    person.git("clone", "-q", "--shared", ".", tmp_path / "borrower")
    hub = Hub.create(tmp_path / "borrower/.git", tmp_path / "hub.git")
    tip = hub.fetch_person(tmp_path / "borrower/.git", "main")
    shutil.rmtree(person.path)
    assert hub.read_file(tip, "README.md") == b"# A project\n"


def test_an_empty_repository_gives_an_empty_hub(tmp_path):
    empty = Person.with_repository(tmp_path / "repo")
    hub = Hub.create(empty.git_dir, tmp_path / "hub.git")
    assert hub.target() is None
    with pytest.raises(BranchGone):
        hub.fetch_person(empty.git_dir, "main")
    first = empty.commit({"a": "1"})
    assert hub.fetch_person(empty.git_dir, "main") == first


def test_a_repository_with_long_ids_works_too(tmp_path):
    person = Person.with_repository(tmp_path / "repo", "--object-format=sha256")
    person.commit({"a": "1\n"})
    grounds = Grounds(tmp_path / "legion", person)
    agent = grounds.agent()
    agent.commit({"b": "2\n"})
    assert grounds.names_in(grounds.save().tree) == ["a", "b"]


class TestFetching:
    def test_new_commits_and_rewritten_ones_arrive(self, grounds: Grounds, person: Person):
        new = person.commit({"new": "1"})
        assert grounds.hub.fetch_person(person.git_dir, "main") == new
        person.git("commit", "-q", "--amend", "-m", "rewritten")
        assert grounds.hub.fetch_person(person.git_dir, "main") == person.head != new
        assert grounds.hub.kept("person") == {"person/main": person.head}

    def test_a_deleted_branch_is_said(self, grounds: Grounds, person: Person):
        person.git("checkout", "-q", "-b", "other")
        person.git("branch", "-D", "main")
        with pytest.raises(BranchGone, match="main is not in the repository"):
            grounds.hub.fetch_person(person.git_dir, "main")

    def test_a_branch_below_a_deleted_branch_of_the_same_name_arrives(self, grounds: Grounds, person: Person):
        person.git("branch", "feature")
        grounds.hub.fetch_person(person.git_dir, "feature")
        person.git("branch", "-D", "feature")
        person.git("branch", "feature/part")
        assert grounds.hub.fetch_person(person.git_dir, "feature/part") == person.head

    def test_tags_travel_along_also_below_a_deleted_tag_of_the_same_name(self, grounds: Grounds, person: Person):
        person.git("tag", "v1")
        person.commit({"a": "1"})
        grounds.hub.fetch_person(person.git_dir, "main")
        person.git("tag", "-d", "v1")
        person.git("tag", "v1/first")
        person.commit({"a": "2"})
        grounds.hub.fetch_person(person.git_dir, "main")
        assert grounds.hub.tags().split()[1::2] == [b"refs/tags/v1/first"]

    def test_tags_are_read_as_git_reads_them(self, grounds: Grounds, person: Person):
        def said_by_git() -> bytes:
            words = ("for-each-ref", "--format=%(objectname) %(refname)", "refs/tags/")
            return git(*words, git_dir=grounds.hub.path).stdout

        assert grounds.hub.tags() == said_by_git() == b""
        for name in ("v2", "v10", "deep/er/v1", "ümlaut"):
            person.git("tag", name)
        person.git("tag", "-a", "-m", "with words", "told")
        person.commit({"a": "1"})
        grounds.hub.fetch_person(person.git_dir, "main")
        loose = grounds.hub.tags()
        assert loose == said_by_git()
        assert loose.count(b"\n") == 5
        grounds.hub.tidy()
        assert grounds.hub.tags() == said_by_git() == loose
        person.git("tag", "--force", "v2")
        person.git("tag", "-d", "told")
        person.commit({"a": "2"})
        grounds.hub.fetch_person(person.git_dir, "main")
        assert grounds.hub.tags() == said_by_git() != loose

    def test_it_works_while_the_person_commits_and_collects_garbage(self, grounds: Grounds, person: Person):
        stop = threading.Event()

        def busy() -> None:
            for number in range(12):
                person.commit({"busy": f"{number}\n"})
                person.git("gc", "-q", "--prune=now")
            stop.set()

        with ThreadPoolExecutor(1) as threads:
            work = threads.submit(busy)
            while not stop.is_set() and not work.done():
                tip = grounds.hub.fetch_person(person.git_dir, "main")
                assert len(grounds.hub.files(tip)) >= 5
            work.result()
        assert grounds.hub.fetch_person(person.git_dir, "main") == person.head
        grounds.hub._git("fsck", "--connectivity-only")


class TestTarget:
    def test_it_starts_once(self, grounds: Grounds, tmp_path):
        first = grounds.target
        other = change(grounds.hub, first, {"a": "1"}, tmp_path)
        assert grounds.hub.start_target(other) == first == grounds.target

    def test_it_moves_from_what_is_expected(self, grounds: Grounds, tmp_path):
        first = grounds.target
        second = change(grounds.hub, first, {"a": "1"}, tmp_path)
        grounds.hub.move_target(second, expected=first)
        assert grounds.target == second

    def test_it_does_not_move_from_anywhere_else(self, grounds: Grounds, tmp_path):
        first = grounds.target
        second = change(grounds.hub, first, {"a": "1"}, tmp_path)
        third = change(grounds.hub, first, {"a": "2"}, tmp_path)
        grounds.hub.move_target(second, expected=first)
        with pytest.raises(TargetMoved) as caught:
            grounds.hub.move_target(third, expected=first)
        assert caught.value.found == second == grounds.target

    def test_moving_again_to_where_it_is_succeeds(self, grounds: Grounds, tmp_path):
        first = grounds.target
        second = change(grounds.hub, first, {"a": "1"}, tmp_path)
        grounds.hub.move_target(second, expected=first)
        grounds.hub.move_target(second, expected=first)
        assert grounds.target == second

    def test_of_many_threads_one_moves_it(self, grounds: Grounds, tmp_path):
        first = grounds.target
        commits = [change(grounds.hub, first, {"a": str(number)}, tmp_path) for number in range(6)]

        def move(commit: str) -> bool:
            try:
                grounds.hub.move_target(commit, expected=first)
            except TargetMoved:
                return False
            return True

        with ThreadPoolExecutor(6) as threads:
            moved = list(threads.map(move, commits))
        assert moved.count(True) == 1
        assert grounds.target == commits[moved.index(True)]

    def test_it_never_points_at_what_is_not_there(self, grounds: Grounds):
        with pytest.raises(GitError):
            grounds.hub.move_target("1" * 40, expected=grounds.target)

    def test_a_lock_that_a_killed_git_left_is_removed(self, grounds: Grounds, tmp_path):
        first = grounds.target
        second = change(grounds.hub, first, {"a": "1"}, tmp_path)
        lock = grounds.hub.path / "refs/legion/target.lock"
        lock.touch()
        old = time.time() - 60
        os.utime(lock, (old, old))
        grounds.hub.move_target(second, expected=first)
        assert grounds.target == second
        assert not lock.exists()

    @pytest.mark.parametrize("point", [Point.GIT_TARGET_BEFORE_SWAP, Point.GIT_TARGET_AFTER_SWAP])
    def test_a_crash_around_the_swap_costs_nothing(self, grounds: Grounds, tmp_path, point: Point):
        first = grounds.target
        second = change(grounds.hub, first, {"a": "1"}, tmp_path)
        assert dies_at(point, lambda: grounds.hub.move_target(second, expected=first))
        grounds.hub.move_target(second, expected=first)
        assert grounds.target == second


class TestKeeping:
    def test_a_kept_commit_is_found_and_can_move(self, grounds: Grounds, tmp_path):
        saved = change(grounds.hub, grounds.target, {"a": "1"}, tmp_path)
        grounds.hub.keep("wip/7", grounds.target)
        grounds.hub.keep("wip/7", saved)
        grounds.hub.keep("refs/legion/wip/8", saved)
        assert grounds.hub.kept("wip") == {"wip/7": saved, "wip/8": saved}
        assert grounds.hub.kept("wip/7") == {"wip/7": saved}
        assert grounds.hub.resolve("refs/legion/wip/7") == saved

    @pytest.mark.parametrize("name", ["target", "person/main", "../heads/x", "a b", "-x", "a//b", "a..b", "x.lock", ""])
    def test_names_that_are_taken_or_unsafe_are_refused(self, grounds: Grounds, name: str):
        with pytest.raises(ValueError, match=r"; use|; keep"):
            grounds.hub.keep(name, grounds.target)

    def test_a_packed_ref_can_move_and_be_packed_again(self, grounds: Grounds, tmp_path):
        saved = change(grounds.hub, grounds.target, {"a": "1"}, tmp_path)
        for commit in (grounds.target, saved):
            grounds.hub.keep("wip/7/1", commit)
            grounds.hub.tidy()
            assert grounds.hub.kept("wip") == {"wip/7/1": commit}
            assert not (grounds.hub.path / "refs/legion/wip").exists()

    @pytest.mark.parametrize("packed", [False, True])
    @pytest.mark.parametrize("name", ["wip", "wip/7/1/2"])
    def test_a_name_that_is_a_folder_of_another_is_refused(self, grounds: Grounds, name: str, packed: bool):
        grounds.hub.keep("wip/7/1", grounds.target)
        if packed:
            grounds.hub.tidy()
        with pytest.raises(GitError, match="exists; cannot create"):
            grounds.hub.keep(name, grounds.target)
        assert grounds.hub.kept() == {
            "wip/7/1": grounds.target,
            **grounds.hub.kept("target"),
            **grounds.hub.kept("person"),
        }

    def test_what_is_no_commit_here_is_refused(self, grounds: Grounds):
        with pytest.raises(GitError):
            grounds.hub.keep("wip/7", "1" * 40)
        assert grounds.hub.kept("wip") == {}

    def test_a_lock_that_a_killed_process_left_is_removed(self, grounds: Grounds):
        lock = grounds.hub.path / "refs/legion/wip/7.lock"
        lock.parent.mkdir()
        lock.touch()
        os.utime(lock, (time.time() - 60,) * 2)
        assert not write_ref(grounds.hub.path, "refs/legion/wip/7", grounds.target)
        assert grounds.hub.kept("wip") == {}
        grounds.hub.keep("wip/7", grounds.target)
        assert grounds.hub.kept("wip") == {"wip/7": grounds.target}
        assert not lock.exists()

    @pytest.mark.parametrize("point", [Point.GIT_KEEP_AFTER])
    def test_a_crash_after_keeping_has_kept(self, grounds: Grounds, point: Point):
        assert dies_at(point, lambda: grounds.hub.keep("wip/7", grounds.target))
        grounds.hub.keep("wip/7", grounds.target)
        assert grounds.hub.kept("wip") == {"wip/7": grounds.target}


class TestReading:
    def test_files_are_read_from_a_commit(self, grounds: Grounds, tmp_path):
        commit = change(grounds.hub, grounds.target, {"-dash": b"\x00\xff", "[a]*": "glob\n"}, tmp_path)
        assert grounds.hub.read_file(commit, "-dash") == b"\x00\xff"
        assert grounds.hub.read_file(commit, "[a]*") == b"glob\n"
        assert grounds.hub.read_file(commit, "src/app.py") is not None
        assert grounds.hub.read_file(commit, "src") is None
        assert grounds.hub.read_file(commit, "not there") is None
        assert grounds.hub.read_file(commit, "*") is None

    def test_a_link_is_not_read_as_a_file(self, grounds: Grounds):
        agent = grounds.agent()
        (agent.path / "legion.toml").symlink_to("/etc/passwd")
        assert grounds.hub.read_file(grounds.save().commit, "legion.toml") is None

    def test_changed_files_have_status_and_counts(self, grounds: Grounds, tmp_path):
        files = {"README.md": "# A project\nmore\n", "run.sh": None, "new\nname": "1\n2\n", "pic.bin": b"\x00\x01"}
        commit = change(grounds.hub, grounds.target, files, tmp_path)
        seen = {
            file.path: (file.status, file.additions, file.deletions)
            for file in grounds.hub.changed_files(grounds.target, commit)
        }
        assert seen == {
            "README.md": (FileStatus.MODIFIED, 1, 0),
            "run.sh": (FileStatus.DELETED, 0, 1),
            "new\nname": (FileStatus.ADDED, 2, 0),
            "pic.bin": (FileStatus.ADDED, None, None),
        }

    def test_the_lines_of_several_changes_are_counted_at_once(self, grounds: Grounds, tmp_path):
        files = {"README.md": "# A project\nmore\n", "run.sh": None, "new\nname": "1\n2\n", "pic.bin": b"\x00\x01"}
        one = change(grounds.hub, grounds.target, files, tmp_path)
        two = change(grounds.hub, one, {"a": "1\n" * 40}, tmp_path)
        same = change(grounds.hub, grounds.target, {}, tmp_path, "nothing")
        told = grounds.hub.lines_changed([(grounds.target, one), (one, two), (grounds.target, same)])
        assert told == {one: 1 + 1 + 2 + 1, two: 40, same: 0}
        assert grounds.hub.lines_changed([(grounds.target, two)]) == {two: 45}
        assert grounds.hub.lines_changed([]) == {}

    def test_a_rename_shows_both_names(self, grounds: Grounds, person: Person, tmp_path):
        commit = change(grounds.hub, grounds.target, {"run.sh": None, "start.sh": "#!/bin/sh\n"}, tmp_path)
        assert [file.path for file in grounds.hub.changed_files(grounds.target, commit)] == ["run.sh", "start.sh"]

    def test_the_difference_and_the_commits_between_are_read(self, grounds: Grounds, tmp_path):
        one = change(grounds.hub, grounds.target, {"a": "1\n"}, tmp_path, "first words\n\nmore words")
        two = change(grounds.hub, one, {"a": "2\n"}, tmp_path, "second")
        assert "+2" in grounds.hub.diff(grounds.target, two)
        commits = grounds.hub.commits_between(grounds.target, two)
        assert [(commit.commit, commit.subject) for commit in commits] == [(one, "first words"), (two, "second")]
        assert commits[1].parents == (one,)
        assert grounds.hub.commits_between(two, two) == ()
        assert grounds.hub.straight_line(two, two) == ()
        assert grounds.hub.straight_line(grounds.target, two) == ((grounds.target, one), (one, two))
        assert grounds.hub.straight_line(two, grounds.target) is None

    def test_ancestry_is_answered(self, grounds: Grounds, tmp_path):
        one = change(grounds.hub, grounds.target, {"a": "1\n"}, tmp_path)
        two = change(grounds.hub, grounds.target, {"b": "1\n"}, tmp_path)
        assert grounds.hub.is_ancestor(grounds.target, one)
        assert not grounds.hub.is_ancestor(one, two)
        assert grounds.hub.merge_base(one, two) == grounds.target
        assert len(grounds.hub.files(one)) == 6
        assert grounds.hub.bytes_on_disk(one) == 6 * 4096


def test_tidying_packs_and_never_prunes(grounds: Grounds, tmp_path):
    unreferenced = change(grounds.hub, grounds.target, {"a": "only in a private repository\n"}, tmp_path)
    kept = change(grounds.hub, grounds.target, {"b": "1\n"}, tmp_path)
    grounds.hub.keep("wip/1", kept)
    grounds.hub.tidy()
    grounds.hub.tidy()
    assert grounds.hub.read_file(unreferenced, "a") == b"only in a private repository\n"
    assert grounds.hub.kept("wip") == {"wip/1": kept}
    loose = [entry for entry in grounds.hub.objects.iterdir() if len(entry.name) == 2]
    assert loose == []


def test_a_hub_is_packed_when_refs_or_packs_have_gathered_and_not_before(grounds: Grounds):
    hub = grounds.hub
    assert not hub.tidy_if_crowded()
    places = "".join(f"create refs/legion/wip/{number} {grounds.target}\n" for number in range(600))
    hub._git("update-ref", "--stdin", stdin=places.encode())
    assert hub.tidy_if_crowded()
    assert not hub.tidy_if_crowded()
    assert len(hub.kept("wip")) == 600
    assert [file for file in (hub.path / "refs").rglob("*") if file.is_file()] == []
    for number in range(60):
        blob = hub._git("hash-object", "-w", "--stdin", stdin=b"%d\n" % number).stdout
        hub._git("pack-objects", "-q", hub.objects / "pack/pack", stdin=blob)
        hub._git("prune-packed", "-q")
    assert hub.tidy_if_crowded()
    assert len(list((hub.objects / "pack").glob("*.pack"))) < 10
    assert not hub.tidy_if_crowded()


@pytest.mark.parametrize("point", [Point.GIT_HUB_BEFORE_PUBLISH, Point.GIT_HUB_AFTER_PUBLISH])
def test_a_crash_while_the_hub_is_made_leaves_a_whole_one_or_none(person: Person, tmp_path, point: Point):
    place = tmp_path / "hubs/hub.git"
    assert dies_at(point, lambda: Hub.create(person.git_dir, place))
    hub = Hub.create(person.git_dir, place)
    assert hub.fetch_person(person.git_dir, "main") == person.head


def test_a_crash_after_fetching_costs_nothing(grounds: Grounds, person: Person):
    new = person.commit({"a": "1"})
    assert dies_at(Point.GIT_PERSON_AFTER_FETCH, lambda: grounds.hub.fetch_person(person.git_dir, "main"))
    assert grounds.hub.fetch_person(person.git_dir, "main") == new


def test_the_private_repository_keeps_working_while_the_hub_is_tidied(grounds: Grounds, tmp_path):
    worktrees: Worktrees = grounds.worktrees
    commit = change(grounds.hub, grounds.target, {"a": "1\n"}, tmp_path)
    agent = Person(worktrees.acquire("1", commit, "legion/1"))
    grounds.hub.tidy()
    agent.git("fsck", "--connectivity-only")
    agent.write("b", "2\n")
    assert save(grounds.hub, agent.path, worktrees.index("1"), parent=commit).changed


@pytest.mark.parametrize("left", ["incoming/0123", "objects/tmp_objdir-bulk-fsync-0123"])
def test_what_a_killed_reader_left_goes_after_a_day(grounds: Grounds, left: str):
    place = grounds.hub.path / left
    place.mkdir(parents=True)
    (place / "half").write_text("1")
    grounds.hub.tidy_if_crowded()
    assert place.exists(), "its reader may be at work"
    os.utime(place, (1, 1))
    grounds.hub.tidy_if_crowded()
    assert not place.exists()
