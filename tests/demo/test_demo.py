"""`legion demo` does what it says: for real, as a person starts it."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.support.codebase import SOURCE

pytestmark = pytest.mark.timeout(300)
PATIENCE = 280
NO_BUBBLEWRAP = 'mount --bind /dev/null /usr/bin/bwrap && exec "$@"'


def environment(home: Path) -> dict[str, str]:
    """A person with a home of their own, who has never used Legion."""
    home.mkdir()
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LEGION_", "XDG_", "PYTHON"))}
    return {**kept, "HOME": str(home), "PYTHONPATH": str(SOURCE.parent), "TERM": "xterm", "LANG": "C.UTF-8"}


def demo(folder: Path, *words: str) -> list[str]:
    return [sys.executable, "-m", "legion", "demo", "--folder", str(folder), *words]


def living(folder: Path) -> list[psutil.Process]:
    """Whoever works in the folder, or was told about it, once those that are ending have had the time to."""
    mine = []
    for process in psutil.process_iter():
        try:
            words = [*process.cmdline(), process.cwd()]
        except psutil.Error:
            continue
        if process.pid != os.getpid() and any(str(folder) in word for word in words):
            mine.append(process)
    _, left = psutil.wait_procs(mine, timeout=20)
    return left


@pytest.mark.slow
def test_it_shows_every_trouble_and_how_each_ended(tmp_path):
    folder, home = tmp_path / "demo", tmp_path / "home"
    shown = subprocess.run(
        demo(folder, "--json"), env=environment(home), capture_output=True, text=True, timeout=PATIENCE
    )
    assert shown.returncode == 0, shown.stderr
    summary = json.loads(shown.stdout)
    assert summary["problems"] == []
    assert "no model is used" in shown.stderr
    tickets = {ticket["key"]: ticket for ticket in summary["tickets"]}
    assert {key: ticket["state"] for key, ticket in tickets.items()} == {
        "rounding": "done",
        "discount": "done",
        "tax": "done",
        "printing": "done",
        "amounts": "done",
        "export": "done",
        "speed": "failed",
    }
    assert tickets["rounding"]["attempts"] == 2
    assert sorted(tickets[key]["attempts"] for key in ("discount", "tax")) == [1, 2]
    assert tickets["printing"]["runs"] == ["lost", "finished"]
    assert tickets["export"]["runs"] == ["failed", "finished"]
    assert tickets["amounts"]["runs"] == []
    assert summary["red_receipts"] >= 1

    assert living(folder) == []
    assert list(home.iterdir()) == []
    repository = folder / "invoices"
    assert git(repository, "status", "--porcelain") == ""
    assert len(git(repository, "log", "--first-parent", "--format=%H").splitlines()) == 1 + 5
    page = (repository / "invoices/printing.py").read_text()
    assert page.count("def page") == 1
    assert "return lines" in page


def git(repository: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=repository, check=True, capture_output=True, text=True).stdout


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can hide bubblewrap from a process")
def test_it_works_on_a_terminal_without_bubblewrap(tmp_path):
    folder, home = tmp_path / "demo", tmp_path / "home"
    ours, theirs = pty.openpty()
    hidden = ["unshare", "--mount", "sh", "-c", NO_BUBBLEWRAP, "sh", *demo(folder)]
    with subprocess.Popen(hidden, env={**environment(home), "COLUMNS": "80"}, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        screen = read_all(ours)
        code = process.wait(PATIENCE)
    assert code == 0, screen[-3000:]
    assert "no sandbox: install bubblewrap" in screen
    assert "Everything ended as it should" in screen
    assert screen.endswith("\n")
    # The cursor is shown again as often as it was hidden.
    assert screen.count("\x1b[?25l") == screen.count("\x1b[?25h") == 1
    assert living(folder) == []


def read_all(handle: int) -> str:
    """What a terminal was told, until nobody is left to tell it anything."""
    told = b""
    while True:
        try:
            piece = os.read(handle, 1 << 16)
        except OSError:
            # Linux says so when the last process has closed its end.
            break
        if not piece:
            break
        told += piece
    os.close(handle)
    return told.decode()


@pytest.mark.slow
def test_an_interrupted_demo_leaves_nothing_running(tmp_path):
    folder, home = tmp_path / "demo", tmp_path / "home"
    with subprocess.Popen(demo(folder), env=environment(home), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "#4 an agent starts" in line:
                break
        process.terminate()
        assert process.wait(PATIENCE) != 0
    assert living(folder) == []


def test_a_folder_that_is_not_empty_is_refused(tmp_path):
    (tmp_path / "letter.txt").write_text("keep me")
    home = tmp_path.parent / f"{tmp_path.name}-home"
    refused = subprocess.run(demo(tmp_path), env=environment(home), capture_output=True, text=True, timeout=PATIENCE)
    assert refused.returncode == 2
    assert "not empty" in refused.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["letter.txt"]
