"""A board and a run as commit 7090703 left them when its daemon was killed.

`data/7090703.tar.xz` was made once, by that commit's own daemon, and is frozen. `site` holds its folders: the
database as SQL, the hub, the worktrees, the person's repository, and the folder of a run that was alive. `release`
holds the part of that commit's package that its runner consists of, so that the run can live again.
"""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
import subprocess
import sys
import tarfile
import time
from datetime import datetime, timedelta
from pathlib import Path

from tests.support.legion import Project, Squad
from tests.support.repository import Repository

ARCHIVE = Path(__file__).with_name("data") / "7090703.tar.xz"
MADE_IN = b"/tmp/legion-7090703"
LIVING = "ticket-4-run-6"
_DEADLINE = re.compile(r"\b(1\.79490\d+e\+09|179490\d{4}\.\d+)")
"""When its one question expires: a day after it was asked."""


class OldSite:
    def __init__(self, folder: Path) -> None:
        with tarfile.open(ARCHIVE) as archive:
            archive.extractall(folder)
        self.release, self.root = folder / "release", folder / "site"
        self.gates = self.root / "gates"
        self.gates.mkdir(exist_ok=True)
        _move(self.root)
        _load(self.root / "data")
        quiet = datetime.now().astimezone() - timedelta(hours=1)
        hours = f"{quiet:%H:%M}-{quiet + timedelta(hours=3):%H:%M}"
        settings = f'[sandbox]\nwrite = ["{self.gates}"]\n[rhythm]\nquiet = "{hours}"'
        self.squad = Squad(self.root, settings=settings)
        hub = self.squad.data.project(1) / "hub.git"
        self.project = Project(self.squad, Repository.at(self.root / "ada"), hub)

    def start_runner(self) -> None:
        """The runner of the living run, by the old release. It leaves this process, as a runner does."""
        reading, writing = os.pipe()
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(self.release)}
        argv = [sys.executable, "-P", "-m", "legion.runner.host", str(self.squad.data.runs / LIVING), str(writing)]
        subprocess.run(argv, cwd="/", env=env, stdin=subprocess.DEVNULL, pass_fds=[writing], check=True)
        os.close(writing)
        with os.fdopen(reading, "rb") as answers:
            assert answers.readline().startswith(b"ready")


def _move(root: Path) -> None:
    """Name the new folder wherever a file of Legion or git names the old one; those of the repository stay."""
    for path in root.rglob("*"):
        if path.is_file() and path.name != "check.sh" and ("objects" not in path.parts or path.name == "alternates"):
            text = path.read_bytes()
            if MADE_IN in text:
                path.write_bytes(text.replace(MADE_IN, str(root).encode()))


def _load(data: Path) -> None:
    """The database as it was, but for the deadline of its question, which is always ahead."""
    text, found = _DEADLINE.subn(str(time.time() + 86_400), (data / "legion.sql").read_text())
    assert found, "the question has a deadline"
    with contextlib.closing(sqlite3.connect(data / "legion.db")) as database:
        database.executescript(text)
    (data / "legion.sql").unlink()
