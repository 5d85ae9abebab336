"""The head's wait for a run on a machine, without a machine: it ends by the row, and costs nothing meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from legion.domain.machines.machine import PlacementState
from legion.jobs.machine_runs import remote
from legion.jobs.machines.part import MachinePart
from legion.runner.launch import EndedRun, LostRun
from legion.store.work import machines
from tests.machines.heads import EmptyEngine, Head, job_of


@pytest.fixture
def head(tmp_path: Path) -> Iterator[Head]:
    one = Head(tmp_path, MachinePart(engine=EmptyEngine()))
    one.machine("desk")
    yield one
    one.close()


class Waiting:
    """A job of the head that waits for its run, in a thread."""

    def __init__(self, head: Head) -> None:
        self.head = head
        self.run = head.started(1, "desk")
        self.wanted = threading.Event()
        self.wanted.set()
        self.ended: list[EndedRun | LostRun | None] = []
        self.asked = 0
        self.thread = threading.Thread(target=self._wait, daemon=True)
        self.thread.start()
        engine = head.board.context.machines.engine
        assert isinstance(engine, EmptyEngine)
        assert engine.placed.wait(20.0)

    def _wait(self) -> None:
        context, run = self.head.board.context, self.run
        project, ticket = context.project(1), self.head.board.tickets[1]

        def wanted() -> bool:
            self.asked += 1
            return self.wanted.is_set()

        made = remote.run_to_end(
            context, run, job=lambda: job_of(context, project, ticket, run), wanted=wanted, on_event=lambda event: None
        )
        self.ended.append(made)

    def stop(self) -> None:
        """As a person's stop does: the ticket is unwanted, and the job is woken."""
        self.wanted.clear()
        self.head.board.context.machines.bells.ring(self.run.name)


def test_a_run_that_is_stopped_before_its_machine_took_it_ends_at_once(head: Head):
    waiting = Waiting(head)
    waiting.stop()
    waiting.thread.join(20.0)
    assert waiting.ended == [None]
    assert head.placed(waiting.run).state is PlacementState.LAPSED
    assert waiting.asked < 10, "each question is a look at the ticket's row"


def test_a_run_that_was_taken_as_it_was_stopped_is_waited_for(head: Head):
    waiting = Waiting(head)
    with head.board.store.write() as tx:
        machines.take(tx, waiting.run.id, "w")
    waiting.stop()
    with head.board.store.write() as tx:
        machines.move(tx, waiting.run.id, PlacementState.LAPSED, "silent")
    head.board.context.machines.bells.ring(waiting.run.name)
    waiting.thread.join(20.0)
    assert waiting.ended == [LostRun()]
