"""A command acts on a ticket of the folder's project; one of another project is named and refused, or asked about."""

from __future__ import annotations

from pathlib import Path

import pytest

from legion.wire.operations import Operations
from legion.wire.plans import NewPlan
from legion.wire.projects import AddProject
from legion.wire.table import rows
from tests.api.serving import Served
from tests.support.board import Board
from tests.support.repository import Repository

COMMANDS = {
    "stop": ["stop", "1"], "retry": ["retry", "1"], "drop": ["drop", "1"], "undo": ["undo", "1"],
    "pause_ticket": ["pause", "1"], "resume_ticket": ["resume", "1"], "land": ["land", "1"],
    "rewind": ["rewind", "1", "--to", "1"], "review": ["review", "1"], "bounce": ["bounce", "1", "again"],
    "tell": ["tell", "1", "hello"], "interrupt": ["interrupt", "1"], "edit": ["edit", "1", "--priority", "3"],
    "move_in_queue": ["queue", "move", "1", "first"], "submit_ticket": ["submit", "1"], "checkout": ["checkout", "1"],
    "push": ["push", "1"], "split": ["split", "1"],
    "race": ["race", "1", "N=2"], "handoff": ["handoff", "1"], "pull": ["pr", "1"], "tried": ["test", "1"],
}  # fmt: skip
NEEDS_A_TERMINAL = {"attach", "shell", "give_back"}
"""Refused before any request without one."""


@pytest.fixture(scope="module")
def other(server: Served, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = Repository(tmp_path_factory.mktemp("second") / "other")
    server.board.service.add_project(AddProject(path=str(made.root)))
    return made.root


@pytest.fixture
def elsewhere(board: Board, other: Path, monkeypatch: pytest.MonkeyPatch) -> Board:
    """The person stands in another project than that of ticket 1."""
    board.put(1, "Tables for users", "working")
    monkeypatch.chdir(other)
    return board


def test_every_operation_that_acts_on_a_ticket_is_tried_here():
    acting = {one.name for one in rows(Operations).values() if "{id}/" in one.path and one.method != "GET"}
    of_tickets = {name for name in acting if rows(Operations)[name].path.startswith("/v1/tickets/")}
    assert of_tickets - NEEDS_A_TERMINAL == set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_ticket_of_another_project_is_refused_by_project_and_title(legion, elsewhere: Board, name: str):
    ended = legion(*COMMANDS[name])
    assert name not in elsewhere.callers.asked
    assert ended.code not in (0, 2), ended
    assert "Ticket 1 (Tables for users) is of project shop, not other. Run it in" in ended.err


@pytest.mark.parametrize(
    "words", [["answer", "3", "yes"], ["approve", "P1"], ["reject", "P1", "no"], ["plan", "drop", "P1"]]
)
def test_so_is_a_question_or_a_plan(legion, elsewhere: Board, words: list[str]):
    elsewhere.ask(3, ticket=1)
    elsewhere.service.plan(NewPlan(cwd=str(elsewhere.cwd), goal="Tables"))
    ended = legion(*words)
    assert ended.code not in (0, 2), ended
    assert "is of project shop, not other. Run it in" in ended.err


def test_outside_any_project_and_in_its_own_a_ticket_is_acted_on(legion, elsewhere: Board, monkeypatch, tmp_path: Path):
    monkeypatch.chdir(tmp_path)
    assert legion("pause", "1").code == 0
    monkeypatch.chdir(elsewhere.cwd)
    assert legion("resume", "1").code == 0
