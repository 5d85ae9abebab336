"""Worktrees are whole or not there, cheap from the pool, and never deleted but thrown into the trash."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from legion.git.core.errors import FolderGone, GitError, ObjectsUnreadable
from legion.system import trees
from legion.system.crash import Point
from tests.git.making import Grounds, Person, as_user, change, dies_at, photograph
from tests.support.attacks import Attacker, Door, attack

PLENTY = 1 << 40


def fill(grounds: Grounds, count: int, commit: str | None = None) -> int:
    return grounds.worktrees.fill(count, commit or grounds.target, disk_cap_bytes=PLENTY)


def waiting(grounds: Grounds) -> int:
    return sum(tree.in_pool for tree in grounds.worktrees.list())


def test_where_the_data_folder_is_gone_no_tree_is_made_and_the_folder_does_not_appear_again(grounds: Grounds):
    commit = grounds.target
    fill(grounds, 1)
    shutil.rmtree(grounds.hub.path)
    shutil.rmtree(grounds.side)
    with pytest.raises(FolderGone):
        fill(grounds, 3, commit)
    assert not any(tree.in_pool for tree in grounds.worktrees.list())
    assert not grounds.side.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@attack(Attacker.LOCAL_USER, Door.SECRETS)
@pytest.mark.parametrize("was", [None, 0o755, 0o775, 0o2777], ids=["new", "0755", "0775", "2777"])
@pytest.mark.parametrize("place", ["trees/7/README.md", "trees/.pool/*/README.md", "trees/.trash/*/README.md"])
def test_no_other_user_reads_the_worktrees(person: Person, was: int | None, place: str):
    """Also where an earlier version made their folder."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        grounds = Grounds(folder / "legion", person)
        grounds.folder.chmod(0o755)
        if was is not None:
            (grounds.folder / "trees").chmod(was)
            grounds.worktrees = grounds.open()
        grounds.agent("7")
        grounds.agent("8")
        grounds.worktrees.discard("8")
        fill(grounds, 1)
        (file,) = grounds.folder.glob(place)

        def steal() -> str:
            try:
                return file.read_text()
            except PermissionError:
                return "refused"

        assert as_user(65534, steal) == "refused"
        assert file.read_text()


