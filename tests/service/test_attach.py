"""A person asks for the conversation of an agent inside a long call: what is interrupted, and what giving up does."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from legion.domain.runs import Outcome, Run
from legion.domain.takeovers import Takeover, TakeoverStage
from legion.domain.tickets.ticket import Resume
from legion.drivers import InterruptRequest, Program
from legion.jobs.run import job
from legion.jobs.run.job import run_dir
from legion.jobs.supervise.wait import was_wheel
from legion.runner.journal import Journal
from legion.runner.spec import TERMINAL_SOCKET, RunSpec, write_spec
from legion.service.tickets import attach
from legion.store.board import tickets
from legion.store.work import runs, takeovers
from legion.wire.errors import StateConflict
from legion.wire.terminal import Attach, OpenTerminal
from tests.support.board import Board
from tests.support.listening_runner import listening

LATER = Attach(waited=60.0)
"""A later request of a person who has waited longer than a call may take."""


@pytest.fixture(scope="module")
def made() -> Iterator[Board]:
    with tempfile.TemporaryDirectory(prefix="legion-") as folder:
        board = Board(Path(folder))
        yield board
        board.close()


@pytest.fixture
def board(made: Board) -> Board:
    made.reset()
    made.put(1, "Slow", state="working")
    return made


def attach_once(board: Board, wanted: Attach) -> OpenTerminal:
    """A request that looks once."""
    return attach.attach(board.context, 1, wanted, patience=0.0)


def started(board: Board, *, wheel: bool = False) -> Run:
    """A run of ticket 1 whose agent is inside a call, or that opens for a person and has no terminal yet."""
    with board.store.write() as tx:
        run = runs.start(tx, 1, 1)
    folder = run_dir(board.context, run)
    folder.mkdir(parents=True)
    program = Program(argv=("agent",), cwd=folder, env={})
    options = {"wheel": True} if wheel else {}
    write_spec(folder, RunSpec(run=run.name, program=program, driver="claude", sandbox=None, options=options))
    if not wheel:
        journal = Journal(folder, lambda: None)
        journal.append("conversation", id="c")
        journal.append("begins", call="1", tool="Bash", input="make test")
    return run


def ended(board: Board, run: Run) -> Resume:
    """The run ends as interrupted, and the ticket's step is recorded as the run job does."""
    ticket = board.tickets[1]
    step = job.step_after(board.context, ticket, run, Outcome.INTERRUPTED)
    assert isinstance(step, Resume), "no attempt is used up, and the ticket does not wait for a person"
    held = run.id if was_wheel(board.context, run) else None
    with board.store.write() as tx:
        runs.end(tx, run.id, Outcome.INTERRUPTED)
        tickets.move(tx, 1, step)
        job.settle(tx, 1, held)
    return step


def asked_for(board: Board) -> Takeover | None:
    with board.store.read() as tx:
        return takeovers.of_ticket(tx, 1)


def test_only_the_run_that_worked_alone_is_interrupted_never_the_one_that_opens_for_the_person(board: Board):
    alone = started(board)
    with listening(run_dir(board.context, alone)) as asks:
        assert attach_once(board, Attach()).socket == ""
    assert asks == [], "its call has some time"
    with listening(run_dir(board.context, alone)) as asks:
        attach_once(board, LATER)
    assert asks == [InterruptRequest()]
    ended(board, alone)
    board.put(1, state="working")
    opens = started(board, wheel=True)
    with listening(run_dir(board.context, opens)) as asks:
        for _ in range(3):
            assert attach_once(board, LATER).socket == ""
        assert attach_once(board, Attach()).socket == "", "a second person waits for the same terminal"
    assert asks == []
    ended(board, opens)
    assert asked_for(board) is None
    board.put(1, state="working")
    again = started(board)
    with listening(run_dir(board.context, again)) as asks, pytest.raises(StateConflict, match="asks again"):
        attach_once(board, LATER)
    assert asks == [], "a request that has ended takes no further run"


def test_a_person_who_gives_up_in_time_interrupts_nothing(board: Board):
    alone = started(board)
    with listening(run_dir(board.context, alone)) as asks:
        attach_once(board, Attach())
        assert "works alone again" in board.service.give_back(1).message
    assert asks == []
    assert asked_for(board) is None


def test_a_person_who_gives_up_too_late_lets_the_agent_continue_alone(board: Board):
    alone = started(board)
    with listening(run_dir(board.context, alone)):
        attach_once(board, Attach())
        attach_once(board, LATER)
        board.service.give_back(1)
    assert "gave" in ended(board, alone).reason
    assert asked_for(board) is None


def test_a_terminal_that_opens_for_a_person_who_gave_up_is_ended_and_the_agent_continues(board: Board):
    alone = started(board)
    attach_once(board, Attach())
    ended(board, alone)
    ticket = board.put(1, state="working")
    opens = started(board, wheel=True)
    with listening(run_dir(board.context, opens)) as asks:
        with board.store.read() as tx:
            assert job.is_wanted(board.context, tx, ticket, opens)
        board.service.give_back(1)
        with board.store.read() as tx:
            assert not job.is_wanted(board.context, tx, ticket, opens)
    assert asks == [InterruptRequest()]
    ended(board, opens)
    assert asked_for(board) is None


def test_who_asks_again_after_giving_up_too_late_gets_the_conversation(board: Board):
    alone = started(board)
    with listening(run_dir(board.context, alone)):
        attach_once(board, Attach())
        attach_once(board, LATER)
        board.service.give_back(1)
        attach_once(board, Attach())
    ended(board, alone)
    wanted = asked_for(board)
    assert wanted is not None
    assert wanted.stage is TakeoverStage.CUT
    assert wanted.opens(alone.id + 1)


@pytest.mark.parametrize("how", ["waiting", "opening", "leaving"])
def test_a_second_person_gets_the_conversation_that_the_first_one_gives_up(board: Board, how: str):
    """Also in the moment in which what was interrupted or opened for the first one ends."""
    run = alone = started(board)
    attach_once(board, Attach())
    if how != "waiting":
        ended(board, alone)
        board.put(1, state="working")
        run = started(board, wheel=True)
    folder = run_dir(board.context, run)
    if how == "leaving":
        (folder / TERMINAL_SOCKET).touch()
    with listening(folder) as asks:
        board.service.give_back(1)
        assert attach_once(board, LATER).socket == "", "what ends for the first one opens for nobody else"
    assert InterruptRequest() in asks
    ended(board, run)
    again = board.put(1, state="working")
    opens = started(board, wheel=True)
    wanted = asked_for(board)
    assert wanted is not None
    assert wanted.opens(opens.id)
    with board.store.read() as tx:
        assert job.is_wanted(board.context, tx, again, opens)


def test_who_asks_between_two_runs_of_a_conversation_waits_for_the_next(board: Board):
    alone = started(board)
    with listening(run_dir(board.context, alone)):
        attach_once(board, Attach())
        attach_once(board, LATER)
        board.service.give_back(1)
    ended(board, alone)
    assert attach_once(board, Attach()).socket == ""
    assert asked_for(board) is not None


def test_a_driver_without_an_interactive_form_is_refused_and_nothing_is_recorded(board: Board):
    with board.store.write() as tx:
        run = runs.start(tx, 1, 1)
    folder = run_dir(board.context, run)
    folder.mkdir(parents=True)
    program = Program(argv=("agent",), cwd=folder, env={})
    write_spec(folder, RunSpec(run=run.name, program=program, sandbox=None))
    with listening(folder) as asks, pytest.raises(StateConflict, match="no interactive form"):
        attach_once(board, Attach())
    assert asks == []
    assert asked_for(board) is None
