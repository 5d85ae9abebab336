"""Calls at once: results in order, the first error, and threads that do not keep a process alive."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from legion.system.loops import call_each


def test_results_come_in_the_order_of_the_items_and_the_calls_run_at_once():
    together = threading.Barrier(3)

    def call(item: int) -> int:
        together.wait(10)
        return item * 2

    assert call_each(call, [3, 1, 2], thread_name="call") == [6, 2, 4]
    assert call_each(call, [], thread_name="call") == []


def test_the_first_error_is_raised_after_all_calls_have_ended():
    ended: list[int] = []

    def call(item: int) -> None:
        ended.append(item)
        if item:
            raise ValueError(item)

    with pytest.raises(ValueError, match="1"):
        call_each(call, [1, 2, 0], thread_name="call")
    assert sorted(ended) == [0, 1, 2]


def test_a_process_ends_while_a_call_waits():
    program = """
import threading
from legion.system.loops import call_each
began = threading.Event()
def call(item):
    began.set()
    threading.Event().wait()
threading.Thread(target=call_each, args=(call, [1]), kwargs={"thread_name": "call"}, daemon=True).start()
began.wait()
"""
    assert subprocess.run([sys.executable, "-c", program], timeout=20, check=False).returncode == 0
