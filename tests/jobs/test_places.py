"""The head and its machines as placement sees them, from rows; and a ticket that waits for a machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

import pytest
from sqlalchemy import update

from legion.domain.agents.teams import Crew, Role, RolePart, TeamStage
from legion.domain.checks import CheckResult
from legion.domain.machines.machine import MachineState
from legion.domain.machines.placement import PlaceState
from legion.domain.scheduling.decide import JobKind
from legion.domain.tickets.ticket import State
from legion.jobs.machine_runs import placements
from legion.jobs.scheduling import throttle
from legion.jobs.scheduling.scheduler import Scheduler
from legion.store.board import crews, projects
from legion.store.database import schema
from legion.store.work import claims, machines
from tests.support.board import Board


@pytest.fixture(scope="module")
def one_board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Board]:
    one = Board(tmp_path_factory.mktemp("places"))
    yield one
    one.close()


@pytest.fixture
def board(one_board: Board) -> Board:
    one_board.reset()
    return one_board


def join(board: Board, name: str, *labels: str, slots: int = 2, quiet_hours: str = "") -> None:
    with board.store.write() as tx:
        code = machines.invite(tx, name=name, labels=labels, slots=slots, quiet_hours=quiet_hours, seconds=60)
        assert machines.join(tx, code, boot="b", version="1", protocol=1, toolchain="t1") is not None


def test_a_machine_as_a_place(board: Board):
    now = datetime(2026, 1, 1, 23, 30).astimezone().timestamp()
    join(board, "gpu1", "gpu", slots=3)
    join(board, "night", quiet_hours="22:00-07:00")
    for name in ("paused", "silent", "old"):
        join(board, name)
    with board.store.write() as tx:
        machines.set_state(tx, "paused", MachineState.PAUSED)
        table = schema.machines
        tx.execute(update(table).values(heard_at=now - 30, mirrors=[1]))
        tx.execute(update(table).where(table.c.name == "silent").values(heard_at=now - 90))
        tx.execute(update(table).where(table.c.name == "old").values(protocol=-5))
    at = {(JobKind.RUN, 1): "gpu1", (JobKind.REVIEW, 2): "gpu1", (JobKind.CHECK, 3): "gpu1", (JobKind.PLAN, 4): "here"}
    context = replace(board.context, machine="here")
    with board.store.read() as tx:
        head, *others = placements.places(context, tx, at, now)
    assert (head.name, head.head, head.slots, head.builders, head.readers) == ("here", True, 32, 0, 1)
    gpu = others[0]
    assert (gpu.labels, gpu.mirrors) == (frozenset({"gpu"}), frozenset({1}))
    assert (gpu.slots, gpu.builders, gpu.readers) == (3, 1, 1)
    assert {one.name: one.state for one in others} == {
        "gpu1": PlaceState.OPEN,
        "night": PlaceState.QUIET,
        "paused": PlaceState.PAUSED,
        "silent": PlaceState.SILENT,
        "old": PlaceState.OUTDATED,
    }
    assert others[1].quiet_until == now + 7.5 * 3600


def test_labels_of_the_role_that_works_next(board: Board):
    roles = [Role(name="lead", part=RolePart.ADVISE, on=("macos",)), Role(name="dev", part=RolePart.BUILD)]
    crew = Crew(team="pair", stages=tuple(TeamStage(role=role, part=role.part) for role in roles))
    with board.store.write() as tx:
        digest = crews.keep(tx, crew)
        assert crews.get(tx, digest) == crew
    waiting = [board.put(1, crew=digest), board.put(2)]
    with board.store.read() as tx:
        assert throttle.role_labels(tx, waiting) == {(JobKind.RUN, 1): {"macos"}}


def test_a_ticket_waits_for_a_machine_with_its_label_and_says_so(board: Board):
    board.put(1, on=["gpu"])
    with board.store.write() as tx:
        project = projects.get(tx, 1)
        projects.save(tx, replace(project, baseline_commit=project.target, baseline_verdict=CheckResult.GREEN))
    scheduler = Scheduler(board.context)
    scheduler.decide_once()
    page = board.service.ticket(1)
    assert page.ticket.state == "parked"
    assert page.ticket.reason == "no machine has gpu: `legion machine invite NAME --labels gpu`"
    assert page.on == ["gpu"]
    join(board, "gpu1", "gpu", slots=1)
    with board.store.write() as tx:
        claims.claim(tx, JobKind.RUN, 4711, "gpu1")
    scheduler.decide_once()
    assert board.tickets[1].state is State.QUEUED


def test_the_page_of_a_ticket_says_where_its_job_runs_and_why(board: Board):
    board.put(1, state="working")
    assert (board.service.ticket(1).machine, board.service.ticket(1).placed_because) == ("", "")
    with board.store.write() as tx:
        claims.claim(tx, JobKind.RUN, 1, "gpu1", why="has gpu, 2 of 2 slots were free")
    page = board.service.ticket(1)
    assert (page.machine, page.placed_because) == ("gpu1", "has gpu, 2 of 2 slots were free")
