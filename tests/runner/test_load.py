"""What the processes of a run have used: who counts, and that work is told from waiting."""

from __future__ import annotations

from pathlib import Path

from legion.domain.watchdog.activity import ProcessLoad
from legion.runner import load
from legion.runner.journal import read_journal
from legion.runner.load import RootProcesses
from tests.runner.runs import Workbench, within

WAITS = "read -r _ < hold"


def root_of(run: Path) -> RootProcesses:
    return within(lambda: _root_of(run))


def _root_of(run: Path) -> RootProcesses:
    while (found := load.root_of(read_journal(run))) is None:
        pass
    return found


def used(bench: Workbench, run: Path, *, tools_only: bool) -> ProcessLoad:
    everybody = load.table()
    assert everybody is not None
    found = load.load(root_of(run), everybody, walled=bench.sandboxed, tools_only=tools_only)
    assert found is not None
    return found


def test_the_top_of_a_run_is_known_by_all_of_its_first_lines_or_not_at_all(bench: Workbench):
    """Whoever reads on from the middle does not know the runner, and everybody would seem to be its child."""
    bench.pipe("hold")
    run = bench.shell(WAITS)
    whole = root_of(run)
    lines = read_journal(run)
    started = next(at for at, line in enumerate(lines) if line.kind == "started")
    assert load.root_of(lines[:started]) is None
    assert load.root_of(lines[started:]) is None
    assert whole.runner > 1


def test_a_program_without_tools_has_no_load_but_its_own(bench: Workbench):
    bench.pipe("hold")
    pipe = bench.pipe("said")
    run = bench.shell(f"echo there > said; {WAITS}")
    pipe.line()
    assert used(bench, run, tools_only=True).count == 0
    assert used(bench, run, tools_only=False).count == 1


def test_who_waits_uses_nothing_and_who_works_does(bench: Workbench):
    bench.pipe("hold")
    pipe = bench.pipe("said")
    work = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"
    run = bench.shell(f"sh -c 'echo 1 > said; {WAITS}; {work}; echo 2 > said; {WAITS}'; true")
    pipe.line()
    first = used(bench, run, tools_only=True)
    assert first.count == 1
    assert used(bench, run, tools_only=True) == first
    (bench.worktree / "hold").write_text("go\n")
    pipe.line()
    second = used(bench, run, tools_only=True)
    assert second.processes == first.processes
    assert (second.cpu > first.cpu, second.bytes > first.bytes) == (True, True)


def test_those_who_left_their_parents_count_too(bench: Workbench):
    bench.pipe("hold")
    pipe = bench.pipe("said")
    run = bench.shell(f"(setsid sh -c 'echo there > said; {WAITS}' &); {WAITS}")
    pipe.line()
    within(lambda: _until_two(bench, run))


def _until_two(bench: Workbench, run: Path) -> None:
    while used(bench, run, tools_only=False).count != 2:
        pass


def test_it_is_seen_that_a_program_is_gone(bench: Workbench):
    bench.pipe("hold")
    run = bench.shell(WAITS)
    root = root_of(run)
    (bench.worktree / "hold").write_text("go\n")
    bench.result(run)
    everybody = load.table()
    assert everybody is not None
    assert not load.lives(root, everybody)
    assert load.root_of(read_journal(run)[:1]) is None
