"""A squad whose programs run in containers of podman: work lands, and a killed daemon leaves nothing behind."""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path

import pytest

from legion.runner.probe import probe
from tests.support.gates import Gate
from tests.support.legion import PLAIN, squad
from tests.support.repository import Repository

SETTINGS = '[sandbox]\nkind = "container"\nwrite = ["{0}/gates"]\n'


def test_work_in_containers_lands_although_the_daemon_is_killed(tmp_path: Path):
    if not (state := probe("")).works:
        pytest.skip(f"no container can be started here: {state.why}")
    (tmp_path / "gates").mkdir()
    with squad(tmp_path, launch=PLAIN, settings=SETTINGS.format(tmp_path)) as legion:
        sandbox = {one.name: one.detail for one in legion.client.doctor(None).findings}["sandbox"]
        assert sandbox.startswith("containers of podman work")
        project = legion.adopt(Repository(tmp_path / "ada", '[checks.test]\nrun = "grep -q made made.txt"\n'))
        with contextlib.closing(Gate(legion.folder / "gates", "work")) as gate:
            ticket = project.dispatch("Make it", f"{gate.pause}; ls /sys/class/net > made.txt; echo made >> made.txt")
            gate.arrived()
            legion.kill()
            legion.start()
            gate.open()
            project.until(ticket, "done")
        assert project.landed("made.txt") == "lo\nmade\n"
        made = [path.read_text() for path in legion.data.runs.glob("*/container")]
    words = ["podman", "ps", "--all", "--quiet", "--no-trunc"]
    known = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
    assert made
    assert not set(made) & set(known)
