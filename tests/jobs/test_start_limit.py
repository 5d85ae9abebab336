"""The limit on starts at the same time: the first alone, then a few at once, and none waits long for a long start."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import ExitStack

from legion.jobs.context import StartLimit

_FOR_EVER = 3600.0
_PATIENCE = 20.0
_MOMENT = 0.1
"""Long enough for a thread that nothing holds up."""


def test_as_many_as_allowed_start_at_once_and_the_next_waits_for_an_end() -> None:
    limit = StartLimit(at_once=2, held_for=_FOR_EVER, alone_for=0)
    with ExitStack() as first, limit.hold():
        first.enter_context(limit.hold())
        third, entered = _enter(limit)
        assert not entered.wait(_MOMENT)
        first.close()
        assert entered.wait(_PATIENCE)
    third.join(_PATIENCE)


def test_a_start_that_takes_long_no_longer_counts() -> None:
    limit = StartLimit(at_once=1, held_for=0.05, alone_for=0)
    with limit.hold():
        second, entered = _enter(limit)
        assert entered.wait(_PATIENCE)
    second.join(_PATIENCE)


def test_the_first_start_after_a_lull_goes_alone_and_the_next_ones_together() -> None:
    limit = StartLimit(at_once=3, held_for=_FOR_EVER, alone_for=_FOR_EVER, lull=_FOR_EVER)
    with limit.hold():
        second, entered = _enter(limit)
        assert not entered.wait(_MOMENT)
    assert entered.wait(_PATIENCE)
    second.join(_PATIENCE)
    with limit.hold():
        third, also = _enter(limit)
        assert also.wait(_PATIENCE)
    third.join(_PATIENCE)


def test_a_first_start_that_takes_long_no_longer_goes_alone() -> None:
    limit = StartLimit(at_once=3, held_for=_FOR_EVER, alone_for=0.05)
    with limit.hold():
        second, entered = _enter(limit)
        assert entered.wait(_PATIENCE)
    second.join(_PATIENCE)


def test_who_waits_for_a_start_goes_on_when_one_is_through() -> None:
    limit = StartLimit()
    before = limit.count
    thread = _thread(lambda: limit.wait_for_start(before, _FOR_EVER))
    with limit.hold():
        thread.join(_MOMENT)
        assert thread.is_alive()
    thread.join(_PATIENCE)
    assert not thread.is_alive()
    limit.wait_for_start(limit.count, 0.0)


def test_the_end_of_a_run_waits_while_starts_wait_and_no_longer_than_its_patience() -> None:
    limit = StartLimit(at_once=1, held_for=_FOR_EVER, alone_for=0)
    limit.let_starts_pass(_FOR_EVER)
    with ExitStack() as first:
        first.enter_context(limit.hold())
        second, entered = _enter(limit)
        while not limit.waiting:
            second.join(0.01)
        end = _thread(lambda: limit.let_starts_pass(_FOR_EVER))
        end.join(_MOMENT)
        assert end.is_alive()
        limit.let_starts_pass(0.01)
        first.close()
        assert entered.wait(_PATIENCE)
    second.join(_PATIENCE)
    end.join(_PATIENCE)
    assert not end.is_alive()


def test_a_start_that_fails_gives_its_place_back() -> None:
    limit = StartLimit(at_once=1, held_for=_FOR_EVER, alone_for=_FOR_EVER)
    for _ in range(3):
        assert _fails(limit) == "no program"


def test_thirty_starts_are_never_more_than_allowed_and_all_come() -> None:
    limit = StartLimit(at_once=3, held_for=_FOR_EVER, alone_for=_FOR_EVER)
    lock, meanwhile = threading.Lock(), threading.Event()
    inside, most, started = 0, 0, 0

    def start() -> None:
        nonlocal inside, most, started
        with limit.hold():
            with lock:
                inside += 1
                most = max(most, inside)
            meanwhile.wait(0.01)
            with lock:
                inside -= 1
                started += 1

    threads = [_thread(start) for _ in range(30)]
    for thread in threads:
        thread.join(_PATIENCE)
    assert started == 30
    assert most <= 3


def _enter(limit: StartLimit) -> tuple[threading.Thread, threading.Event]:
    entered = threading.Event()

    def enter() -> None:
        with limit.hold():
            entered.set()

    return _thread(enter), entered


def _thread(target: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=target, daemon=True)
    thread.start()
    return thread


def _fails(limit: StartLimit) -> str:
    try:
        with limit.hold():
            raise RuntimeError("no program")
    except RuntimeError as error:
        return str(error)
