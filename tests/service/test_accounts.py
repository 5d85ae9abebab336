"""Several logins at one provider: one after the other, in the order that the person chose."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from legion.domain.errors import BadInput, NotFound, StateConflict
from legion.gateway.access.routing import Chooser, route_for
from legion.gateway.files.passes import Pass
from legion.jobs.agent import model_access
from legion.wire.providers import AddProvider, SetRoute, UseAccount
from tests.support.board import Board


@pytest.fixture
def board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Board]:
    monkeypatch.setenv("LEGION_CONFIG", str(tmp_path / "config.toml"))
    one = Board(tmp_path)
    one.service.add_provider(AddProvider(name="local", url="http://127.0.0.1:1", no_key=True))
    one.service.add_provider(AddProvider(name="home", url="http://127.0.0.1:2", key_env="HOME_KEY", model="m"))
    one.service.add_provider(AddProvider(name="work", account_of="home", key_env="WORK_KEY"))
    one.service.add_provider(AddProvider(name="spare", account_of="home", key_env="SPARE_KEY"))
    yield one
    one.close()


def asked(provider: str, model: str = "claude-x") -> list[str]:
    """The logins that a request of a run with this provider goes to."""
    pass_ = Pass(run="", ticket=0, project=0, agent="", provider=provider, role="", team="")
    return [target.provider for target in route_for(model_access.known_routes(), pass_, model).to]


def test_a_further_login_is_like_the_first_but_for_its_key(board: Board):
    lines = {one.name: one for one in board.service.providers().providers}
    assert (lines["work"].url, lines["work"].model, lines["work"].account_of) == ("http://127.0.0.1:2", "m", "home")
    assert lines["work"].key == "variable WORK_KEY"
    assert lines["home"].account_of == ""


def test_a_request_goes_from_login_to_login_and_a_limited_one_comes_last(board: Board):
    assert asked("home") == ["home", "work", "spare"]
    assert asked("work") == ["work", "home", "spare"]
    assert asked("local") == ["local"]
    chooser = Chooser(now=lambda: 0.0)
    targets = route_for(
        model_access.known_routes(), Pass(run="", ticket=0, project=0, agent="", provider="home", role="", team=""), "m"
    ).to
    chooser.failed("home", pause=60.0)
    assert [one.provider for one in chooser.order(targets, "conversation")] == ["work", "spare", "home"]


def test_a_route_leads_to_every_login_of_its_targets(board: Board):
    board.service.set_route(SetRoute(model="claude-*", to=["home/big", "local"]))
    found = route_for(
        model_access.known_routes(),
        Pass(run="", ticket=0, project=0, agent="", provider="local", role="", team=""),
        "claude-x",
    )
    expected = [("home", "big"), ("work", "big"), ("spare", "big"), ("local", "")]
    assert [(one.provider, one.model) for one in found.to] == expected


def test_the_person_chooses_which_login_is_asked_first(board: Board):
    assert board.service.use_account(UseAccount(name="spare")).message == "spare is asked first; then home, work."
    assert [one.name for one in board.service.providers().providers] == ["local", "spare", "home", "work"]
    assert asked("home") == ["home", "spare", "work"]


def test_what_is_no_login_is_refused(board: Board):
    with pytest.raises(StateConflict, match="local has no other login"):
        board.service.use_account(UseAccount(name="local"))
    with pytest.raises(NotFound, match="There is no provider nobody"):
        board.service.use_account(UseAccount(name="nobody"))
    with pytest.raises(NotFound, match="There is no provider nobody"):
        board.service.add_provider(AddProvider(name="x", account_of="nobody", no_key=True))
    with pytest.raises(BadInput, match="is itself a login of home"):
        board.service.add_provider(AddProvider(name="x", account_of="work", no_key=True))
