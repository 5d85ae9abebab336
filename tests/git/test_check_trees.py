"""A check tree is exactly its commit, whatever the last check did in it."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from legion.git.trees.check_trees import CheckTrees
from legion.system.crash import Point
from tests.git.making import Grounds, Person, change, dies_at
from tests.support.attacks import Attacker, Door, attack


@pytest.fixture
def checks(grounds: Grounds) -> CheckTrees:
    return CheckTrees(grounds.hub, grounds.folder / "checks", grounds.side)


def everything_in(tree: Path) -> list[str]:
    """Every file, and every .git but the tree's own."""
    found = [path for path in tree.rglob("*") if tree / ".git" not in (path, *path.parents)]
    return sorted(str(path.relative_to(tree)) for path in found if path.name == ".git" or not path.is_dir())


def untracked(tree: Path) -> tuple[str, ...]:
    """The paths besides tracked files; a whole folder counts as one."""
    return tuple(
        Person(tree).git("ls-files", "--others", "--directory").replace("/\n", "\n").removesuffix("/").split("\n")
    )


def test_a_new_tree_is_the_commit(grounds: Grounds, checks: CheckTrees):
    tree = checks.prepare("0", grounds.target)
    assert everything_in(tree) == grounds.names_in(grounds.target)
    assert Person(tree).git("status", "--porcelain", "--ignored") == ""
    assert Person(tree).head == grounds.target


def test_a_warm_tree_moves_to_another_commit_in_place(grounds: Grounds, checks: CheckTrees, tmp_path: Path):
    first = checks.prepare("0", grounds.target)
    inode = first.stat().st_ino
    later = change(grounds.hub, grounds.target, {"run.sh": None, "deep/er/new": "1\n", "README.md": "2\n"}, tmp_path)
    tree = checks.prepare("0", later)
    assert everything_in(tree) == grounds.names_in(later)
    assert (tree / "README.md").read_text() == "2\n"
    assert (tree, tree.stat().st_ino) == (first, inode)
    assert Person(tree).head == later


@attack(Attacker.AGENT, Door.CHECKS)
@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", ["src/.gitattributes", "nested/.git/HEAD"])
def test_a_pipe_that_a_check_left_stops_no_other(grounds: Grounds, checks: CheckTrees, name: str):
    tree = checks.prepare("0", grounds.target)
    (tree / name).parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(tree / name)
    (tree / "src/app.py").write_text("changed\n")
    assert everything_in(checks.prepare("0", grounds.target)) == grounds.names_in(grounds.target)


def hide(tree: Path) -> None:
    Person(tree).git("update-index", "--skip-worktree", "README.md")
    (tree / "README.md").write_text("evil\n")


def disguise(tree: Path) -> None:
    """The same size and the same times as before."""
    file = tree / "README.md"
    facts = file.stat()
    file.write_text("# B project\n")
    os.utime(file, ns=(facts.st_atime_ns, facts.st_mtime_ns))


def nest(tree: Path) -> None:
    Person.with_repository(tree / "nested").commit({"inner": "1\n"})
    Person.with_repository(tree / "empty-nested")
    Person.with_repository(tree / "src")


def leave_ignored(tree: Path) -> None:
    (tree / "build").mkdir()
    (tree / "build/conftest.py").write_text("evil\n")
    (tree / "src/stale.log").write_text("evil\n")


def break_git(tree: Path) -> None:
    shutil.rmtree(tree / ".git")
    (tree / ".git").symlink_to("/etc")


def plant_hooks(tree: Path) -> None:
    (tree / ".git/hooks/post-checkout").write_text("#!/bin/sh\nexit 1\n")
    (tree / ".git/config").write_text("[core]\n\tworktree = /\n")


def swap_folder_and_file(tree: Path) -> None:
    shutil.rmtree(tree / "src")
    (tree / "src").write_text("a file\n")
    (tree / "run.sh").unlink()
    (tree / "run.sh").mkdir()
    (tree / "run.sh/inner").write_text("1\n")


