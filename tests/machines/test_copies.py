"""A machine's folder that was copied to a second host: two workers with one token."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from legion.domain.events import EventKind
from legion.domain.machines.machine import MachineState
from legion.domain.notifications import may_be_one
from legion.store import events
from legion.store.work import machines
from tests.machines.heads import Head, beat
from tests.support.attacks import Attacker, Door, attack


@pytest.fixture
def head(tmp_path: Path) -> Iterator[Head]:
    one = Head(tmp_path)
    yield one
    one.close()


@attack(Attacker.MACHINE, Door.RIGHTS)
def test_two_workers_with_one_token_are_noticed_and_get_no_more_runs(head: Head):
    link = head.link("desk")

    def state(*workers: str) -> MachineState:
        for worker in workers:
            link.call("POST", "/beat", content={**beat(), "worker": worker})
        with head.board.store.read() as tx:
            return machines.get(tx, "desk").state

    assert state("a", "a", "b", "b", "c") is MachineState.ACTIVE, "restarts are no copies"
    assert state("b", "c") is MachineState.ACTIVE, "a beat may be late"
    assert state("b") is MachineState.PAUSED
    with head.board.store.read() as tx:
        (moved,) = [one for one in events.after(tx, 0) if one.kind is EventKind.MACHINE_STATE]
    assert "two workers call themselves machine desk" in str(moved.data["reason"])
    assert may_be_one(moved)
