"""A second process serves machines for a head: either of the two is killed, and the machines dial the other one."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from sqlalchemy import delete, insert

from legion.daemon.machine_server import serve_machines
from legion.jobs.context import Context
from legion.jobs.machines.head_addresses import HeadAddresses
from legion.jobs.machines.travel import RelayDoor
from legion.machine.link import HeadLink, HeadUnreachable
from legion.machine.membership import known_heads, remember_heads
from legion.service.machines.dial_in import SecondHead
from legion.store.database import schema
from legion.store.database.transactions import Store, sqlite_url
from legion.store.staff import tokens
from tests.machines.heads import Head, beat
from tests.machines.workers import MachineHouse, WorkerProcess, machine_house
from tests.support.gates import Gate
from tests.support.legion import PATIENCE, SOURCE, Project, new
from tests.support.looking import until_seen
from tests.support.repository import Repository
from tests.support.warm import Forked, warm


@pytest.fixture
def house(tmp_path: Path) -> Iterator[MachineHouse]:
    with machine_house(tmp_path) as one:
        yield one


@pytest.fixture
def gate(house: MachineHouse) -> Iterator[Gate]:
    made = Gate(house.folder / "gates", "both")
    yield made
    made.close()


@pytest.fixture
def second(house: MachineHouse) -> Iterator[Forked]:
    house.invite("opens-the-address")
    env = {name: value for name, value in os.environ.items() if not name.startswith("LEGION_")}
    env |= {"PYTHONPATH": str(SOURCE), "LEGION_CONFIG": str(house.head.settings)}
    words = ["serve", "--machines", "--host", "127.0.0.1", "--data-dir", str(house.head.data.root)]
    reading, writing = os.pipe()
    with (house.folder / "second.log").open("wb") as log:
        process = warm(SOURCE).start("legion", words, env, house.folder, {1: writing, 2: log.fileno()})
    os.close(writing)
    with os.fdopen(reading, "rb") as said:
        try:
            line = said.readline()
            assert b"Machines can dial https://127.0.0.1:" in line, (house.folder / "second.log").read_text()
            yield process
        finally:
            process.kill()
            process.wait()


def test_machines_of_a_killed_head_dial_the_other_and_every_ticket_lands_once(
    house: MachineHouse, gate: Gate, second: Forked
):
    project = house.head.adopt(Repository(house.folder / "ada"))
    (other,) = HeadAddresses(house.head.data).others()
    port = int(other.rpartition(":")[2])
    pair = [house.worker(name, labels=["pair"], slots=1) for name in ("one", "two")]
    until_seen(house.head, lambda: sorted(_dials(one, port) for one in pair) == [False, True], "a machine on each")
    there = next(one for one in pair if _dials(one, port))

    # The head is away: runs of both machines end, and their reports arrive at the second one.
    first = _dispatch(project, gate, "head")
    assert house.head.process is not None
    house.head.kill()
    gate.open(len(pair))
    _until(second, lambda: sum(_reported(one) for one in pair) == len(pair))
    house.head.start()
    _assert_landed_once(project, first, house)

    # The second one is away: its machine continues at the head.
    more = _dispatch(project, gate, "second")
    assert _dials(there, port), there.log[-2000:]
    second.kill()
    gate.open(len(pair))
    _assert_landed_once(project, more, house)
    assert not _dials(there, port)


@pytest.fixture
def board(tmp_path: Path) -> Iterator[Head]:
    one = Head(tmp_path)
    yield one
    one.close()


@pytest.fixture
def context(board: Head) -> Iterator[Context]:
    """Of another process: with a store of its own."""
    store = Store(sqlite_url(board.board.data.database))
    yield replace(board.board.context, store=store)
    store.close()


def test_a_process_with_another_folder_than_the_heads_serves_no_machine(board: Head, context: Context):
    data = board.board.data
    desk = board.machine("desk")
    address, server, _ = serve_machines(data, SecondHead(context, host="here"), "127.0.0.1", 0)
    link = HeadLink(address.url, authority=desk.authority, token=desk.token)
    for leased, of_folder, serves in ((0, "", False), (3, "", False), (3, "3", True), (4, "3", False), (4, "4", True)):
        _lease(board, leased, "here:/data")
        data.head_generation.write_text(of_folder)
        if serves:
            assert link.call("POST", "/beat", content=beat()).json()["jobs"] == []
        else:
            with pytest.raises(HeadUnreachable, match="cannot answer now"):
                link.call("POST", "/beat", content=beat())
    link.close()
    _lease(board, 5, "here:/another")
    pair = HeadLink(board.url, authority=desk.authority, token=desk.token, others=[address.url])
    with pytest.raises(HeadUnreachable, match="cannot answer now"):
        pair.call("POST", "/beat", content=beat())
    assert pair.call("POST", "/beat", content=beat()).json()["jobs"] == [], "the head itself answers"
    pair.close()
    server.stop()


def test_model_requests_on_another_host_go_through_the_address_of_the_head(board: Head, context: Context):
    second = SecondHead(context, host="there")
    _lease(board, 3, "here:/data")
    board.board.data.head_generation.write_text("3")
    desk = second.machine(board.machine("desk").token)
    run = board.taken(1, "desk")
    base = f"{board.url}/machine/v1/runs/{run.name}/{run.generation}"
    with board.board.store.write() as tx:
        token = tokens.issue(tx, run=run.id, ticket=run.ticket)
    for door, path in ((RelayDoor.GATEWAY, "/v1/messages"), (RelayDoor.TOOLS, "/v1/tools/legion-ask")):
        url = second.relayed(
            desk,
            run=run.name,
            generation=run.generation,
            door=door,
            method="POST",
            path=path,
            headers={"authorization": f"Bearer {token}"},
        )
        assert url == f"{base}/{door.value}{path}"


def test_a_machine_learns_all_addresses_and_dials_the_next_one_when_its_own_does_not_answer(
    board: Head, context: Context, tmp_path: Path
):
    desk = board.machine("desk")
    link = desk.link(tmp_path)
    assert link.call("POST", "/beat", content=beat()).json()["heads"] == []
    address, server, _ = serve_machines(board.board.data, SecondHead(context, host="h"), "127.0.0.1", 0)
    server.stop()
    with HeadAddresses(board.board.data).added(address):
        heads = link.call("POST", "/beat", content=beat()).json()["heads"]
    assert link.call("POST", "/beat", content=beat()).json()["heads"] == []
    assert sorted(heads) == sorted([board.url, address.url])
    assert link.know([address.url, board.url])
    assert not link.know([board.url, address.url]), "the same addresses: the machine stays where it is"
    remember_heads(tmp_path, [address.url, board.url])
    again = desk.link(tmp_path)
    assert known_heads(tmp_path) == [address.url, board.url]
    for one in (link, again):
        with pytest.raises(HeadUnreachable):
            one.call("POST", "/beat", content=beat())
        assert one.url == board.url
        one.call("POST", "/beat", content=beat())
        one.close()


def _lease(board: Head, generation: int, holder: str) -> None:
    with board.board.store.write() as tx:
        tx.execute(delete(schema.head_leases))
        if generation:
            row = {"id": 1, "holder": holder, "generation": generation, "until": 0.0}
            tx.execute(insert(schema.head_leases).values(row))


def _dispatch(project: Project, gate: Gate, name: str) -> list[int]:
    """A ticket for each of the two machines."""
    command = f"{gate.pause}; seq 5000 > {name}-$LEGION_TICKET.txt; seq 2000"
    tickets = project.dispatch_all([new(f"{name} {n}", command, on=["pair"]) for n in range(2)])
    gate.arrived(len(tickets))
    return tickets


def _assert_landed_once(project: Project, tickets: list[int], house: MachineHouse) -> None:
    project.until_settled(*tickets)
    pages = [project.ticket(one) for one in tickets]
    outcomes = [[(run.attempt, run.outcome) for run in page.runs] for page in pages]
    assert outcomes == [[(1, "finished")]] * len(tickets), (house.head.log[-3000:], outcomes)
    history = project.history()
    assert [history.count(page.ticket.title) for page in pages] == [1] * len(tickets)
    assert all(project.log(one).split()[-1] == "2000" for one in tickets)


def _until(second: Forked, holds: Callable[[], bool]) -> None:
    """Look again and again while the second one lives: the head does not."""
    process = os.pidfd_open(second.pid)
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert not select.select([process], [], [], 0.1)[0], "the second one died"
        assert time.monotonic() < deadline, "no machine has reported to the second one"
    os.close(process)


def _dials(worker: WorkerProcess, port: int) -> bool:
    assert worker.process is not None
    found = psutil.Process(worker.process.pid).net_connections("tcp")
    return any(one.status == psutil.CONN_ESTABLISHED and one.raddr.port == port for one in found)


def _reported(worker: WorkerProcess) -> int:
    return len(list(worker.data.glob("runs/*/reported.json")))
