"""The git that stays alive answers as a fresh one would, whatever happens to it or to the repository."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from legion.git.core.errors import GitError
from legion.git.core.history import History
from legion.git.core.object_reader import reader
from legion.git.hub.repository import Hub
from tests.git.making import Grounds, Person, change


def process_of(hub: Hub) -> int:
    process = reader(hub.path)._process
    assert process is not None
    return process.pid


def test_it_sees_what_others_write_and_pack(grounds: Grounds, tmp_path: Path):
    hub = grounds.hub
    assert hub.resolve(grounds.target) == grounds.target
    commit = change(hub, grounds.target, {"a": "1\n"}, tmp_path)
    hub.keep("wip/1", commit)
    pid = process_of(hub)
    for _ in range(2):
        assert hub.resolve("refs/legion/wip/1") == commit
        assert hub.read_file(commit, "a") == b"1\n"
        assert hub.read_file(grounds.target, "src/app.py") == History(hub.path).read_file(grounds.target, "src/app.py")
        hub.tidy()
    later = change(hub, commit, {"a": "2\n"}, tmp_path)
    hub.keep("wip/1", later)
    assert hub.resolve("refs/legion/wip/1") == later
    blob = hub.entries(hub.tree_of(later))[b"a"].id
    assert (hub.size_of(blob), hub.size_of("0" * 40)) == (2, 0)
    assert process_of(hub) == pid


def test_a_file_named_as_the_end_of_options_is_read_for_no_other(grounds: Grounds, tmp_path: Path):
    commit = change(grounds.hub, grounds.target, {"--": "of another file\n", "a": "1\n"}, tmp_path)
    for one in (grounds.hub, History(grounds.hub.path)):
        assert one.read_file(commit, "legion.toml") is None
        assert (one.read_file(commit, "--"), one.read_file(commit, "a")) == (b"of another file\n", b"1\n")
        assert (one.holds(commit, "a"), one.holds(commit, "b")) == (True, False)
        assert one.files_in(commit, "src") == one.files_in(grounds.target, "src")


def test_a_reader_that_was_killed_is_started_again(grounds: Grounds):
    tree = grounds.hub.tree_of(grounds.target)
    killed = process_of(grounds.hub)
    os.kill(killed, 9)
    assert grounds.hub.tree_of(grounds.target) == tree
    assert process_of(grounds.hub) != killed


def test_many_threads_get_their_own_answers(grounds: Grounds, tmp_path: Path):
    commits = [change(grounds.hub, grounds.target, {"a": f"{number}\n" * 5000}, tmp_path) for number in range(6)]

    def read(number: int) -> bool:
        return grounds.hub.read_file(commits[number % 6], "a") == f"{number % 6}\n".encode() * 5000

    with ThreadPoolExecutor(6) as threads:
        assert all(threads.map(read, range(120)))


def test_a_forked_child_talks_to_a_reader_of_its_own(grounds: Grounds):
    tree = grounds.hub.tree_of(grounds.target)
    child = os.fork()
    if child == 0:
        same = all(grounds.hub.tree_of(grounds.target) == tree for _ in range(50))
        reader(grounds.hub.path).close()
        os._exit(0 if same else 1)
    assert all(grounds.hub.tree_of(grounds.target) == tree for _ in range(50))
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("name", ["no-such-ref", "0" * 40, "a b", "HEAD\ninfo HEAD", "--all", "", "ümlaut", "a..b"])
def test_a_name_of_nothing_is_nothing(grounds: Grounds, name: str):
    assert grounds.hub.resolve(name) is None
    assert grounds.hub.resolve(grounds.target) == grounds.target


def test_what_is_not_there_is_an_error(grounds: Grounds):
    with pytest.raises(GitError):
        grounds.hub.tree_of("0" * 40)
    with pytest.raises(GitError):
        grounds.hub.content("1" * 40)
    assert grounds.hub.read_file(grounds.target, "src") is None
    assert grounds.hub.read_file(grounds.target, "src/app.py/x") is None
    assert grounds.hub.read_file(grounds.target, "../README.md") is None
    assert grounds.hub.read_file(grounds.target, "./README.md") == b"# A project\n"


def test_another_repository_at_the_same_place_is_read_afresh(grounds: Grounds, person: Person):
    place = grounds.folder / "again.git"
    first = Hub.create(person.git_dir, place)
    before = first.fetch_person(person.git_dir, "main")
    assert first.tree_of(before)
    place.rename(grounds.folder / "aside.git")
    commit = person.commit({"new": "1\n"})
    second = Hub.create(person.git_dir, place)
    assert second.fetch_person(person.git_dir, "main") == commit
    assert second.read_file(commit, "new") == b"1\n"


def test_differences_are_those_that_git_lists(grounds: Grounds, tmp_path: Path):
    one = change(grounds.hub, grounds.target, {"deep/er/a": "1\n", "deep/b": "1\n", "file": "1\n"}, tmp_path)
    other = change(grounds.hub, one, {"deep/er/a": "2\n", "file": None, "file/now-a-folder": "1\n"}, tmp_path)
    for before, after in ((grounds.target, one), (one, other), (other, one), (one, one)):
        listed = grounds.hub._git("diff-tree", "-r", "--raw", "--no-renames", "--no-abbrev", before, after).text
        trees = grounds.hub.tree_of(before), grounds.hub.tree_of(after)
        mine = set()
        for path, old, new in grounds.hub.differences(*trees):
            sides = [(entry.mode.decode(), entry.id) if entry else ("000000", "0" * 40) for entry in (old, new)]
            mine.add((*(mode for mode, _ in sides), *(id for _, id in sides), path.decode()))
        theirs = {
            (*facts.lstrip(":").split(" ")[:4], path)
            for facts, path in (line.split("\t") for line in listed.splitlines())
        }
        assert mine == theirs


def test_ancestors_near_and_far_are_found(grounds: Grounds, tmp_path: Path):
    hub = grounds.hub
    commits = [grounds.target]
    stamp = b"x <x@example.org> 1 +0000"
    for number in range(90):
        text = f"tree {hub.tree_of(grounds.target)}\nparent {commits[-1]}\n".encode()
        text += b"author %s\ncommitter %s\n\n%d\n" % (stamp, stamp, number)
        commits.append(hub._git("hash-object", "-t", "commit", "-w", "--stdin", stdin=text).text.strip())
    aside = change(hub, commits[5], {"a": "1\n"}, tmp_path)
    for _ in range(2):
        assert hub.is_ancestor(grounds.target, commits[3])
        assert hub.is_ancestor(grounds.target, commits[90])
        assert hub.is_ancestor(commits[60], commits[90])
        assert hub.is_ancestor(commits[7], commits[7])
        assert hub.is_ancestor(commits[5], aside)
        assert not hub.is_ancestor(aside, commits[90])
        assert not hub.is_ancestor(commits[90], commits[3])
