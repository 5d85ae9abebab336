"""A process learns that its folder was deleted or replaced, and only then."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from legion.system.loops import watch

PATIENCE = 30.0


def delete(folder: Path) -> None:
    shutil.rmtree(folder)


def move(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))


def replace(folder: Path) -> None:
    move(folder)
    folder.mkdir()
    (folder / "lock").write_text("another")


@pytest.mark.parametrize("deed", [delete, move, replace])
def test_a_folder_that_is_gone_or_another_is_noticed_once(tmp_path: Path, deed: Callable[[Path], None]):
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "lock").write_text("")
    gone, told = threading.Event(), list[int]()

    def notice() -> None:
        told.append(1)
        gone.set()

    watch(folder / "lock", notice, every=0.01)
    (folder / "lock").write_text("changed, but the same file")
    (folder / "other").write_text("")
    assert not gone.wait(0.2)
    deed(folder)
    assert gone.wait(PATIENCE)
    assert told == [1]


def test_a_folder_that_was_never_there_is_not_watched(tmp_path: Path):
    before = threading.active_count()
    watch(tmp_path / "none", lambda: None, every=0.01)
    assert threading.active_count() == before
