"""A run that works although its ticket was stopped is stopped by the job that waits for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from legion.jobs.supervise.wait import stop_when_unwanted
from legion.runner.journal import JournalEvent
from tests.jobs.silent import runner

EVENT = JournalEvent(number=1, time=0.0, kind="said", facts={})


@pytest.mark.parametrize("wanted", [True, False])
def test_the_next_sign_of_life_of_an_unwanted_run_stops_it(tmp_path: Path, wanted: bool):
    heard: list[JournalEvent] = []
    with runner(tmp_path / "run", answers=True) as asked:
        on_event = stop_when_unwanted(tmp_path / "run", lambda: wanted, heard.append)
        on_event(EVENT)
        on_event(EVENT)
    assert heard == [EVENT, EVENT]
    assert asked == ([] if wanted else ["stop"])


def test_a_runner_that_does_not_answer_breaks_no_job(tmp_path: Path):
    with runner(tmp_path / "run", answers=False) as asked:
        stop_when_unwanted(tmp_path / "run", lambda: False, lambda _: None)(EVENT)
    assert asked == ["stop"]
