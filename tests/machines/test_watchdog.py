"""The watchdog over runs on machines: it sees their journals, not their processes, and no clock of theirs counts."""

from __future__ import annotations

from pathlib import Path

from legion.domain.runs import Run
from legion.domain.watchdog.diagnosis import WatchdogStep
from legion.drivers import Program
from legion.jobs.background.watchdog import Watchdog
from legion.runner.journal import Journal, JournalKind
from legion.runner.spec import RunSpec, write_spec
from legion.store.work import runs
from legion.store.work import watchdog as store
from tests.support.board import Board


def started(board: Board, ticket: int) -> tuple[Run, Journal]:
    """A run of Claude Code on a machine, as far as the head has it."""
    board.put(ticket, state="working", command="true")
    with board.store.write() as tx:
        run = runs.start(tx, ticket, 1, machine="desk")
    folder = board.data.runs / run.name
    folder.mkdir(parents=True)
    program = Program(argv=("claude",), cwd=Path("/"), env={})
    write_spec(folder, RunSpec(run=run.name, program=program, driver="claude", timeout=60.0, sandbox=None))
    journal = Journal(folder, lambda: None)
    journal.append(JournalKind.OPENED, runner=1)
    journal.append(JournalKind.STARTED, pid=1, since=1)
    return run, journal


def steps(board: Board, run: Run) -> list[WatchdogStep]:
    with board.store.read() as tx:
        return [one.action for one in store.interventions(tx, [run.id]).get(run.id, ())]


def test_tests_that_keep_failing_in_the_same_way_are_noticed_on_a_machine_too(tmp_path: Path):
    board = Board(tmp_path)
    looping, journal = started(board, 1)
    working, other = started(board, 2)
    for number in range(20):
        for one, result in ((journal, "same"), (other, f"other {number}")):
            one.append("begins", call=f"c{number}", tool="Bash", input="make test", digest="d")
            one.append("returned", call=f"c{number}", gist=result, tests=[1, 3], failed=True)
    Watchdog(board.context).check()
    assert steps(board, looping) == [WatchdogStep.NUDGE]
    assert steps(board, working) == []
    board.close()
