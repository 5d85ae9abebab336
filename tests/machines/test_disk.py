"""A machine whose disk is full: it goes on, takes nothing new, stops the run that fills it, and heals."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from legion.config.files.user import CurrentSettings, UserConfig
from legion.config.sections.environment import PersonalEnvironment
from legion.domain.events import EventKind
from legion.domain.machines.machine import MachineState, PlacementState
from legion.domain.machines.placement import PlaceState
from legion.domain.notifications import NotificationKind, may_be_one, occasions
from legion.domain.runs import Run
from legion.jobs.machine_runs import placements
from legion.jobs.machine_runs.ends import Reaper
from legion.jobs.workspace.quota import QuotaExceeded
from legion.machine.link import HeadRefused
from legion.service.machines import listing, steer
from legion.service.machines.listing import machine_list
from legion.store import events
from legion.store.work import machines
from legion.system import capacity
from legion.system.capacity import DiskReserve
from tests.machines.heads import Head, beat
from tests.machines.test_dial_in import of
from tests.machines.workers import WorkerProcess, machine_house
from tests.support.attacks import Attacker, Door, attack
from tests.support.looking import until_seen
from tests.support.repository import CHECK, Repository


@pytest.fixture
def head(tmp_path: Path) -> Iterator[Head]:
    one = Head(tmp_path)
    yield one
    one.close()


def test_a_machine_with_a_full_disk_takes_nothing_and_says_so(head: Head):
    link = head.link("desk")

    def state(free: int | None) -> str:
        link.call("POST", "/beat", content={**beat(), "disk_free_mb": free, "disk_floor_mb": 200})
        (line,) = [one for one in machine_list(head.board.context).machines if not one.head]
        (finding,) = [one for one in listing.findings(head.board.context) if one.name.startswith("machine ")]
        with head.board.store.read() as tx:
            (_, place) = placements.places(head.board.context, tx, {}, head.board.context.clock())
        assert (place.state is PlaceState.OPEN) == finding.ok == (line.advice == "")
        assert finding.advice == line.advice
        return line.state

    assert [state(free) for free in (199, 0, 200, 10**7, None)] == ["disk full", "disk full", "open", "open", "open"]
    state(3)
    with head.board.store.commits() as committed:
        state(2)
        assert not committed.is_set()
        state(300)
        assert committed.is_set(), "a ticket may be parked until then"
    with head.board.store.read() as tx:
        found = [one.data for one in events.after(tx, 0) if one.kind is EventKind.MACHINE_STATE]
    full, open = (
        {"machine": "desk", "from": "open", "to": "disk full"},
        {"machine": "desk", "from": "disk full", "to": "open"},
    )
    assert found == [full, open, full, open], "a state that may be over before a person looks"


def test_a_head_with_a_full_disk_starts_nothing(head: Head):
    free = capacity.free_mb(head.board.data.root)
    config = UserConfig(environment=PersonalEnvironment(free_mb=free + 10_000))
    context = replace(head.board.context, settings=CurrentSettings(config))
    with head.board.store.read() as tx:
        (place,) = placements.places(context, tx, {}, context.clock())
    assert place.state is PlaceState.FULL
    assert machine_list(context).machines[0].state == "disk full"


def test_the_reserve_takes_room_until_it_is_needed(tmp_path: Path):
    reserve = DiskReserve(tmp_path / "reserve")
    reserve.keep()
    reserve.keep()
    assert (tmp_path / "reserve").stat().st_blocks * 512 >= 8 << 20
    assert reserve.release()
    assert not reserve.release()


class Losing:
    """A machine whose runs come to no good end."""

    def __init__(self, head: Head) -> None:
        self.head = head
        self.link = head.link("desk")
        self.clock = 0.0
        self.reaper = Reaper(head.board.context, clock=lambda: self.clock)
        self.runs = 0

    def take(self) -> Run:
        self.runs += 1
        return self.head.taken(self.runs, "desk")

    def be_silent(self) -> None:
        self.reaper.look()
        self.clock += 1000.0
        self.reaper.look()

    def end(self, **facts: object) -> None:
        self.link.call("POST", of(self.take(), "end"), content=facts)

    def state(self) -> MachineState:
        with self.head.board.store.read() as tx:
            return machines.get(tx, "desk").state


@pytest.mark.parametrize("how", ["silent", "failed", "unsaved", "mixed"])
def test_a_machine_that_loses_runs_again_and_again_is_paused_and_the_person_is_notified(head: Head, how: str):
    losing = Losing(head)
    for number in range(3):
        assert losing.state() is MachineState.ACTIVE
        kind = ("silent", "failed", "unsaved")[number] if how == "mixed" else how
        if kind == "silent":
            losing.take()
            losing.take()
            losing.be_silent()
        else:
            losing.end(**({"failed": "no room"} if kind == "failed" else {"unsaved": "no room"}))
    assert losing.state() is MachineState.PAUSED
    with head.board.store.read() as tx:
        (moved,) = [one for one in events.after(tx, 0) if one.kind is EventKind.MACHINE_STATE]
    assert "lost runs 3 times in a row" in str(moved.data["reason"])
    assert may_be_one(moved)
    assert occasions(moved, parked=None, live=1) == (NotificationKind.QUESTION,)
    (finding,) = [one for one in listing.findings(head.board.context) if one.name.startswith("machine ")]
    assert not finding.ok
    assert "legion machine resume desk" in finding.advice
    steer.resume(head.board.context, "desk")
    losing.end(failed="no room")
    assert losing.state() is MachineState.ACTIVE, "it starts anew"


def test_a_good_end_and_a_failed_setup_do_not_count_as_losses(head: Head):
    losing = Losing(head)
    for _ in range(4):
        losing.end(failed="no room")
        losing.end(failed="make: *** [deps]", setup_failed=True)
        losing.end(unsaved="no room", over_quota=[300, 0])
    assert losing.state() is MachineState.ACTIVE


def test_runs_that_are_lost_together_count_once(head: Head):
    losing = Losing(head)
    for _ in range(4):
        losing.take()
    losing.be_silent()
    with head.board.store.read() as tx:
        assert machines.get(tx, "desk").lost == 1
        assert {one.state for one in machines.history(tx, 1, 9)} == {PlacementState.LAPSED}


def test_a_beat_with_an_absurd_disk_is_refused_or_bounded(head: Head):
    link = head.link("desk")
    link.call("POST", "/beat", content={**beat(), "disk_free_mb": 10**30, "disk_floor_mb": -5})
    with pytest.raises(HeadRefused):
        link.call("POST", "/beat", content={**beat(), "disk_free_mb": "much"})


def test_a_run_that_was_stopped_for_a_full_disk_says_so():
    stopped = QuotaExceeded(bytes=300 << 20, limit=0)
    assert stopped.reason == "the disk was full, and its worktree and temp folder held the most, 300 MB"
    assert "the disk was full" in stopped.feedback


def _can_mount() -> bool:
    tried = ["unshare", "-m", "true"]
    return os.geteuid() == 0 and subprocess.run(tried, capture_output=True, check=False).returncode == 0


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """60 MB."""
    place = tmp_path / "small"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=60m", "small", place], check=True)
    yield place
    subprocess.run(["umount", "-l", place], check=True)


@attack(Attacker.AGENT, Door.BOUNDS)
@pytest.mark.skipif(not _can_mount(), reason="only root can mount a small disk")
@pytest.mark.timeout(300)
def test_an_agent_that_fills_the_disk_is_stopped_and_the_machine_heals(tmp_path: Path, small_disk: Path):
    with machine_house(tmp_path / "house", lease=60.0) as house:
        line = house.invite("small", labels=["small"])
        settings = "[environment]\nfree_mb = 16\n"
        worker = house.workers["small"] = WorkerProcess(small_disk / "host", line, settings=settings).start()
        until_seen(house.head, lambda: worker.has_joined or worker.has_ended, "the machine")
        project = house.head.adopt(Repository(tmp_path / "shop", CHECK))

        def is_now(state: str) -> bool:
            return any((one.name, one.state) == ("small", state) for one in house.head.client.machines().machines)

        ticket = project.dispatch("Fill", "head -c 80000000 /dev/urandom > junk; sleep 600", on=["small"])
        next(line for line in house.head.client.events(0) if line is not None and line.data.get("to") == "disk full")
        until_seen(house.head, lambda: [run for run in project.ticket(ticket).runs if run.outcome], "its end")
        assert "disk was full" in project.ticket(ticket).runs[0].detail, worker.log[-6000:]
        house.head.client.stop(ticket)
        until_seen(house.head, lambda: is_now("open"), "that it has room again")
        assert not worker.has_ended, worker.log[-2000:]
        assert "Traceback" not in worker.log
        after = project.dispatch("After", "echo after > after.txt", on=["small"])
        project.until(after, "done")
