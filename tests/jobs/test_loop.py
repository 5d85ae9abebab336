"""The daemon's loops go on after errors that their steps did not expect."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from legion.domain.errors import NotFound
from legion.domain.events import EventKind
from legion.domain.machines.machine import LeaseTimes
from legion.jobs.background.lesson_proposals import EpicLandings
from legion.jobs.background.notifier import Notifier
from legion.jobs.loop import BackgroundLoop
from legion.jobs.machine_runs.ends import Reaper
from legion.store import events
from tests.support.board import Board

PATIENCE = 60


@pytest.fixture
def board(tmp_path: Path) -> Iterator[Board]:
    one = Board(tmp_path)
    yield one
    one.close()


class Steps(BackgroundLoop):
    """A loop of one pass."""

    def __init__(self, board: Board, *steps: Callable[[], object]) -> None:
        super().__init__(board.context, "steps")
        self.steps = steps

    def _repeat(self) -> None:
        for number, step in enumerate(self.steps):
            self._attempt(f"step {number}", step)

    def once(self) -> None:
        self._repeat()


def test_a_step_that_fails_in_any_way_costs_no_other_step(board: Board, caplog: pytest.LogCaptureFixture):
    done: list[str] = []

    def raises(error: Exception) -> Callable[[], object]:
        def act() -> object:
            raise error

        return act

    loop = Steps(board, raises(NotFound("no such ticket")), raises(KeyError("surprise")), lambda: done.append("last"))
    with caplog.at_level(logging.WARNING):
        loop.once()
    assert done == ["last"]
    assert "step 0 failed, will retry: no such ticket" in caplog.text
    assert "step 1 failed unexpectedly, will retry in 1 s" in caplog.text
    assert "KeyError" in caplog.text
    found = {one.name: one for one in board.service.doctor(None).findings}
    assert "step 0" not in found, "an error of a known kind is only logged"
    assert "0 min ago: KeyError: 'surprise'" in found["step 1"].detail
    with board.store.read() as tx:
        (event,) = (one for one in events.after(tx, 0) if one.kind is EventKind.WARNING)
    assert event.data == {"job": "step 1", "why": "failed and will be tried again: 'surprise'"}


def test_a_step_with_a_surprise_rests_and_one_with_a_known_error_does_not(board: Board):
    tried: list[str] = []

    def known() -> object:
        tried.append("known")
        raise OSError("the disk is full")

    def surprise() -> object:
        tried.append("surprise")
        raise KeyError("surprise")

    loop = Steps(board, known, surprise)
    for _ in range(3):
        loop.once()
    assert tried == ["known", "surprise", "known", "known"]


class Surprised(BackgroundLoop):
    def __init__(self, board: Board, pause: float) -> None:
        self.pause = pause
        super().__init__(board.context, "surprised")
        self.rounds = 0
        self.at_work = threading.Event()

    def _repeat(self) -> None:
        self.rounds += 1
        if self.rounds < 3:
            raise ZeroDivisionError("nobody thought of it")
        self.at_work.set()
        self._stopping.wait(PATIENCE)


def test_a_surprise_ends_no_loop(board: Board, caplog: pytest.LogCaptureFixture):
    """Outside of any step."""
    loop = Surprised(board, pause=0.01)
    loop.start()
    try:
        assert loop.at_work.wait(PATIENCE)
    finally:
        loop.stop()
    assert loop.rounds == 3
    assert "surprised: failed, starts again in 0.01 s" in caplog.text
    assert "nobody thought of it" in caplog.text


def test_a_loop_that_fails_waits_before_it_starts_again_and_ends_at_once(board: Board):
    loop = Surprised(board, pause=PATIENCE)
    loop.start()
    loop.stop()
    loop._thread.join(PATIENCE / 2)
    assert not loop._thread.is_alive()
    assert loop.rounds <= 1


def test_epics_land_after_an_unexpected_error(board: Board):
    landed = threading.Event()
    tries: list[int] = []

    def land() -> None:
        tries.append(1)
        if len(tries) == 1:
            raise ZeroDivisionError
        landed.set()

    loop = EpicLandings(board.context, land)
    loop.start()
    for _ in range(PATIENCE):
        loop.poke()
        if landed.wait(1):
            break
    loop.stop()
    assert len(tries) == 2


def test_surprises_of_loops_outside_the_base_are_reported_too(board: Board):
    """A look at leases, and a channel of notifications."""
    reported = threading.Event()

    def surprise() -> float:
        raise ZeroDivisionError("nobody thought of it")

    def look() -> None:
        if {"leases", "notifier-desktop"} <= set(board.context.live.failures.current):
            reported.set()

    board.store.on_commit(look)
    at_once = LeaseTimes(beat=0.01, quiet=0.02, stop=0.03, reap=0.04)
    context = replace(board.context, machines=replace(board.context.machines, times=at_once))
    reaper, notifier = Reaper(context, clock=surprise), Notifier(context)
    reaper.start()
    notifier.channel("desktop").put(surprise)
    try:
        assert reported.wait(PATIENCE)
    finally:
        reaper.stop()
        notifier.stop()
