"""What a program read below a folder is known afterwards, whichever way it read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from legion.system import read_marks
from legion.system.read_marks import ReadFiles

FILES = ("top.txt", "lib/a.sh", "lib/b.sh", "deep/er/c.txt", "other/d.txt")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tree = tmp_path / "tree"
    for name in (*FILES, ".git/config"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(":\n")
        (tree / name).chmod(0o755)
    (tree / "link").symlink_to("other/d.txt")
    return tree


def read_by(folder: Path, *command: str) -> ReadFiles:
    marked = read_marks.mark(folder)
    assert marked is not None, "the tests' file system records reads"
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    read = read_marks.read_since(folder, marked)
    assert read is not None
    return read


@pytest.mark.parametrize(
    ("command", "files"),
    [
        ("true", set()),
        ("cat lib/a.sh", {"lib/a.sh"}),
        (". lib/a.sh", {"lib/a.sh"}),
        ("sh lib/a.sh; lib/b.sh", {"lib/a.sh", "lib/b.sh"}),
        ("cat < link", {"link", "other/d.txt"}),
        ("ln lib/a.sh hard", {"lib/a.sh"}),
        ("ln lib/a.sh hard; cp hard copy; rm hard", {"lib/a.sh"}),
        ("cp lib/a.sh copy; touch -a -d @86413 lib/a.sh", {"lib/a.sh"}),
        ("mv deep/er/c.txt gone", {"deep/er/c.txt"}),
        ("mv deep moved", {"deep/er/c.txt"}),
        ("cp lib/a.sh copy; cp lib/b.sh copy", {"lib/a.sh", "lib/b.sh"}),
        ("cp -r lib copy", {"lib/a.sh", "lib/b.sh"}),
        ("git hash-object --stdin-paths < /dev/null; test -e other/d.txt; ls > /dev/null", set()),
    ],
)
def test_files_are_found(folder: Path, command: str, files: set[str]):
    assert read_by(folder, "sh", "-c", command).files == files


def test_a_file_that_is_only_mapped_counts(folder: Path):
    script = "import mmap, os; f = os.open('top.txt', os.O_RDONLY); mmap.mmap(f, 0, prot=mmap.PROT_READ)[0]"
    assert read_by(folder, sys.executable, "-I", "-c", script).files == {"top.txt"}


@pytest.mark.parametrize(
    ("path", "new_or_gone", "included"),
    [
        ("lib/a.sh", False, True),
        ("lib/b.sh", False, False),
        ("lib/new.sh", True, True),
        ("lib/b.sh", True, True),
        ("deep/er/c.txt", False, False),
        ("deep/er/new.txt", True, False),
        ("deep/new/new.txt", True, False),
        ("deep/er/a.sh", True, True),
        ("deep/er/new.toml", True, True),
        ("deep/er/flag", True, True),
        ("deep/er/.flags", True, True),
        ("other/new.txt", True, True),
        ("other/new/new.txt", True, True),
        ("new.txt", True, True),
        ("new/new.txt", True, True),
        ("top.txt", False, False),
    ],
)
def test_a_new_name_counts_where_it_would_have_been_seen(folder: Path, path: str, new_or_gone: bool, included: bool):
    found = read_by(folder, "sh", "-c", "cat lib/a.sh; ls other")
    assert found.include(path, is_new_or_gone=new_or_gone) is included


def test_what_is_read_through_git_may_be_anything(tmp_path: Path):
    tree = tmp_path / "tree"
    tree.mkdir()
    for words in (("init", "-q"), ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x", "--allow-empty")):
        subprocess.run(("git", *words), cwd=tree, check=True)
    (tree / ".git/objects/info").mkdir(exist_ok=True)
    (tree / ".git/objects/info/alternates").write_text("")
    marked = read_marks.mark(tree)
    assert marked is not None
    assert read_marks.read_since(tree, marked) is not None
    subprocess.run(("git", "archive", "HEAD"), cwd=tree, check=True, capture_output=True)
    assert read_marks.read_since(tree, marked) is None
