"""Files below a folder that others can write: nothing outside it is ever opened."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from legion.system import safe_files
from tests.support.attacks import Attacker, Door, attack

SECRET = b"what only the person may read"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with one file in it, and a secret beside it."""
    (tmp_path / "secret").write_bytes(SECRET)
    made = tmp_path / "root"
    (made / "below").mkdir(parents=True)
    (made / "below" / "file").write_bytes(b"content")
    (made / "link").symlink_to(tmp_path / "secret")
    (made / "relative").symlink_to("../secret")
    (made / "folder").symlink_to(tmp_path)
    (made / "back").symlink_to("below")
    os.mkfifo(made / "pipe")
    return made


def test_a_file_below_is_read(root: Path):
    assert safe_files.read(root, "below/file") == b"content"
    assert safe_files.read(root, "below/file", most=3) == b"con"


OUTSIDE = [
    *(
        "../secret",
        "below/../../secret",
        "{absolute}",
        "/{absolute}",
        "link",
        "relative",
        "folder/secret",
        "back/file",
        "pipe",
    ),
    *("below", "", ".", "..", "/", "below/..", "missing", "below/file/x", "below/file\0", "\0", "x" * 300),
    *("./below/../../secret", "below//../../secret"),
]
REPLACED = ("link", "relative", "pipe", "missing")
"""A write puts its file in the place of these; what they lead to stays."""


@attack(Attacker.AGENT, Door.PATHS)
@pytest.mark.parametrize("name", OUTSIDE, ids=lambda name: repr(name[:30]))
def test_nothing_outside_is_read(root: Path, tmp_path: Path, name: str):
    assert safe_files.read(root, name.format(absolute=tmp_path / "secret")) is None


@attack(Attacker.AGENT, Door.PATHS)
@pytest.mark.parametrize("name", [one for one in OUTSIDE if one not in REPLACED], ids=lambda name: repr(name[:30]))
def test_nothing_outside_is_written(root: Path, tmp_path: Path, name: str):
    with pytest.raises(OSError, match=r"\[Errno"):
        safe_files.write(root, name.format(absolute=tmp_path / "secret"), b"changed")
    assert (tmp_path / "secret").read_bytes() == SECRET
    assert sorted(path.name for path in tmp_path.iterdir()) == ["root", "secret"]


@attack(Attacker.AGENT, Door.PATHS)
def test_a_folder_that_is_swapped_for_a_link_under_the_reader_opens_nothing(root: Path, tmp_path: Path):
    (root / "swapped").mkdir()
    (root / "swapped" / "secret").write_bytes(b"own")
    ended = threading.Event()

    def swap() -> None:
        while not ended.is_set():
            (root / "swapped").rename(root / "aside")
            (root / "swapped").symlink_to(tmp_path)
            (root / "swapped").unlink()
            (root / "aside").rename(root / "swapped")

    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        assert {safe_files.read(root, "swapped/secret") for _ in range(3000)} <= {b"own", None}
    finally:
        ended.set()
        swapping.join()
