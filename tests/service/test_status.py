"""What `legion status`, `collect` and `doctor` report about red checks, setups and providers, with a next step."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from legion.client.text.catalog import setting_rows
from legion.client.text.tickets import about
from legion.config.files.user import CurrentSettings, UserConfig
from legion.config.sections.environment import PersonalEnvironment
from legion.domain.checks import CheckResult, Receipt
from legion.domain.errors import StateConflict
from legion.domain.events import EventKind
from legion.domain.takeovers import Takeover, TakeoverStage
from legion.domain.tickets.ticket import Park, ParkReason, Start, State
from legion.jobs.landing.queue import refuse_upstream
from legion.service.entry.tools.tickets import MARKS
from legion.service.providers.probe import unreachable
from legion.service.views import installation
from legion.service.views.ticket_line import TicketLines
from legion.store.board import projects, receipts, tickets
from legion.store.work import runs, takeovers
from legion.wire.board import ProjectLine
from legion.wire.projects import Where
from tests.store.making import add_ticket
from tests.support.board import Board


@pytest.fixture(scope="module")
def one_board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Board]:
    one = Board(tmp_path_factory.mktemp("status"))
    yield one
    one.close()


@pytest.fixture
def board(one_board: Board) -> Board:
    one_board.reset()
    return one_board


def line(board: Board) -> ProjectLine:
    found = board.service.status(board.cwd, False).project
    assert found is not None
    return found


def red(board: Board, commit: str) -> Receipt:
    with board.store.write() as tx:
        return receipts.add(
            tx,
            project=1,
            ticket=None,
            name="test",
            command="make test",
            commit=commit,
            tree="t" * 40,
            verdict=CheckResult.RED,
            exit_code=2,
            duration=1.0,
            tail="collected 3 items\nE   assert 1 == 2\n\n",
            output="runs/check-test/output",
            digest="",
        )


def says_what_failed(board: Board, text: str) -> bool:
    place = board.data.root / "runs/check-test/output"
    return (
        f"`make test` ended with exit code 2, after: E   assert 1 == 2 (`less {place}` shows all of its output)" in text
    )


def test_a_red_target_shows_its_output_and_the_next_step(board: Board):
    red(board, board.base)
    with board.store.write() as tx:
        known = replace(projects.get(tx, 1), baseline_commit=board.base, baseline_verdict=CheckResult.RED)
        projects.save(tx, known, EventKind.BASELINE_RED, {})
        ticket = add_ticket(tx, 1).id
        tickets.move(tx, ticket, Start(board.base))
        tickets.move(tx, ticket, Park(ParkReason.RED_BASELINE, "the target itself fails `make test`"))
    notes = line(board).notes
    assert any("fix that on main and commit" in note for note in notes)
    assert any(says_what_failed(board, note) for note in notes)
    (parked,) = board.service.status(board.cwd, False).tickets
    assert "`legion status` shows what fails" in parked.doing


def test_red_commits_of_the_person_show_their_output_and_nothing_says_collect(board: Board):
    tip = board.repository.commit("mine", {"mine.txt": "mine\n"})
    failed = red(board, tip)
    with board.store.write() as tx:
        projects.save(tx, replace(projects.get(tx, 1), person_tip=tip), EventKind.PERSON_SEEN, {})
    assert not line(board).collectable, "they are being checked"
    refuse_upstream(board.context, board.context.project(1), "your commits fail it", "fix it", because=[failed])
    assert not line(board).collectable
    assert any(says_what_failed(board, note) for note in line(board).notes)
    with pytest.raises(StateConflict) as refused:
        board.service.collect(Where(cwd=board.cwd))
    assert says_what_failed(board, refused.value.message)


def test_an_agent_whose_setup_runs_is_not_at_work(board: Board):
    board.put(1, state="working")
    run = board.run(1, ended=False)
    assert board.service.status(board.cwd, False).tickets[0].doing == "agent starts"
    with board.store.write() as tx:
        text = projects.get(tx, 1).config_text
        with_setup = replace(projects.get(tx, 1), config_text=f'{text}[setup]\nrun = "make deps"\n')
        projects.save(tx, with_setup, EventKind.TARGET_MOVED, {})
    line = board.service.status(board.cwd, False).tickets[0]
    with board.store.read() as tx:
        started_at = runs.get(tx, run).started_at
    assert (line.doing, line.doing_since) == ("[setup] runs", started_at)
    board.prepare(run)
    line = board.service.status(board.cwd, False).tickets[0]
    assert (line.doing, line.doing_since) == ("agent at work", started_at)
    assert about(replace(line, doing_since=time.time() - 61)).endswith("agent at work, 1m 01s")


def test_who_waits_for_an_agent_and_who_is_at_it_is_said(board: Board):
    board.put(1, state="working")
    run = board.run(1, ended=False)
    board.prepare(run)

    def doing(asked: Takeover) -> str:
        with board.store.write() as tx:
            takeovers.put(tx, asked)
        return board.service.status(board.cwd, False).tickets[0].doing

    waits = Takeover(ticket=1, alone=run)
    assert doing(waits) == "a person waits for a safe moment to take over"
    assert doing(replace(waits, stage=TakeoverStage.WITHDRAWN)) == "agent at work"
    assert doing(replace(waits, alone=run - 1)) == "a person works with its agent"


def test_a_settings_file_that_is_refused_is_named_with_the_settings(board: Board):
    settings = CurrentSettings(UserConfig())
    settings.complaint = "In config.toml, line 9, `daemon.slots` must be at most 1024."
    found = installation.config(replace(board.context, settings=settings), board.cwd)
    assert found.complaint == settings.complaint
    assert setting_rows(found, 100, explain=False)[0].text == f"Not in force: {found.complaint}"


def test_a_ticket_that_waits_for_room_on_the_disk_says_so(board: Board):
    waiting = board.put(1)
    config = UserConfig(environment=PersonalEnvironment(free_mb=100_000_000))
    with board.store.read() as tx:
        lines = TicketLines(replace(board.context, settings=CurrentSettings(config)), tx, [waiting])
        assert lines.line(waiting).doing == "waits for free space on the disk: `legion doctor` says more"


def test_a_provider_that_accepts_no_connection_is_unreachable():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert unreachable(f"http://127.0.0.1:{port}/v1") == ""
    assert unreachable(f"http://127.0.0.1:{port}/v1") == "Connection refused"
    assert unreachable("http://name.invalid") != ""


def test_every_state_has_a_mark_and_only_waiting_tickets_look_queued():
    assert set(MARKS) == {state.value for state in State}
    assert {state for state, mark in MARKS.items() if mark == MARKS["queued"]} == {"draft", "queued"}
