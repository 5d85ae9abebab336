"""The wheel that people install: every module of ours, nothing else, and the command."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

import legion
from tests.support.codebase import ROOT, SOURCE, project_files


@pytest.fixture
def wheel(tmp_path: Path) -> zipfile.ZipFile:
    built = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    (path,) = tmp_path.glob("*.whl")
    assert path.name == f"legionary-{legion.__version__}-py3-none-any.whl"
    return zipfile.ZipFile(path)


def test_the_wheel_holds_our_package_and_nothing_else(wheel):
    with wheel:
        packed = {name for name in wheel.namelist() if ".dist-info/" not in name}
        metadata = message_from_bytes(wheel.read(f"legionary-{legion.__version__}.dist-info/METADATA"))
        commands = wheel.read(f"legionary-{legion.__version__}.dist-info/entry_points.txt").decode()
    ours = {str(path.relative_to(SOURCE.parent)) for path in project_files() if path.is_relative_to(SOURCE)}
    assert packed == {*ours, "legion/CHANGELOG.md"}
    assert metadata["Name"] == "legionary"
    assert metadata["License-Expression"] == "MIT"
    assert metadata["Requires-Python"] == ">=3.11"
    assert commands.split("\n")[:2] == ["[console_scripts]", "legion = legion.cli.main:main"]