def make_executable(tree: Path) -> None:
    (tree / "README.md").chmod(0o777)


def delete_all(tree: Path) -> None:
    for entry in tree.iterdir():
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


def convert(tree: Path) -> None:
    """The same for git, by rules that the check itself brings."""
    (tree / ".gitattributes").write_text("*.md text eol=crlf\n")
    (tree / "README.md").write_bytes(b"# A project\r\n")


def odd_names(tree: Path) -> None:
    for name in ("line\nbreak", "-f", "*", os.fsdecode(b"caf\xe9")):
        (tree / name).write_text("1\n")
    os.mkfifo(tree / "pipe")


@pytest.mark.parametrize(
    "deed",
    [hide, disguise, nest, leave_ignored, break_git, plant_hooks, swap_folder_and_file, make_executable, delete_all,
     convert, odd_names],
)  # fmt: skip
def test_nothing_that_a_check_did_is_there_for_the_next(
    grounds: Grounds, checks: CheckTrees, deed: Callable[[Path], None]
):
    deed(checks.prepare("0", grounds.target))
    tree = checks.prepare("0", grounds.target)
    assert everything_in(tree) == grounds.names_in(grounds.target)
    assert (tree / "README.md").read_bytes() == b"# A project\n"
    assert (tree / "README.md").stat().st_mode & 0o111 == 0
    assert not list((tree / ".git/hooks").iterdir())
    assert Person(tree).git("status", "--porcelain", "--ignored") == ""


def test_files_have_the_form_that_the_rules_of_their_commit_give(grounds: Grounds, checks: CheckTrees, tmp_path: Path):
    checks.prepare("0", grounds.target)
    later = change(grounds.hub, grounds.target, {".gitattributes": "*.sh text eol=crlf\n"}, tmp_path)
    assert (checks.prepare("0", later) / "run.sh").read_bytes() == b"#!/bin/sh\r\n"
    assert (checks.prepare("0", grounds.target) / "run.sh").read_bytes() == b"#!/bin/sh\n"


def test_a_folder_that_became_a_link_leads_no_write_outside(grounds: Grounds, checks: CheckTrees, tmp_path: Path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "app.py").write_text("not yours\n")
    (outside / "other").write_text("not yours\n")
    tree = checks.prepare("0", grounds.target)
    shutil.rmtree(tree / "src")
    (tree / "src").symlink_to(outside)
    later = change(grounds.hub, grounds.target, {"src/lib.py": None, "src/app.py": "2\n"}, tmp_path)
    tree = checks.prepare("0", later)
    assert not (tree / "src").is_symlink()
    assert (tree / "src/app.py").read_text() == "2\n"
    assert {file.name: file.read_text() for file in outside.iterdir()} == {
        "app.py": "not yours\n",
        "other": "not yours\n",
    }


def test_what_lies_in_the_folder_of_a_submodule_goes_too(person: Person, tmp_path: Path):
    person.git("update-index", "--add", "--cacheinfo", f"160000,{person.head},lib")
    person.git("commit", "-q", "-m", "submodule")
    grounds = Grounds(tmp_path / "legion", person)
    checks = CheckTrees(grounds.hub, grounds.folder / "checks", grounds.side)
    tree = checks.prepare("0", grounds.target)
    Person.with_repository(tree / "lib").write("evil.py", "1\n")
    tree = checks.prepare("0", grounds.target)
    assert list((tree / "lib").iterdir()) == []


