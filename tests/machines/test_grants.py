"""A run that is given to a machine's waiting beat as it is placed: one worker process gets it, whatever is lost."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from legion import __version__
from legion.domain.machines.machine import PROTOCOL, Machine, MachineState, PlacementState
from legion.domain.runs import Run
from legion.jobs.machine_runs import beats
from legion.jobs.machines.engine import RunKey
from legion.jobs.machines.long_polls import BeatFacts
from legion.jobs.machines.part import MachinePart
from legion.machine.link import HeadLink, HeadUnreachable
from legion.store.work import machines
from legion.system.crash import Point
from tests.machines.heads import EmptyEngine, Head, beat, killed_at


@pytest.fixture
def head(tmp_path: Path) -> Iterator[Head]:
    one = Head(tmp_path, MachinePart(engine=EmptyEngine()))
    yield one
    one.close()


def facts(worker: str, *running: RunKey, free: int = 9) -> BeatFacts:
    return BeatFacts(
        boot="b",
        worker=worker,
        version=__version__,
        protocol=PROTOCOL,
        running=frozenset(running),
        mirrors=frozenset(),
        acks=frozenset(),
        free=free,
        toolchain=None,
    )


def desk(head: Head) -> Machine:
    with head.board.store.read() as tx:
        return machines.get(tx, "desk")


def sent(head: Head, *known: RunKey, worker: str = "first", free: int = 9) -> list[str]:
    """The runs in the answer to a beat of this process."""
    answer = beats.answer(head.board.context, desk(head), facts(worker, *known, free=free))
    return [job["run"]["conversation"] for job in answer.jobs]


def forget_all_beats(head: Head) -> None:
    """As a head that has just started."""
    head.board.context = replace(head.board.context, machines=MachinePart(engine=EmptyEngine()))


def grant(head: Head, run: Run, lost: str) -> dict[str, Any] | None:
    """Place the run while a beat waits, and lose what is said. Returns what the beat carries."""
    waiting = head.board.context.machines.beats
    woken: list[str] = []
    with waiting.waiting(desk(head).id, facts("first"), lambda: woken.append("")) as waits:
        if lost == "the head":
            assert killed_at(Point.MACHINE_PLACE_AFTER_ROW, lambda: head.place(run))
        else:
            head.place(run)
    if lost == "the head":
        forget_all_beats(head)
        return None
    assert woken == [""]
    return waits.job()


@pytest.mark.parametrize("lost", ["nothing", "the answer", "the head"])
@pytest.mark.parametrize("free", [0, 9], ids=["beat", "poll"])
def test_a_granted_run_reaches_the_process_that_its_row_names_and_no_other(head: Head, lost: str, free: int):
    head.machine("desk")
    run = head.started(1, "desk")
    job = grant(head, run, lost)
    assert (head.placed(run).state, head.placed(run).taken_by) == (PlacementState.TAKEN, "first")
    key = (run.name, run.generation)
    assert sent(head, worker="copy", free=free) == []
    if lost == "nothing":
        assert job is not None
        assert job["run"]["conversation"] == run.conversation
    else:
        for _ in range(2):
            assert sent(head, free=free) == [run.conversation], "until the process names it"
    assert sent(head, key, free=free) == []
    assert sent(head, worker="copy", free=free) == []
    head.place(run)
    assert head.placed(run).taken_by == "first", "placing it again changes nothing"


def test_a_beat_that_ended_while_it_was_reserved_carries_nothing_and_waits_no_more(head: Head):
    head.machine("desk")
    waiting, machine = head.board.context.machines.beats, desk(head).id
    with waiting.waiting(machine, facts("first"), lambda: None):
        held = waiting.reserved(machine)
        assert held.__enter__() is not None
        with waiting.reserved(machine) as other:
            assert other is None, "one run at a time"
    held.__exit__(None, None, None)
    with waiting.reserved(machine) as left:
        assert left is None
    run = head.started(1, "desk")
    head.place(run)
    assert head.placed(run).state is PlacementState.PLACED, "it waits in the queue"


def test_the_newest_beat_gets_one_job_and_an_unused_one_waits_on(head: Head):
    head.machine("desk")
    waiting, machine = head.board.context.machines.beats, desk(head).id
    with (
        waiting.waiting(machine, facts("lost"), lambda: None) as old,
        waiting.waiting(machine, facts("idle", free=0), lambda: None) as asks_nothing,
        waiting.waiting(machine, facts("first"), lambda: None) as new,
    ):
        with waiting.reserved(machine) as unused:
            assert unused is new
        head.place(run := head.started(1, "desk"))
        assert head.placed(run).taken_by == "first"
        assert (old.job(), asks_nothing.job()) == (None, None)
        assert new.job() is not None


@pytest.mark.parametrize("state", [MachineState.PAUSED, MachineState.DRAINING], ids=lambda state: state.value)
def test_a_machine_that_takes_nothing_is_granted_nothing(head: Head, state: MachineState):
    head.machine("desk")
    waiting, machine = head.board.context.machines.beats, desk(head).id
    with waiting.waiting(machine, facts("first"), lambda: None) as waits:
        with head.board.store.write() as tx:
            machines.set_state(tx, "desk", state)
        head.place(run := head.started(1, "desk"))
    assert waits.job() is None
    assert head.placed(run).state is PlacementState.PLACED


def test_a_full_machine_and_a_queue_that_comes_first_are_granted_nothing(head: Head):
    head.machine("desk")
    waiting, machine = head.board.context.machines.beats, desk(head).id
    first = head.taken(1, "desk")
    ending = ("ticket-9-run-9", 1)
    with waiting.waiting(machine, facts("first", ending), lambda: None):
        head.place(full := head.started(2, "desk"))
    assert head.placed(full).state is PlacementState.PLACED, "two slots: one run is taken, one is ending there"
    with waiting.waiting(machine, facts("first", (first.name, 1)), lambda: None):
        head.place(later := head.started(3, "desk"))
    assert head.placed(later).state is PlacementState.PLACED, "the one before it was not taken yet"


def until(holds: Callable[[], bool]) -> None:
    """Where no event reports it."""
    pause, deadline = threading.Event(), time.monotonic() + 20.0
    while not holds():
        assert time.monotonic() < deadline
        pause.wait(0.02)


def wait_for_jobs(link: HeadLink, worker: str, answers: list[dict[str, Any]]) -> threading.Thread:
    content = {**beat(wait=25.0), "worker": worker, "free": 9}

    def ask() -> None:
        try:
            answers.append(link.call("POST", "/beat", content=content).json())
        except HeadUnreachable:
            answers.append({})

    thread = threading.Thread(target=ask)
    thread.start()
    return thread


def waits(head: Head) -> bool:
    with head.board.context.machines.beats.reserved(desk(head).id) as found:
        return found is not None


def test_a_long_poll_is_answered_with_the_run_and_a_worker_that_ends_leaves_none_waiting(head: Head):
    link = head.link("desk")
    answers: list[dict[str, Any]] = []
    polling = wait_for_jobs(link, "first", answers)
    until(lambda: waits(head))
    head.place(run := head.started(1, "desk"))
    polling.join(10.0)
    assert [job["run"]["conversation"] for job in answers[0]["jobs"]] == [run.conversation]
    assert answers[0]["lease"] is not None
    again = wait_for_jobs(link, "next", answers)
    until(lambda: waits(head))
    link.hang_up()
    again.join(10.0)
    assert answers[1] == {}, "no second request follows"
    until(lambda: not waits(head))
