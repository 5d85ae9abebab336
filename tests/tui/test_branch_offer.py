"""The offer to follow the checkout to another branch: when it is made, what it does, and that it is made once."""

from __future__ import annotations

from pathlib import Path

import pytest

from legion.tui.branch_offer import BIND, LEAVE, NEW, SWITCH, offer_of
from legion.wire.projects import Done
from legion.wire.sessions import NewSession, SessionLine, SessionList
from tests.support.board import Board
from tests.tui.driving import drive, opened


def session(name: str, branch: str, *, acting: bool = False) -> SessionLine:
    return SessionLine(
        name=name, branch=branch, acting=acting, open=1, ahead=0, target="t", folder="", created_at=0.0
    )  # fmt: skip


MAIN, LOGIN = session("default", "main", acting=True), session("login", "feature/login")


@pytest.mark.parametrize(
    ("sessions", "checkout", "choices"),
    [
        ([MAIN], "main", None),
        ([MAIN], "", None),
        ([], "main", None),
        ([MAIN], "fix/cart", [LEAVE, NEW, BIND]),
        ([MAIN, LOGIN], "feature/login", [LEAVE, SWITCH]),
    ],
    ids=["same", "detached", "none", "no-session", "other-session"],
)
def test_it_is_made_where_the_checkout_has_another_branch(
    sessions: list[SessionLine], checkout: str, choices: list[str] | None
):
    offer = offer_of(SessionList(sessions=sessions, checkout=checkout))
    assert ([value for value, _ in offer.choices] if offer is not None else None) == choices
    if offer is not None:
        assert checkout in offer.question
        assert offer.request(LEAVE, "/shop") is None


@pytest.mark.parametrize("key", ["escape", "enter"])
def test_it_is_asked_once_and_leaving_changes_nothing(board: Board, tmp_path: Path, key: str):
    """It opens by itself, so an Enter may have been meant for what was there before."""
    board.put(1, "First", "working")
    board.callers.instead = {
        "sessions": SessionList(sessions=[MAIN, LOGIN], checkout="feature/login"),
        "switch_session": Done(message="Switched."),
    }
    memory = tmp_path / "tui.json"

    async def work() -> None:
        async with opened(board, "squad", memory=memory) as ui:
            await ui.shows("Your checkout is on feature/login.", "Switch to session login")
            await ui.until(lambda: ui.is_read)
            await ui.press(key)
            await ui.shows("First")
        assert "switch_session" not in board.callers.asked
        async with opened(board, "squad", memory=memory) as ui:
            # Not again; the list of the sessions is there instead, as there are several.
            await ui.shows("Enter switches", "feature/login")
            await ui.press("j", "enter")
            await ui.until(lambda: "switch_session" in board.callers.asked)
            await ui.shows("First")

    drive(work)


def test_a_session_that_is_started_elsewhere_is_noticed(board: Board):
    async def work() -> None:
        async with opened(board) as ui:
            await ui.shows("The board is empty.")
            # By an event, which a thread receives: Textual's screens need the context of the loop.
            board.service.new_session(NewSession(cwd=board.cwd, branch="change"))
            await ui.shows("Your checkout is on main.", "Switch to session default")

    drive(work)