def test_a_link_in_the_place_of_a_folder_of_submodules_leads_nowhere(person: Person, tmp_path: Path):
    person.git("update-index", "--add", "--cacheinfo", f"160000,{person.head},vendor/lib")
    person.git("commit", "-q", "-m", "submodule")
    grounds = Grounds(tmp_path / "legion", person)
    checks = CheckTrees(grounds.hub, grounds.folder / "checks", grounds.side)
    tree = checks.prepare("0", grounds.target)
    outside = Person.with_repository(tmp_path / "outside")
    outside.write("lib/file", "not yours\n")
    shutil.rmtree(tree / "vendor")
    (tree / "vendor").symlink_to(outside.path)
    tree = checks.prepare("0", grounds.target)
    assert (outside.path / "lib/file").exists()
    assert (outside.git_dir / "HEAD").exists()
    assert not (tree / "vendor").is_symlink()


def test_outputs_of_setup_are_told_and_kept(grounds: Grounds, checks: CheckTrees):
    tree = checks.prepare("0", grounds.target)
    for name in ("build/out", "node_modules/[x]/file", "src/native.log", "new.txt"):
        Person(tree).write(name, "1\n")
    keep = untracked(tree)
    assert keep == ("build", "new.txt", "node_modules", "src/native.log")
    Person(tree).write("build-2/out", "1\n")
    Person(tree).write("src/build/out", "1\n")
    tree = checks.prepare("0", grounds.target, keep)
    assert untracked(tree) == keep
    assert (tree / "node_modules/[x]/file").exists()


@pytest.mark.parametrize("name", ["*", "[b]uild", "a b", "#x", "!x", "tail "])
def test_a_name_to_keep_is_no_pattern(grounds: Grounds, checks: CheckTrees, name: str):
    tree = checks.prepare("0", grounds.target)
    Person(tree).write(f"{name}/out", "1\n")
    Person(tree).write("build/out", "1\n")
    tree = checks.prepare("0", grounds.target, (name,))
    assert (tree / name / "out").exists()
    assert not (tree / "build").exists()


@pytest.mark.parametrize("slot", ["", ".scrap", "../x", "a~b"])
def test_a_slot_with_an_unsafe_name_is_refused(grounds: Grounds, checks: CheckTrees, slot: str):
    with pytest.raises(ValueError, match="no name for a slot"):
        checks.prepare(slot, grounds.target)


def test_slots_are_prepared_at_the_same_time(grounds: Grounds, checks: CheckTrees):
    barrier = threading.Barrier(4)

    def prepare(slot: str) -> list[str]:
        barrier.wait(30)
        return everything_in(checks.prepare(slot, grounds.target))

    with ThreadPoolExecutor(4) as threads:
        trees = list(threads.map(prepare, "abcd"))
    assert trees == [grounds.names_in(grounds.target)] * 4


def test_a_tree_that_cannot_be_moved_is_made_anew(grounds: Grounds, checks: CheckTrees):
    tree = checks.prepare("0", grounds.target)
    Person(tree).write("build/of the old one", "1\n")
    index = next((grounds.side / "check-trees").glob("0~*.index"))
    index.write_bytes(b"broken")
    tree = checks.prepare("0", grounds.target, ("build",))
    assert everything_in(tree) == grounds.names_in(grounds.target)
    assert list((grounds.folder / "checks/.scrap").iterdir()) == []


@pytest.mark.parametrize("point", [Point.GIT_CHECK_TREE_AFTER_MOVE, Point.GIT_CHECK_TREE_BEFORE_READY])
@pytest.mark.parametrize("warm", [False, True])
def test_a_tree_whose_making_was_killed_is_not_used(
    grounds: Grounds, checks: CheckTrees, tmp_path: Path, point: Point, warm: bool
):
    if warm:
        checks.prepare("0", grounds.target)
    later = change(grounds.hub, grounds.target, {"a": "1\n"}, tmp_path)
    assert dies_at(point, lambda: checks.prepare("0", later))
    Person(grounds.folder / "checks/0").write("build/of the half-made one", "1\n")
    tree = checks.prepare("0", grounds.target, ("build",))
    assert everything_in(tree) == grounds.names_in(grounds.target)
    assert len(list((grounds.side / "check-trees").iterdir())) == 2
