"""Any program as an agent: its briefing comes on stdin and in a file, through a real runner."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from legion.drivers import registry
from legion.drivers.registry import briefed
from legion.runner import launch
from legion.runner.launch import EndedRun, Launcher
from legion.runner.sandbox import Sandbox
from legion.runner.spec import RunSpec, write_spec


@pytest.fixture
def launcher() -> Iterator[Launcher]:
    launcher = Launcher()
    yield launcher
    launcher.close()


@pytest.mark.parametrize("sandboxed", [True, False], ids=["sandboxed", "bare"])
def test_an_agent_finds_its_briefing_on_stdin_and_in_a_file_and_leaves_a_change(
    tmp_path: Path, launcher: Launcher, sandboxed: bool
):
    worktree, briefing, run_dir = tmp_path / "worktree", tmp_path / "briefing.md", tmp_path / "runs/1"
    worktree.mkdir()
    briefing.write_text('Say "hello" to the 🏛\n')
    program = briefed(
        ["sh", "-c", 'cat > from-stdin; cat "$LEGION_BRIEFING" > from-file; echo "ticket $LEGION_TICKET"'],
        cwd=worktree,
        env={"PATH": "/usr/bin:/bin", "LEGION_TICKET": "7", "LEGION_ATTEMPT": "1"},
        briefing=briefing,
    )
    sandbox = Sandbox(home=Path("/home/ada"), writable=(worktree,), readable=(briefing,)) if sandboxed else None
    write_spec(run_dir, RunSpec(run="1", program=program, sandbox=sandbox))
    launcher.start(run_dir)
    state = launch.wait(run_dir)
    assert isinstance(state, EndedRun)
    assert state.result.succeeded
    assert (worktree / "from-stdin").read_text() == briefing.read_text()
    assert (worktree / "from-file").read_text() == briefing.read_text()
    assert (run_dir / "output.log").read_text() == "ticket 7\n"


def test_every_named_driver_is_there():
    for name in registry.PROFILES:
        assert callable(registry.load(name).run)
