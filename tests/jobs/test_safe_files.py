"""One file inside a folder that a stranger filled: nothing leads out of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from legion.drivers import registry
from legion.jobs.agent import model_run
from legion.system import safe_files


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root").mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("secret")
    return tmp_path / "root"


def test_what_is_written_is_read_and_only_its_owner_can(root: Path):
    safe_files.write(root, "a/b/c", b"one")
    safe_files.write(root, "a/b/c", b"two")
    assert safe_files.read(root, "a/b/c") == b"two"
    assert (root / "a/b/c").stat().st_mode & 0o777 == 0o600
    assert [place.name for place in (root / "a/b").iterdir()] == ["c"]


def test_a_link_to_a_folder_leads_nowhere(root: Path):
    (root / "a").symlink_to(root.parent / "outside")
    with pytest.raises(OSError, match="a"):
        safe_files.write(root, "a/secret", b"mine")
    assert safe_files.read(root, "a/secret") is None
    assert (root.parent / "outside" / "secret").read_text() == "secret"


def test_a_link_in_the_place_of_the_file_is_replaced_and_not_followed(root: Path):
    (root / "a").symlink_to(root.parent / "outside" / "secret")
    assert safe_files.read(root, "a") is None
    safe_files.write(root, "a", b"mine")
    assert safe_files.read(root, "a") == b"mine"
    assert (root.parent / "outside" / "secret").read_text() == "secret"


def test_a_link_is_told_by_its_words_where_it_stays_inside(root: Path):
    # The last comes back in, but only the folder's own name tells that.
    around = f"../../{root.name}/a"
    links = {"a": "b/c", "b/up": "../a", "out": "../outside/secret", "far": "/etc/passwd", "b/more": around}
    (root / "b").mkdir()
    for name, to in links.items():
        (root / name).symlink_to(to)
    told = {name: safe_files.behind(root, name) for name in (*links, "nothing", "a/thing")}
    assert told == {name: name for name in told} | {"a": "b/c", "b/up": "a"}
    (root / "CLAUDE.md").symlink_to("AGENTS.md")
    assert model_run.instruction_files(root, registry.default()) == ("AGENTS.md", ".claude/CLAUDE.md")


def test_what_is_no_plain_file_is_not_read(root: Path):
    os.mkfifo(root / "pipe")
    (root / "folder").mkdir()
    assert [safe_files.read(root, name) for name in ("pipe", "folder", "nothing", "no/thing")] == [None] * 4


def test_of_a_file_of_any_size_only_so_many_bytes_are_read(root: Path):
    # No memory holds all of it, and it takes no room on the disk.
    (root / "CLAUDE.md").write_text("Use tabs.\n")
    os.truncate(root / "CLAUDE.md", 1 << 42)
    assert safe_files.read(root, "CLAUDE.md", most=10) == b"Use tabs.\n"
    assert "Use tabs." in model_run.with_instructions(registry.default(), "", root)


def test_a_folder_in_the_way_is_an_error_and_leaves_no_half_file(root: Path):
    (root / "a" / "b").mkdir(parents=True)
    with pytest.raises(OSError, match="a"):
        safe_files.write(root, "a", b"mine")
    assert [place.name for place in root.iterdir()] == ["a"]