class TestAcquiring:
    @pytest.mark.parametrize("warm", [False, True])
    def test_a_worktree_is_a_clean_repository_on_its_own_branch(self, grounds: Grounds, warm: bool):
        if warm:
            fill(grounds, 1)
        agent = grounds.agent("7")
        assert agent.git("status", "--porcelain") == ""
        assert agent.git("symbolic-ref", "HEAD") == "refs/heads/legion/7"
        assert agent.head == grounds.target
        assert agent.files() == grounds.person.files()
        agent.git("fsck")
        agent.commit({"a": "1\n"})
        assert waiting(grounds) == 0

    def test_the_person_sees_nothing_of_what_an_agent_does_in_git(self, grounds: Grounds):
        before = photograph(grounds.person.path)
        agent = grounds.agent()
        agent.write("README.md", "changed\n")
        agent.git("stash")
        agent.git("branch", "mine")
        agent.git("gc", "-q", "--prune=now")
        assert photograph(grounds.person.path) == before
        assert grounds.hub.resolve("refs/stash") is None

    def test_a_folder_of_that_name_that_is_not_ours_goes_to_the_trash_and_is_not_taken_over(self, grounds: Grounds):
        place = grounds.worktrees.path("ticket-7")
        place.mkdir(parents=True)
        (place / "stranger.txt").write_text("of another ticket 7\n")
        assert grounds.worktrees.acquire("ticket-7", grounds.target, "legion/7") == place
        assert not (place / "stranger.txt").exists()
        assert (
            len(list(place.parent.glob(".trash/*/stranger.txt")) + list(place.parent.parent.rglob("stranger.txt"))) > 0
        )

    def test_tags_of_the_person_are_there(self, grounds: Grounds):
        grounds.person.git("tag", "-a", "-m", "one", "v1.0")
        grounds.person.commit({"a": "1\n"})
        tip = grounds.hub.fetch_person(grounds.person.git_dir, "main")
        assert grounds.agent("7", tip).git("describe").startswith("v1.0-1-g")

    def test_a_worktree_that_is_there_is_returned_as_it_is(self, grounds: Grounds, tmp_path: Path):
        agent = grounds.agent()
        agent.write("work", "in progress\n")
        later = change(grounds.hub, grounds.target, {"a": "1\n"}, tmp_path)
        assert grounds.worktrees.acquire("1", later, "legion/1") == agent.path
        assert (agent.path / "work").exists()

    def test_locks_of_a_killed_git_keep_no_agent_from_committing(self, grounds: Grounds, tmp_path: Path):
        agent = grounds.agent()
        agent.write("Cargo.lock", "of the project\n")
        for lock in ("index.lock", "HEAD.lock", "refs/heads/legion/1.lock"):
            (agent.path / ".git" / lock).write_text("")
        assert grounds.agent().commit({"a": "1\n"}) == agent.head
        assert "Cargo.lock" in agent.files()

    @pytest.mark.parametrize("linked", [".git", ".git/refs"])
    def test_links_of_an_agent_lead_to_no_locks_elsewhere(self, grounds: Grounds, tmp_path: Path, linked: str):
        agent, elsewhere = grounds.agent(), tmp_path / "elsewhere"
        elsewhere.mkdir()
        (elsewhere / "poetry.lock").write_text("of a person\n")
        shutil.rmtree(agent.path / linked)
        (agent.path / linked).symlink_to(elsewhere)
        grounds.agent()
        assert (elsewhere / "poetry.lock").exists()

    def test_a_warm_tree_of_another_commit_is_moved(self, grounds: Grounds, tmp_path: Path):
        fill(grounds, 1)
        later = change(
            grounds.hub, grounds.target, {"src/app.py": None, "new/deep": "1\n", "README.md": "2\n"}, tmp_path
        )
        agent = grounds.agent("7", later)
        assert agent.git("status", "--porcelain") == ""
        assert sorted(agent.files()) == sorted(grounds.names_in(later))
        assert waiting(grounds) == 0

    def test_a_tree_at_the_right_commit_is_preferred(self, grounds: Grounds, tmp_path: Path):
        later = change(grounds.hub, grounds.target, {"a": "1\n"}, tmp_path)
        fill(grounds, 1)
        fill(grounds, 2, later)
        grounds.agent("7", later)
        assert grounds.worktrees.freshen(grounds.target) == 0
        assert waiting(grounds) == 1

    def test_threads_that_want_the_same_worktree_get_one(self, grounds: Grounds):
        with ThreadPoolExecutor(4) as threads:
            paths = list(threads.map(lambda _: grounds.agent("7").path, range(4)))
        assert len(set(paths)) == 1
        assert Person(paths[0]).git("status", "--porcelain") == ""
        assert grounds.save("7").changed is False

    def test_an_unknown_commit_leaves_nothing_behind(self, grounds: Grounds):
        with pytest.raises(GitError):
            grounds.worktrees.acquire("7", "1" * 40, "legion/7")
        assert grounds.worktrees.list() == ()

    @pytest.mark.parametrize("name", ["", ".pool", "../x", "a/b", "-x", "a b"])
    def test_names_that_lead_elsewhere_are_refused(self, grounds: Grounds, name: str):
        with pytest.raises(ValueError, match="no name for a worktree"):
            grounds.worktrees.acquire(name, grounds.target, "legion/x")

    @pytest.mark.parametrize("warm", [False, True])
    @pytest.mark.parametrize("point", [Point.GIT_TREE_BEFORE_PUBLISH, Point.GIT_TREE_AFTER_PUBLISH])
    def test_a_crash_leaves_a_whole_tree_or_none(self, grounds: Grounds, point: Point, warm: bool):
        if warm:
            fill(grounds, 1)
        assert dies_at(point, lambda: grounds.agent("7"))
        survivors = grounds.open()
        survivors.sweep()
        agent = Person(survivors.acquire("7", grounds.target, "legion/7"))
        assert agent.git("status", "--porcelain") == ""
        assert grounds.save("7").changed is False
        assert list((grounds.folder / "trees/.making").iterdir()) == []

    def test_a_crash_after_the_claim_loses_only_the_warm_tree(self, grounds: Grounds):
        fill(grounds, 1)
        assert dies_at(Point.GIT_POOL_AFTER_CLAIM, lambda: grounds.agent("7"))
        survivors = grounds.open()
        assert len(survivors.sweep()) == 1
        assert survivors.list() == ()
        assert Person(survivors.acquire("7", grounds.target, "legion/7")).git("status", "--porcelain") == ""
        assert list((grounds.side / "pool").iterdir()) == []


