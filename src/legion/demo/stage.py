"""The demo's folder: a scratch repository, the agents' scripts, and Legion's data and settings for it alone."""

from __future__ import annotations

import importlib.resources
import os
import re
import shlex
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import legion
from legion.system import process
from legion.system.process import Finished, ProgramMissing
from legion.wire.errors import BadInput, LegionError, NotAllowed

_FILE = re.compile(r"^-- (\S+) --\n", re.MULTILINE)
_PORT = 16666
"""Away from the port of a daemon of the person's own; where it is taken, the next free one is used."""

SETTINGS = """\
# Settings of this demo alone; your own are not touched.
[daemon]
port = {port}

[sandbox]
read = ["{agents}"]
"""

SHORTCUT = """\
#!/bin/sh
# The command `legion` with the data and the settings of this demo.
export LEGION_DATA_DIR={data} LEGION_CONFIG={settings} PYTHONPATH={source}
unset LEGION_URL LEGION_TOKEN
exec {python} -P -m legion "$@"
"""


@dataclass(frozen=True)
class Stage:
    folder: Path

    @property
    def repository(self) -> Path:
        return self.folder / "invoices"

    @property
    def agents(self) -> Path:
        return self.folder / "agents"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def settings(self) -> Path:
        return self.folder / "config.toml"

    @property
    def shortcut(self) -> Path:
        return self.folder / "legion"

    def agent(self, name: str) -> str:
        """The command line of the script that plays this agent."""
        return f"python3 {shlex.quote(str(self.agents / name))}.py"

    def git(self, *words: str) -> str:
        return _successful(["git", *words], self.repository).text.strip()

    def check(self) -> Finished:
        """The project's own check in the plain checkout, where no setup ever ran."""
        return process.run(["python3", "-B", "-m", "unittest", "-q"], cwd=self.repository, env=_environment())


def prepare(folder: Path | None) -> Stage:
    """Everything on disk that the demo needs, in a new folder."""
    stage = Stage(_new_folder(folder))
    _unpack("repository.txtar", stage.repository)
    _unpack("agents.txtar", stage.agents)
    stage.settings.write_text(SETTINGS.format(port=_PORT, agents=_escaped(stage.agents)))
    words = {
        "data": stage.data,
        "settings": stage.settings,
        "source": Path(legion.__file__).parent.parent,
        "python": sys.executable,
    }
    stage.shortcut.write_text(SHORTCUT.format(**{name: shlex.quote(str(value)) for name, value in words.items()}))
    stage.shortcut.chmod(0o755)
    _commit_everything(stage)
    return stage


def use_own_settings(stage: Stage) -> None:
    """From here on this process, and the daemon that it starts, know nothing of the person's own Legion."""
    for name in ("LEGION_URL", "LEGION_TOKEN", "LEGION_DATA_DIR"):
        os.environ.pop(name, None)
    os.environ["LEGION_CONFIG"] = str(stage.settings)


def _new_folder(wanted: Path | None) -> Path:
    if wanted is None:
        return Path(tempfile.mkdtemp(prefix="legion-demo-"))
    folder = wanted.expanduser().absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        taken = any(folder.iterdir())
    except OSError as error:
        raise NotAllowed(f"{folder} cannot be used for the demo ({error.strerror}): name another folder.") from None
    if taken:
        raise BadInput(f"{folder} is not empty: name a new folder for the demo.")
    return folder


def _unpack(archive: str, folder: Path) -> None:
    """An archive is one text: a line `-- path --` before each file."""
    parts = _FILE.split(importlib.resources.files("legion.demo").joinpath(archive).read_text())
    for name, text in zip(parts[1::2], parts[2::2], strict=True):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def _commit_everything(stage: Stage) -> None:
    stage.git("init", "--quiet", "--initial-branch=main")
    stage.git("config", "user.name", "Ada")
    stage.git("config", "user.email", "ada@example.invalid")
    stage.git("add", "--all")
    stage.git("commit", "--quiet", "--no-gpg-sign", "--message", "A small library for invoices")


def _successful(words: list[str], cwd: Path) -> Finished:
    try:
        done = process.run(words, cwd=cwd, env=_environment())
    except ProgramMissing as missing:
        raise LegionError(f"The demo needs {missing}, which is not installed: install it and try again.") from None
    if done.code != 0:
        raise LegionError(f"`{' '.join(words)}` failed: {done.complaint}")
    return done


def _environment() -> dict[str, str]:
    """Without what would point git elsewhere, as it does inside a git hook."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "PYTHON"))}


def _escaped(path: Path) -> str:
    return str(path).replace("\\", "\\\\").replace('"', '\\"')
