"""The example of the page about conversations, on the files of the tests."""

from __future__ import annotations

import re
import shlex
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from legion.cli.run import run
from tests.api.serving import Served, serving
from tests.conversations.home import Home
from tests.support.codebase import ROOT

PAGE = (ROOT / "docs/conversations.md").read_text()


@pytest.fixture
def served() -> Iterator[Served]:
    with tempfile.TemporaryDirectory(prefix="legion-") as folder, serving(Path(folder)) as running:
        yield running


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_the_commands_of_the_page_run(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("HOME", str(Home(tmp_path / "home").fill().root))
    monkeypatch.setenv("LEGION_DATA_DIR", str(served.socket.parent))
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.delenv("LEGION_URL", raising=False)
    monkeypatch.chdir(tmp_path)
    printed = {}
    for line in blocks("sh")[0].splitlines():
        program, *words = shlex.split(line)
        assert (program, run(words)) == ("legion", 0), line
        printed[line] = capsys.readouterr().out
    (example,) = blocks("text")
    shown = "\n".join(printed["legion conversations search zebra"].splitlines()[:2]) + "\n"
    when = re.compile(r"(\d{4}-\d\d-\d\d )?\d\d:\d\d(:\d\d)?")
    assert when.sub("", shown) == when.sub("", example), "but for the time, which is without its date today"
    assert "zebra" in printed["""legion conversations search '"file says" zeb*'"""]
    assert (tmp_path / "talk.html").read_text().startswith("<!doctype html>")