class TestPool:
    def test_it_fills_to_the_count_and_not_beyond(self, grounds: Grounds):
        assert fill(grounds, 3) == 3
        assert fill(grounds, 3) == 0
        assert waiting(grounds) == 3

    def test_it_stops_before_the_disk_cap(self, grounds: Grounds):
        size = grounds.hub.bytes_on_disk(grounds.target)
        assert grounds.worktrees.fill(5, grounds.target, disk_cap_bytes=size - 1) == 0
        fill(grounds, 1)
        one = grounds.worktrees.list()[0].bytes
        assert grounds.worktrees.fill(5, grounds.target, disk_cap_bytes=3 * one + 1) == 2

    def test_freshening_moves_what_waits(self, grounds: Grounds, tmp_path: Path):
        fill(grounds, 2)
        later = change(grounds.hub, grounds.target, {"a": "1\n"}, tmp_path)
        assert grounds.worktrees.freshen(later) == 2
        assert grounds.worktrees.freshen(later) == 0
        agent = grounds.agent("7", later)
        assert (agent.path / "a").exists()
        assert agent.git("status", "--porcelain") == ""

    def test_preparing_leaves_its_outputs_and_nothing_else(self, grounds: Grounds):
        def prepare(tree: Path) -> None:
            assert Person(tree).head == grounds.target
            (tree / "build").mkdir()
            (tree / "build/dependency").write_text("1")
            (tree / "README.md").write_text("overwritten by setup")
            shutil.rmtree(tree / ".git")
            (tree / ".git").symlink_to(grounds.person.git_dir)

        before = photograph(grounds.person.path)
        grounds.worktrees.fill(1, grounds.target, disk_cap_bytes=PLENTY, prepare=prepare)
        agent = grounds.agent("7")
        assert (agent.path / "build/dependency").exists()
        assert agent.git("status", "--porcelain") == ""
        assert photograph(grounds.person.path) == before

    def test_a_setup_that_fails_leaves_no_tree_in_the_pool(self, grounds: Grounds):
        def prepare(tree: Path) -> None:
            raise RuntimeError("setup failed")

        with pytest.raises(RuntimeError, match="setup failed"):
            grounds.worktrees.fill(1, grounds.target, disk_cap_bytes=PLENTY, prepare=prepare)
        assert grounds.worktrees.list() == ()

    def test_taking_filling_and_freshening_at_once_never_share_a_tree(self, grounds: Grounds, tmp_path: Path):
        later = change(grounds.hub, grounds.target, {"a": "1\n", "src/app.py": "changed\n"}, tmp_path)
        taken = threading.Event()

        def supply() -> None:
            while not taken.is_set():
                fill(grounds, 3)
                grounds.worktrees.freshen(later)

        with ThreadPoolExecutor(5) as threads:
            supplying = threads.submit(supply)
            commits = [later if number % 2 else grounds.target for number in range(16)]
            try:
                agents = list(threads.map(lambda pair: grounds.agent(str(pair[0]), pair[1]), enumerate(commits)))
            finally:
                taken.set()
            supplying.result()
        assert len({agent.path for agent in agents}) == 16
        for agent, commit in zip(agents, commits, strict=True):
            assert agent.head == commit
            assert agent.git("status", "--porcelain") == ""
            assert sorted(agent.files()) == sorted(grounds.names_in(commit))

    def test_a_crash_before_a_tree_enters_the_pool_leaves_nothing_to_mistake(self, grounds: Grounds):
        assert dies_at(Point.GIT_POOL_BEFORE_PUBLISH, lambda: fill(grounds, 1))
        survivors = grounds.open()
        assert survivors.list() == ()
        assert len(survivors.sweep()) == 1
        assert list((grounds.side / "pool").iterdir()) == []
        assert survivors.fill(1, grounds.target, disk_cap_bytes=PLENTY) == 1


