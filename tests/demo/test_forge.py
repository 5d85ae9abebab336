"""`legion demo --forge` does what it says: an issue, red CI, a reviewer, a merge, by real Claude Code."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.demo.person import PATIENCE, environment, living

pytestmark = pytest.mark.timeout(300)


@pytest.mark.soak
@pytest.mark.slow
def test_an_issue_becomes_a_merged_pull_request(tmp_path):
    folder = tmp_path / "demo"
    words = [sys.executable, "-m", "legion", "demo", "--forge", "--folder", str(folder), "--json"]
    env = environment(tmp_path / "home")
    shown = subprocess.run(words, env=env, capture_output=True, text=True, timeout=PATIENCE)
    assert shown.returncode == 0, shown.stderr
    summary = json.loads(shown.stdout)
    assert summary["problems"] == []
    assert (summary["issue"], summary["comments"], summary["attempts"]) == ("closed", 1, 3)
    assert summary["landed"] == summary["merged"] != ""
    assert "its people and its CI are scripted" in shown.stderr
    assert living(folder) == []
