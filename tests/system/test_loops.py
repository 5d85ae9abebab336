"""A thread that lasts: an error that nobody expected is told, and its work goes on."""

from __future__ import annotations

import logging
import threading

import pytest

from legion.system import loops


def test_a_loop_goes_on_after_an_unexpected_error_and_the_log_shows_where_it_was(caplog: pytest.LogCaptureFixture):
    passes: list[int] = []

    def repeat() -> None:
        passes.append(1)
        if len(passes) < 3:
            raise ZeroDivisionError("a surprise")

    thread = loops.lasting(repeat, name="tidying", stopped=lambda _: False)
    with caplog.at_level(logging.ERROR):
        thread.start()
        thread.join(60)
    assert len(passes) == 3
    assert caplog.text.count("tidying: failed, starts again in") == 2
    assert "in repeat" in caplog.text, "with the traceback"


def test_the_pauses_grow_and_end_with_the_loop():
    pauses: list[float] = []

    def stopped(pause: float) -> bool:
        pauses.append(pause)
        return len(pauses) == 12

    def repeat() -> None:
        raise RuntimeError("again")

    thread = loops.lasting(repeat, name="x", stopped=stopped)
    thread.start()
    thread.join(60)
    assert pauses[:4] == [1, 2, 4, 8]
    assert pauses[-1] == 300


def test_one_that_is_told_to_end_ends_in_its_pause():
    over = threading.Event()
    failed = threading.Event()

    def repeat() -> None:
        failed.set()
        raise RuntimeError("again")

    thread = loops.lasting(repeat, name="x", stopped=over.wait, first_pause=600)
    thread.start()
    assert failed.wait(60)
    over.set()
    thread.join(60)
    assert not thread.is_alive()
