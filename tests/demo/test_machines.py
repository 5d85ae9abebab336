"""`legion demo --machines` does what it says: three machines, one cut off, every ticket landed once."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.demo.person import PATIENCE, environment, living
from tests.support.postgres_keeper import Trouble, programs

pytestmark = pytest.mark.timeout(300)


@pytest.mark.soak
@pytest.mark.slow
def test_a_machine_is_cut_off_and_every_ticket_lands_once(tmp_path: Path):
    try:
        programs()
    except Trouble as missing:
        pytest.skip(str(missing))
    folder = tmp_path / "demo"
    words = [sys.executable, "-m", "legion", "demo", "--machines", "3", "--folder", str(folder), "--json"]
    env = environment(tmp_path / "home")
    shown = subprocess.run(words, env=env, capture_output=True, text=True, timeout=PATIENCE)
    assert shown.returncode == 0, shown.stderr
    summary = json.loads(shown.stdout)
    assert summary["problems"] == []
    assert (summary["tickets"], summary["landed"], summary["twice"]) == (6, 6, 0)
    assert summary["lapsed"] > 0
    assert summary["late"] > 0
    assert sum(summary["runs"].values()) == 6
    assert "the agents are plain programs" in shown.stderr
    assert living(folder) == []
