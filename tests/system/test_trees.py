"""Folders of any shape can be walked, measured and removed: too deep for a path, unreadable, or full of odd files."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from legion.system import files, trees
from legion.system.process import run
from tests.git.making import as_user


def nest(top: Path, levels: int, name: str = "deeper") -> None:
    """A chain of folders with a file of one block in the last one, made as a program can make it: step by step."""
    handle = os.open(top, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir(name, dir_fd=handle)
        below = os.open(name, os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = below
    file = os.open("last", os.O_WRONLY | os.O_CREAT, dir_fd=handle)
    os.write(file, b"x" * 4096)
    os.close(file)
    os.close(handle)


LEVELS = 1200
"""More than functions can call each other, and much longer than a path may be."""


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


@pytest.fixture
def deep(tmp_path: Path) -> Iterator[Path]:
    top = tmp_path / "deep"
    top.mkdir()
    nest(top, LEVELS)
    yield top
    trees.remove(top)


def test_a_tree_that_is_deeper_than_a_path_is_walked_measured_and_removed(deep: Path):
    before = open_files()
    found = [one.path for one in trees.walk(deep)]
    assert len(found) == LEVELS + 1
    assert found[-1] == "/".join(["deeper"] * LEVELS + ["last"])
    assert trees.size(deep) >= trees.size(deep / "deeper" / "deeper") + 2 * deep.stat().st_blocks * 512 > 0
    trees.remove(deep)
    assert not deep.exists()
    assert open_files() == before


def test_a_walk_that_is_left_early_closes_what_it_opened(deep: Path):
    before = open_files()
    walk = trees.walk(deep)
    for _ in range(1100):
        next(walk)
    assert open_files() > before
    walk.close()
    assert open_files() == before


def test_a_chain_without_end_is_read_to_a_limit(deep: Path):
    unopened: list[str] = []
    found = trees.walk(deep, unopened=lambda path, _: unopened.append(path), deepest=5000)
    assert 700 < sum(1 for _ in found) < 800
    assert len(unopened) == 1


def test_a_removed_tree_takes_nothing_along_that_its_links_lead_to(tmp_path: Path):
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("1")
    top = tmp_path / "top"
    (top / "a" / "b").mkdir(parents=True)
    (top / "a" / "link").symlink_to(kept)
    (top / "a" / "b" / "up").symlink_to("..")
    os.mkfifo(top / "a" / "pipe")
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(top / "socket"))
    assert [found.path for found in trees.walk(top) if found.path.startswith("a/link/")] == []
    trees.remove(top)
    assert not top.exists()
    assert (kept / "file").read_text() == "1"
    link = tmp_path / "link"
    link.symlink_to(kept)
    trees.remove(link)
    assert (kept / "file").exists()
    trees.remove(tmp_path / "missing")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("remove", [trees.remove, lambda path: trees.remove_all([path])], ids=["remove", "remove_all"])
@pytest.mark.parametrize("mode", [0o000, 0o500, 0o600])
def test_read_only_and_locked_folders_are_removed_too(mode: int, remove: Callable[[Path], None]):
    nobody = 65534
    with tempfile.TemporaryDirectory() as folder:
        top, trash = Path(folder, "top"), Path(folder, "trash")
        (top / "a" / "b" / "c").mkdir(parents=True)
        (top / "a" / "b" / "c" / "file").write_text("1")
        run(("chown", "-R", str(nobody), folder))
        for below in ("a/b/c", "a/b", "a", "."):
            (top / below).chmod(mode)

        def throw_away() -> str:
            size = trees.size(top)
            remove(files.move_to_trash(top, trash))
            return f"{size >= 0} {list(trash.iterdir())}"

        assert as_user(nobody, throw_away) == "True []"


@pytest.mark.parametrize("path", ["there", "empty"])
def test_many_trees_are_measured_and_removed_as_one_is(
    tmp_path: Path, deep: Path, path: str, monkeypatch: pytest.MonkeyPatch
):
    """Also where the programs for it are missing."""
    if path == "empty":
        monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    odd = [tmp_path / f"{number}\n1\t{number}" for number in range(3)]
    many = [deep, tmp_path / "missing", *(tmp_path / f"{number}" for number in range(201)), *odd]
    for place in many[2:]:
        place.mkdir()
        (place / "file").write_text("1" * 5000)
    assert trees.sizes(many) == [trees.size(place) for place in many]
    trees.remove_all(many)
    assert not any(place.exists() for place in many)


def test_the_trash_empties_whatever_lies_in_it(tmp_path: Path, deep: Path):
    trash = tmp_path / "trash"
    thrown = files.move_to_trash(deep, trash)
    assert files.empty_trash(trash, older_than=-1, keep_bytes=0, now=1e12, sizes={}) == [thrown]
    assert list(trash.iterdir()) == []
