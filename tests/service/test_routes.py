"""Routes for one agent: only for an agent that exists, under the id by which the gateway knows it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from legion.domain.errors import NotFound
from legion.wire.agents import HireAgent
from legion.wire.providers import AddProvider, RemoveRoute, SetRoute
from tests.support.board import Board


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Board]:
    monkeypatch.setenv("LEGION_CONFIG", str(tmp_path / "config.toml"))
    one = Board(tmp_path)
    one.service.add_provider(AddProvider(name="local", url="http://127.0.0.1:1", no_key=True))
    yield one
    one.close()


def test_a_word_that_names_no_agent_is_refused_and_changes_nothing(board: Board):
    with pytest.raises(NotFound, match="nobody"):
        board.service.set_route(SetRoute(model="claude-*", to=["local"], agent="nobody"))
    assert board.service.routes().routes == []


def test_a_name_is_stored_as_the_id_that_passes_carry_and_can_be_removed_by_name(board: Board):
    hired = board.service.hire(HireAgent(task="lead", cwd=board.cwd, name="boss"))
    board.service.set_route(SetRoute(model="claude-*", to=["local"], agent="boss"))
    assert [one.agent for one in board.service.routes().routes] == [hired.id]
    board.service.remove_route(RemoveRoute(model="claude-*", agent="boss"))
    assert board.service.routes().routes == []


def test_a_pattern_and_the_conversation_of_a_ticket_are_kept_as_they_are(board: Board):
    board.put(1, state="working")
    board.run(1, ended=False)
    conversation = board.service.ticket(1).conversation
    for agent in ("boss-*", conversation):
        board.service.set_route(SetRoute(model="claude-*", to=["local"], agent=agent))
    assert {one.agent for one in board.service.routes().routes} == {"boss-*", conversation}


def test_a_new_route_goes_behind_those_that_are_for_fewer_runs(board: Board):
    board.service.hire(HireAgent(task="lead", cwd=board.cwd, name="boss"))
    for labels in ({}, {"role": "qa"}, {"agent": "boss", "role": "qa"}, {"role": "engineer"}, {"provider": "local"}):
        board.service.set_route(SetRoute(model="*", to=["local"], **labels))
    board.service.set_route(SetRoute(model="claude-*", to=["local"]))
    found = [(one.model, one.role or one.provider, bool(one.agent)) for one in board.service.routes().routes]
    assert found == [
        ("*", "qa", True), ("*", "local", False), ("*", "engineer", False), ("*", "qa", False),
        ("claude-*", "", False), ("*", "", False),
    ]  # fmt: skip
