"""What `make release` makes: packages without a file too many, and a manual of every command."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from legion.cli.app import SECTIONS
from tests.support.codebase import ROOT

BUILD = runpy.run_path(str(ROOT / "tools/release/build.py"))


def test_a_wheel_is_made_of_the_commit_alone_and_twice_the_same() -> None:
    wheel: Path = BUILD["_built"]("wheel", umask=0o022)
    again: Path = BUILD["_built"]("wheel", umask=0o077)
    assert wheel.read_bytes() == again.read_bytes()
    names = zipfile.ZipFile(wheel).namelist()
    BUILD["_only"](wheel, BUILD["IN_WHEEL"], names)
    assert {
        "legion/CHANGELOG.md",
        "legion/web/static/index.html",
        "legion/store/database/migrations/0001_first.sql",
    } <= {*names}


@pytest.mark.parametrize("name", ["tests/test_a.py", "bench/cost.py", "legionary.pth"])
def test_a_package_with_another_file_is_refused(name: str) -> None:
    with pytest.raises(SystemExit, match="do not belong there"):
        BUILD["_only"](Path("some.whl"), BUILD["IN_WHEEL"], ["legion/__init__.py", name])


def test_the_bill_of_materials_has_each_locked_dependency_with_its_hashes() -> None:
    locked = BUILD["_locked"]()
    named = re.findall(r"^([\w.\-]+)(?:\[.*?\])?==", (ROOT / "requirements.lock").read_text(), re.MULTILINE)
    assert [name for name, _, _ in locked] == named
    assert all(hashes for _, _, hashes in locked)


def test_the_manual_has_every_command() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools/release/manual.py")], capture_output=True, text=True, check=True
    )
    sections = {
        line.removeprefix(".SS legion ").split(" [")[0] for line in done.stdout.splitlines() if line.startswith(".SS ")
    }
    for name in (name for section in SECTIONS.values() for name in section):
        assert any(one.startswith(name.replace("-", "\\-")) for one in sections), name
