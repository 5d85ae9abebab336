"""Agent programs of npm and pip, in pinned versions, installed once next to the tools and kept there.

`tools/programs/NAME/` holds the lock of each program of npm: the versions of all its packages, and their digests.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from legion.drivers.programs.description import ProgramDescription
from legion.system import files

LOCKS = Path(__file__).parents[2] / "tools" / "programs"
_KEPT = Path(__file__).parents[2] / ".venv" / "programs"
_PATIENCE = 300.0


class NotInstalled(Exception):
    """The program cannot be installed here; the message says why."""


def installed(package: str, version: str, program: str) -> Path:
    """The program. Skips the test where npm cannot bring it."""
    try:
        return _by_npm(f"{program}-{version}", f"{package}@{version}") / program
    except NotInstalled as missing:
        pytest.skip(f"{package} cannot be tried: {missing}")


def library(package: str, version: str) -> Path:
    """A folder whose scripts can import a package of npm. Skips the test where npm cannot bring it."""
    try:
        return _by_npm(f"{package.rpartition('/')[2]}-{version}", f"{package}@{version}").parent.parent
    except NotInstalled as missing:
        pytest.skip(f"{package} cannot be tried: {missing}")


def install(program: ProgramDescription) -> Path:
    """The folder with the program of this description. Raises NotInstalled."""
    wanted = program.program
    if wanted.npm:
        return _by_lock(program.name, wanted.npm.rpartition("@")[2])
    if wanted.pip:
        return _by_pip(f"{program.name}-{wanted.pip.rpartition('=')[2]}", wanted.pip)
    raise NotInstalled("neither npm nor pip has it")


def _by_lock(name: str, version: str) -> Path:
    """Exactly what the lock names: npm refuses a package whose content has another digest."""
    if shutil.which("npm") is None:
        raise NotInstalled("npm is not installed")
    folder = _KEPT / f"{name}-{version}-locked"
    folder.mkdir(parents=True, exist_ok=True)
    for file in ("package.json", "package-lock.json"):
        shutil.copyfile(LOCKS / name / file, folder / file)
    _once(folder, [["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(folder)]])
    return folder / "node_modules" / ".bin"


def _by_npm(name: str, *packages: str) -> Path:
    if shutil.which("npm") is None:
        raise NotInstalled("npm is not installed")
    folder = _KEPT / name
    argv = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), *packages]
    _once(folder, [argv])
    return folder / "node_modules" / ".bin"


def _by_pip(name: str, package: str) -> Path:
    folder = _KEPT / name
    _once(folder, [[sys.executable, "-m", "venv", str(folder)], [f"{folder}/bin/pip", "install", "-q", package]])
    return folder / "bin"


def _once(folder: Path, commands: list[list[str]]) -> None:
    """Run the commands, unless they succeeded before."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = files.lock(folder / "lock", patience=_PATIENCE)
    try:
        if (folder / "whole").exists():
            return
        for argv in commands:
            try:
                ended = subprocess.run(argv, capture_output=True, timeout=_PATIENCE, check=False)
            except subprocess.TimeoutExpired:
                raise NotInstalled(f"{argv[0]} takes too long") from None
            if ended.returncode != 0:
                raise NotInstalled(f"{Path(argv[0]).name}: {ended.stderr.decode(errors='replace')[-200:]}")
        (folder / "whole").touch()
    finally:
        lock.release()
