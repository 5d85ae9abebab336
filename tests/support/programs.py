"""Agent programs that come by npm, in pinned versions, installed once beside the tools and kept there."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from legion.system import files

_KEPT = Path(__file__).parents[2] / ".venv" / "programs"
_PATIENCE = 300.0


def installed(package: str, version: str, program: str) -> Path:
    """The program. Skips the test where npm cannot bring it."""
    folder = _KEPT / f"{program}-{version}"
    found = folder / "node_modules" / ".bin" / program
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed, so that other agent programs cannot be tried")
    folder.mkdir(parents=True, exist_ok=True)
    lock = files.lock(folder / "lock", patience=_PATIENCE)
    try:
        if not (folder / "whole").exists():
            argv = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), f"{package}@{version}"]
            try:
                ended = subprocess.run(argv, capture_output=True, timeout=_PATIENCE, check=False)
            except subprocess.TimeoutExpired:
                pytest.skip(f"npm takes too long to bring {package}")
            if ended.returncode != 0:
                pytest.skip(f"npm cannot bring {package}: {ended.stderr.decode(errors='replace')[-200:]}")
            (folder / "whole").touch()
    finally:
        lock.release()
    return found
