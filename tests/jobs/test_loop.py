"""A loop of the daemon survives what it did not expect, says so, and does not spin."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from legion.jobs.loop import BackgroundLoop
from tests.jobs.office import Office

PATIENCE = 30.0


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    one = Office(tmp_path)
    yield one
    one.close()


class Surprised(BackgroundLoop):
    pause = 0.01

    def __init__(self, office: Office) -> None:
        super().__init__(office.context, "surprised")
        self.rounds = 0
        self.at_work = threading.Event()

    def _repeat(self) -> None:
        self.rounds += 1
        if self.rounds < 3:
            raise ZeroDivisionError("nobody thought of it")
        self.at_work.set()
        self._stopping.wait(PATIENCE)


def test_a_surprise_ends_no_loop(office: Office, caplog: pytest.LogCaptureFixture):
    loop = Surprised(office)
    loop.start()
    try:
        assert loop.at_work.wait(PATIENCE)
    finally:
        loop.stop()
    assert loop.rounds == 3
    assert caplog.text.count("surprised: failed, starts again in 0.01 s: nobody thought of it") == 2


def test_a_loop_that_fails_waits_before_it_starts_again_and_ends_at_once(office: Office):
    loop = Surprised(office)
    loop.pause = PATIENCE
    loop.start()
    loop.stop()
    loop._thread.join(PATIENCE / 2)
    assert not loop._thread.is_alive()
    assert loop.rounds <= 1