class TestReplanting:
    def test_the_old_tree_goes_whole_to_the_trash(self, grounds: Grounds, tmp_path: Path):
        agent = grounds.agent()
        agent.write("debug.log", "ignored\n")
        agent.write("uncommitted", "1\n")
        Person.with_repository(agent.path / "nested").write("inner", "1\n")
        old = photograph(agent.path)
        marked = grounds.hub.tree_of(change(grounds.hub, grounds.target, {"README.md": "<<<<<<<\n"}, tmp_path))
        path = grounds.worktrees.replant("1", grounds.target, marked, "legion/1", attempt=2)
        (thrown,) = grounds.trash.iterdir()
        assert {name.replace(str(thrown), str(path)): seen for name, seen in photograph(thrown).items()} == old

    def test_the_new_tree_has_the_base_and_the_files(self, grounds: Grounds, tmp_path: Path):
        grounds.agent()
        base = change(grounds.hub, grounds.target, {"landed": "1\n", "run.sh": None}, tmp_path)
        marked = grounds.hub.tree_of(
            change(grounds.hub, base, {"README.md": "<<<<<<<\n", "src/lib.py": None}, tmp_path)
        )
        agent = Person(grounds.worktrees.replant("1", base, marked, "legion/1", attempt=2))
        assert agent.head == base
        assert agent.git("diff", "--cached", "--name-only") == ""
        assert agent.git("diff", "--name-status").split() == ["M", "README.md", "D", "src/lib.py"]
        assert grounds.save("1", parent=base).tree == marked

    def test_repeating_an_attempt_gives_back_its_tree(self, grounds: Grounds):
        grounds.agent()
        tree = grounds.hub.tree_of(grounds.target)
        path = grounds.worktrees.replant("1", grounds.target, tree, "legion/1", attempt=2)
        (path / "work").write_text("1")
        grounds.worktrees.replant("1", grounds.target, tree, "legion/1", attempt=2)
        assert (path / "work").exists()
        grounds.worktrees.replant("1", grounds.target, tree, "legion/1", attempt=3)
        assert not (path / "work").exists()

    @pytest.mark.parametrize("point", [Point.GIT_REPLANT_AFTER_TRASH])
    def test_a_crash_between_old_and_new_loses_neither(self, grounds: Grounds, tmp_path: Path, point: Point):
        grounds.agent().write("work", "of the first attempt\n")
        tree = grounds.hub.tree_of(change(grounds.hub, grounds.target, {"a": "1\n"}, tmp_path))

        def replant() -> Path:
            return grounds.open().replant("1", grounds.target, tree, "legion/1", attempt=2)

        assert dies_at(point, replant)
        grounds.open().sweep()
        path = replant()
        assert (path / "a").exists()
        assert list(grounds.trash.glob("*/work"))
        assert grounds.save().tree == tree


