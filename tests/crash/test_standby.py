"""A standby takes over when the head is killed in the middle of a landing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from legion.system.crash import Point
from tests.support.legion import PATIENCE, SOURCE, Squad
from tests.support.postgres import fresh_database
from tests.support.repository import Repository

pytestmark = pytest.mark.slow


def test_a_standby_finishes_the_landing_of_a_killed_head(tmp_path: Path):
    with fresh_database() as url:
        one = Squad(tmp_path, database=url)
        standby = None
        try:
            one.start({"LEGION_CRASH_AT": Point.LAND_AFTER_SWAP.value})
            project = one.adopt(Repository(tmp_path / "shop", '[checks.test]\nrun = "true"\n'))
            standby = _stand_by(one, tmp_path / "standby.log")
            assert one.process is not None
            killed = one.process
            ticket = project.dispatch("Greet", "echo hi > greeting.txt")
            assert killed.wait(PATIENCE) != 0
            _until_it_serves(one, standby)
            project.until(ticket, "done")
            assert one.client.ticket(ticket).ticket.attempt == 1
            landed = project.repository.git("--git-dir", str(project.hub), "log", "--format=%s", "refs/legion/target")
            assert landed.splitlines().count("Greet") == 1
        finally:
            if standby is not None:
                standby.terminate()
                standby.wait(30)
                assert standby.stdout is not None
                standby.stdout.close()
            one.close()


def _stand_by(one: Squad, log: Path) -> subprocess.Popen[bytes]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("LEGION_")}
    env |= {"PYTHONPATH": str(SOURCE), "LEGION_CONFIG": str(one.settings)}
    argv = [sys.executable, "-m", "legion.daemon", "--data-dir", str(one.data.root), "--port", "20000", "--standby"]
    with log.open("ab") as out:
        child = subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=out)
    assert child.stdout is not None
    assert b"Standby: Another Legion daemon already serves" in child.stdout.readline()
    return child


def _until_it_serves(one: Squad, standby: subprocess.Popen[bytes]) -> None:
    assert standby.stdout is not None
    for line in standby.stdout:
        if line.startswith(b"Ready at"):
            return
    pytest.fail(f"the standby ended: {standby.wait()}")
