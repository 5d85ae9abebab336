"""Pictures of every screen in three sizes. `python -m tests.tui.pictures` takes them again; read what changed."""

from __future__ import annotations

import asyncio
import difflib
import tempfile
from pathlib import Path

import pytest

from tests.api.serving import serving
from tests.tui.pictures import PICTURES, SIZES, TEXTS, fill, gallery, name_of, steady


# The longest of all tests: it draws every screen three times.
@pytest.mark.timeout(600)
def test_every_screen_looks_as_it_did(monkeypatch: pytest.MonkeyPatch):
    """In one test: whoever draws one has started the UI and drawn most of the others."""
    with tempfile.TemporaryDirectory(prefix="legion-") as folder, serving(Path(folder)) as served:
        monkeypatch.setenv("LEGION_CONFIG", f"{folder}/config.toml")
        fill(served.board)
        texts = asyncio.run(gallery(served.board))
    assert texts.keys() == {name_of(picture, size) for picture in PICTURES for size in SIZES}
    changed: list[str] = []
    for name, text in texts.items():
        known = (TEXTS / f"{name}.txt").read_text()
        if text != known:
            changed += difflib.unified_diff(known.splitlines(), text.splitlines(), name, "drawn now", lineterm="")
    assert not changed, "\n".join(changed)


def test_what_differs_from_run_to_run_is_not_compared():
    assert steady("at 12:34:56 for 1m 04s, 3f2a1c9d0\n") == "at 00:00:00 for 0s    , 0a1b2c3d4\n"