class TestDiscarding:
    def test_a_tree_with_ignored_files_is_kept_whole_in_the_trash(self, grounds: Grounds):
        agent = grounds.agent()
        agent.write("debug.log", "ignored\n")
        grounds.worktrees.discard("1")
        grounds.worktrees.discard("1")
        assert not agent.path.exists()
        (thrown,) = grounds.trash.iterdir()
        assert (thrown / "debug.log").read_text() == "ignored\n"
        assert (thrown / ".git").is_dir()

    def test_the_trash_is_emptied_by_age(self, grounds: Grounds):
        grounds.agent()
        grounds.worktrees.discard("1")
        assert grounds.worktrees.empty_trash(older_than=3600, keep_bytes=PLENTY, now=0) == ()
        assert len(grounds.worktrees.empty_trash(older_than=3600, keep_bytes=PLENTY, now=4e9)) == 1

    def test_the_oldest_trash_goes_where_all_of_it_takes_too_much_room(self, grounds: Grounds):
        thrown = []
        for name in ("1", "2", "3"):
            grounds.agent(name).write("big", "x" * 100_000)
            grounds.worktrees.discard(name)
            assert grounds.worktrees.empty_trash(older_than=1e9, keep_bytes=PLENTY, now=0) == ()
            thrown = sorted(grounds.trash.iterdir())
        (grounds.trash / "a note of the person's").write_text("stays")
        room = 2 * trees.size(thrown[0])
        assert grounds.worktrees.empty_trash(older_than=1e9, keep_bytes=room, now=0) == (thrown[0],)
        assert sorted(grounds.trash.iterdir()) == [*thrown[1:], grounds.trash / "a note of the person's"]
        assert grounds.worktrees.empty_trash(older_than=1e9, keep_bytes=room, now=0) == ()

    def test_a_crash_while_discarding_is_mended_by_repeating(self, grounds: Grounds):
        grounds.agent()
        assert dies_at(Point.GIT_DISCARD_AFTER_TRASH, lambda: grounds.worktrees.discard("1"))
        grounds.worktrees.discard("1")
        assert grounds.worktrees.list() == ()
        assert not grounds.worktrees.index("1").exists()


def test_worktrees_are_listed_and_orphans_found(grounds: Grounds):
    grounds.agent("7")
    grounds.agent("8")
    fill(grounds, 1)
    facts = grounds.worktrees.list()
    assert [(tree.name, tree.in_pool) for tree in facts[:2]] == [("7", False), ("8", False)]
    assert facts[2].in_pool
    assert all(tree.bytes > 0 for tree in facts)
    assert grounds.worktrees.orphans({"7"}) == ("8",)


def test_git_reads_no_file_of_a_warm_tree_again(grounds: Grounds):
    """It does where index and file are of the same second, and then stores every file in the worktree once more."""
    fill(grounds, 1)
    (index,) = (grounds.side / "pool").glob("*.index")
    before = time.time() - 10
    os.utime(index, (before, before))
    tree = grounds.worktrees.acquire("ticket-1", grounds.target, "legion/1")
    for copy in (tree / ".git/index", grounds.worktrees.index("ticket-1")):
        assert copy.stat().st_mtime > before + 5


def test_an_index_as_young_as_its_files_stays_so(grounds: Grounds):
    """Else a change in the same second would not be seen."""
    fill(grounds, 1)
    (index,) = (grounds.side / "pool").glob("*.index")
    later = time.time() + 10
    os.utime(index, (later, later))
    tree = grounds.worktrees.acquire("ticket-1", grounds.target, "legion/1")
    assert (tree / ".git/index").stat().st_mtime == pytest.approx(later, abs=0.01)


def test_an_object_that_is_gone_is_named_in_one_sentence(grounds: Grounds):
    commit = change(grounds.hub, grounds.target, {"big.txt": "a text of its own\n"}, grounds.folder)
    (file,) = [file for file in grounds.hub.changed_files(grounds.target, commit) if file.path == "big.txt"]
    id = file.content.split(" ")[-1]
    (grounds.hub.objects / id[:2] / id[2:]).unlink()
    with pytest.raises(ObjectsUnreadable, match="`git fsck` in your repository"):
        grounds.worktrees.acquire("9", commit, "legion/9")
