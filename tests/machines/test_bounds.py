"""Sockets, descriptors and memory of a worker and its head stay bounded, however long they run."""

from __future__ import annotations

import json
import os
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from legion.git.hub import machine_packs
from legion.git.hub.repository import Hub
from legion.jobs.machine_runs import packs
from legion.jobs.machine_runs.arrivals import PACK
from legion.jobs.machine_runs.remote import RunProxy
from legion.jobs.machines.travel import FILE
from legion.machine import mirror
from legion.machine.mirror import Mirrors
from legion.system.paths import DataDir
from tests.machines.heads import Head, beat

MEGABYTE = 1 << 20


@pytest.fixture
def head(tmp_path: Path) -> Iterator[Head]:
    one = Head(tmp_path)
    yield one
    one.close()


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def in_threads(many: int, work: Callable[[], object]) -> None:
    for _ in range(many):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()


def test_threads_of_ended_runs_leave_no_connection_open(head: Head):
    link = head.link("desk")
    in_threads(2, lambda: link.call("POST", "/beat", content=beat()))
    before = descriptors()
    in_threads(30, lambda: link.call("POST", "/beat", content=beat()))
    assert descriptors() - before < 5, "one of each thread would be 30 here and 30 at the head"


def test_many_requests_at_once_leave_a_few_connections_open(head: Head):
    link = head.link("desk")
    together = threading.Barrier(24)

    def ask() -> None:
        together.wait(20.0)
        link.call("POST", "/beat", content=beat())

    threads = [threading.Thread(target=ask) for _ in range(24)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(30.0)
    assert len(link._open) <= 8


def test_a_bell_that_rings_after_the_end_writes_into_no_other_file(head: Head, tmp_path: Path):
    head.machine("desk")
    run = head.taken(1, "desk")
    proxy = RunProxy(head.board.context, head.placed(run), head.board.data.runs / run.name)
    writing = proxy._writing
    assert writing is not None
    with proxy.open():
        proxy.ring()
    innocent = (tmp_path / "innocent").open("wb")
    # As the next file that this process opens may get it.
    os.dup2(innocent.fileno(), writing)
    try:
        proxy.ring()
        assert (tmp_path / "innocent").read_bytes() == b""
    finally:
        os.close(writing)
        innocent.close()


def _peak(work: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_large_pack_travels_both_ways_without_being_held_in_memory(head: Head):
    """The pack is many pieces long; each side holds one piece or two."""
    board, link = head.board, head.link("desk")
    board.repository.git("checkout", "--quiet", "-b", "large")
    (board.repository.root / "large.bin").write_bytes(os.urandom(60 * MEGABYTE))
    board.repository.git("add", "large.bin")
    board.repository.git("commit", "--quiet", "-m", "large")
    large = board.repository.git("rev-parse", "large")
    board.context.hub(1).fetch_branch(board.repository.root / ".git", "large")
    run = head.taken(1, "desk")
    small = packs.job_of(board.context, run.name)
    big = replace(small, base=large, target=large)
    data = DataDir(head.folder / "machine-desk")
    (data.runs / run.name).mkdir(parents=True)
    travels = board.data.runs / run.name / FILE
    travels.write_text(json.dumps(big.to_json()))
    to_machine = _peak(lambda: Mirrors(data, link).prepare(big))
    travels.write_text(json.dumps(small.to_json()))
    hub = Hub(data.project(1) / "hub.git")
    assert hub.target() == large
    to_head = _peak(lambda: mirror.send(link, hub, small, data.runs / run.name, large, late=False))
    arrived = board.data.runs / run.name / PACK
    assert arrived.stat().st_size > 55 * MEGABYTE
    taken = _peak(lambda: machine_packs.take(board.context.hub(1), arrived, base=small.base, head=large))
    # Both ends are in this process, each with copies of a piece.
    assert max(to_machine, to_head, taken) < 50 * MEGABYTE, [to_machine, to_head, taken]
