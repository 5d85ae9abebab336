"""Tests that are no longer needed are cancelled, however many runners do not answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from legion.jobs.workspace.command import Cancelled, CancelToken, cancel_all
from tests.jobs.silent import runner


def test_a_silent_runner_does_not_keep_the_other_tests_running(tmp_path: Path):
    first, second = CancelToken(), CancelToken()
    with (
        runner(tmp_path / "silent", answers=False),
        runner(tmp_path / "answers", answers=True) as asked,
        pytest.raises(Cancelled),
        first.running(tmp_path / "silent"),
        second.running(tmp_path / "answers"),
    ):
        cancel_all([first, second])
    assert asked == ["stop"]
