"""Machines as hosts with a network and a clock of their own, and a Postgres that dies under the head."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.machines.network import needs_namespaces, network
from tests.machines.workers import machine_house
from tests.support.gates import Gate
from tests.support.legion import new
from tests.support.looking import until_seen
from tests.support.postgres_keeper import Server, Trouble
from tests.support.repository import CHECK, Repository

MANY = 100
"""More runs than the tickets can need."""


@needs_namespaces()
@pytest.mark.timeout(300)
def test_tickets_land_from_hosts_with_clocks_of_their_own_while_one_cable_is_pulled(tmp_path: Path):
    with network() as net, machine_house(tmp_path / "house") as house:
        project = house.head.adopt(Repository(tmp_path / "shop", CHECK))
        gate = Gate(house.folder / "gates", "gate")
        # Their clocks show so many hours more than the head's.
        for hours, name in enumerate(("n1", "n2"), start=1):
            host = net.add(name)
            line = house.invite(name, labels=["far"], slots=1, host=net.address)
            house.join(name, line, host=(host.namespace, str(hours * 3600)))
        tickets = project.dispatch_all(
            [new(f"Ticket {n}", f"{gate.pause}; cat /proc/uptime > {n}.txt", on=["far"]) for n in range(2)]
        )
        at_the_gate: set[str] = set()
        # On a busy computer a lease may end by itself: such a run comes to the gate once more.
        while len(at_the_gate) < len(tickets):
            at_the_gate.update(gate.arrived())
        net.hosts["n2"].cut()
        # One lands at once; the other has to start again elsewhere.
        gate.open(MANY)
        far_log = house.head.client.machine_log
        until_seen(house.head, lambda: far_log("n2").runs[-1].state == "lapsed", "n2 lost its run")
        project.until_settled(*tickets)
        net.hosts["n2"].heal()
        assert {project.state(one) for one in tickets} == {"done"}
        assert sorted(title for title in project.history() if title.startswith("Ticket")) == ["Ticket 0", "Ticket 1"]
        ahead = float(Path("/proc/uptime").read_text().split()[0]) + 1800
        assert all(float((project.landed(f"{n}.txt") or "0").split()[0]) > ahead for n in range(2))
        until_seen(house.head, lambda: not house.workers["n2"].runners(), "nothing of the lost run is left")
        gate.close()


@pytest.mark.soak
def test_a_postgres_that_is_killed_costs_no_run(tmp_path: Path):
    with tempfile.TemporaryDirectory(prefix="legion-pg-") as folder:
        Path(folder).chmod(0o755)
        try:
            server = Server(Path(folder) / "own")
            server.start()
        except Trouble as missing:
            pytest.skip(str(missing))
        url = f"postgresql+psycopg://legion@/postgres?host={server.folder}"
        try:
            with machine_house(tmp_path / "house", lease=30.0, database=url) as house:
                project = house.head.adopt(Repository(tmp_path / "shop", CHECK))
                gate = Gate(house.folder / "gates", "gate")
                house.worker("m1", labels=["far"])
                ticket = project.dispatch("Kept", f"{gate.pause}; echo kept > kept.txt", on=["far"])
                gate.arrived()
                server.stop()
                gate.open()
                server.again()
                project.until(ticket, "done")
                assert project.landed("kept.txt") == "kept\n"
                assert len(project.ticket(ticket).runs) == 1
                gate.close()
        finally:
            server.stop()
