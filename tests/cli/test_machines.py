"""`legion machine list` and `legion machine`: the list, the log, and what pause, drain, update and remove do."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from legion.cli.machines.command import machine_folder
from legion.domain.machines.machine import PROTOCOL, CommandKind, Machine, PlacementState
from legion.store.work import machines, runs
from tests.cli.conftest import Ended
from tests.support.board import Board

Run = Callable[..., Ended]


def join(board: Board, name: str, protocol: int = PROTOCOL, version: str = "0.2.0", quiet_hours: str = "") -> Machine:
    with board.store.write() as tx:
        code = machines.invite(tx, name=name, labels=["gpu", "macos"], slots=8, quiet_hours=quiet_hours, seconds=60)
        joined = machines.join(tx, code, boot="b", version=version, protocol=protocol, toolchain="t")
    assert joined is not None
    return joined[1]


def give(board: Board, machine: Machine, ticket: int) -> int:
    board.put(ticket, f"Ticket {ticket}", "working")
    run = board.run(ticket, ended=False)
    with board.store.write() as tx:
        machines.place(tx, runs.get(tx, run), machine)
    return run


def listed(legion: Run) -> dict[str, dict[str, object]]:
    return {one["name"]: one for one in json.loads(legion("machines", "--json").out)["machines"]}


def test_a_head_alone_says_how_to_get_a_machine(legion: Run, board: Board):
    shown = legion("machines").out
    assert board.context.machine in shown
    assert "`legion machine invite NAME`" in shown


def test_machines_are_listed_with_what_each_is_good_for(legion: Run, board: Board):
    join(board, "desk", quiet_hours="00:00-23:59")
    join(board, "mini", protocol=PROTOCOL + 2, version="0.9.0")
    shown = legion("machines").out
    assert all(word in shown for word in ("desk", "quiet hours", "0/8", "gpu, macos", "heard ", "mini", "outdated"))
    assert "mini: its Legion 0.9.0 is too new for this one: update the head." in shown
    found = listed(legion)
    assert [one["head"] for one in found.values()] == [True, False, False]
    assert [found[name]["state"] for name in ("desk", "mini")] == ["quiet", "outdated"]


def test_a_machine_is_paused_drained_and_resumed(legion: Run, board: Board):
    desk = join(board, "desk")
    give(board, desk, 1)
    assert "1 run there will continue to the end." in legion("machine", "pause", "desk").out
    assert listed(legion)["desk"]["state"] == "paused"
    assert "`legion machine resume desk`" in legion("machines").out
    assert "is draining" in legion("machine", "drain", "desk").out
    assert listed(legion)["desk"]["state"] == "draining"
    assert legion("machine", "resume", "desk").out == "desk takes new runs.\n"
    assert listed(legion)["desk"]["state"] == "open"


def test_a_machine_with_runs_is_removed_only_on_purpose_and_its_runs_lapse_with_it(legion: Run, board: Board):
    desk = join(board, "desk")
    run = give(board, desk, 1)
    refused = legion("machine", "remove", "desk")
    assert (refused.code, "`legion machine drain desk` first, or add --yes." in refused.err) == (5, True)
    assert listed(legion)["desk"]["state"] == "open"
    assert "1 run of it will start again elsewhere." in legion("machine", "remove", "desk", "--yes").out
    assert "desk" not in listed(legion)
    with board.store.read() as tx:
        placed = machines.placed(tx, run)
    assert placed is not None
    assert (placed.state, placed.why) == (PlacementState.LAPSED, "its machine was removed")
    assert legion("machine", "remove", "desk").code == 3


def test_an_update_is_one_request_however_often_it_is_asked_for(legion: Run, board: Board):
    desk = join(board, "desk")
    assert "Its runs continue." in legion("machine", "update", "desk").out
    legion("machine", "update", "desk")
    with board.store.read() as tx:
        (command,) = machines.commands(tx, desk.id)
    assert (command.kind, command.run) == (CommandKind.UPDATE, "")
    with board.store.write() as tx:
        machines.acknowledge(tx, desk.id, [command.id])
        assert machines.commands(tx, desk.id) == ()


def test_the_log_says_what_became_of_each_run(legion: Run, board: Board):
    desk = join(board, "desk")
    assert "It was given no runs yet." in legion("machine", "log", "desk").out
    first, second = give(board, desk, 1), give(board, desk, 2)
    with board.store.write() as tx:
        machines.move(tx, first, PlacementState.LAPSED, "it was not heard for 90 s")
        machines.move(tx, second, PlacementState.TAKEN)
    shown = legion("machine", "log", "desk").out
    assert "it was not heard for 90 s" in shown
    assert shown.index("ticket 1") < shown.index("ticket 2")
    (only,) = json.loads(legion("machine", "log", "desk", "-n", "1", "--json").out)["runs"]
    assert (only["ticket"], only["state"], only["why"]) == (2, "taken", "")


@pytest.mark.parametrize("verb", ["pause", "resume", "drain", "remove", "update", "log"])
def test_a_machine_that_is_not_there_gets_a_sentence(legion: Run, verb: str):
    ended = legion("machine", verb, "nope")
    assert (ended.code, ended.out) == (3, "")
    assert ended.err == "There is no machine nope: `legion machine list` lists them.\n"


def test_the_doctor_looks_at_each_machine(legion: Run, board: Board):
    join(board, "desk")
    join(board, "old", protocol=PROTOCOL - 2, version="0.0.1")
    findings = {one["name"]: one for one in json.loads(legion("doctor", "--json").out)["findings"]}
    assert findings["machine desk"]["ok"]
    assert "0 of 8 slots" in findings["machine desk"]["detail"]
    assert not findings["machine old"]["ok"]
    assert "legion machine update old" in findings["machine old"]["advice"]


def test_a_head_on_sqlite_names_the_command_that_moves_it(legion: Run):
    refused = legion("machine", "invite", "desk", "--host", "127.0.0.1")
    assert (refused.code, refused.out) == (4, "")
    assert "legion machine head move postgresql://" in refused.err


def test_joining_without_a_line_needs_one(legion: Run, tmp_path: Path):
    refused = legion("join", "--data-dir", str(tmp_path / "m"))
    assert (refused.code, refused.out) == (2, "")
    assert "`legion machine invite`" in refused.err


def test_a_machine_has_a_folder_of_its_own_unless_one_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("LEGION_DATA_DIR", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert machine_folder(tmp_path / "legion") == tmp_path / "legion-machine"
    assert machine_folder(tmp_path / "other") == tmp_path / "other"
    monkeypatch.setenv("LEGION_DATA_DIR", str(tmp_path / "legion"))
    assert machine_folder(tmp_path / "legion") == tmp_path / "legion"
