"""A daemon whose data folder is deleted ends, its runs end, and nothing is written into the void."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.support.legion import squad
from tests.support.looking import until_seen
from tests.support.repository import Repository


def test_a_daemon_whose_folder_was_deleted_ends_with_its_runs(tmp_path: Path):
    with squad(tmp_path) as one:
        project = one.adopt(Repository(tmp_path / "shop"))
        ticket = project.dispatch("long", "echo started; exec sleep 600")
        project.until_true(lambda: any(run.ended_at is None for run in project.ticket(ticket).runs))
        until_seen(one, lambda: "started" in project.log(ticket), "what it prints")
        assert one.process is not None
        others = [process for process in one.processes() if process.pid != one.process.pid]
        # The daemon still writes while its folder goes.
        while one.data.root.exists() and one.process.poll() is None:
            shutil.rmtree(one.data.root, ignore_errors=True)
        shutil.rmtree(one.data.root, ignore_errors=True)
        assert one.process.wait(60) == 1
        for process in others:
            process.wait(60)
        assert not one.data.root.exists()
