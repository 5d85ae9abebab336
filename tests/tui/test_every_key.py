"""Every key of every place is pressed: it reaches the action that the key map names, and nothing breaks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from textual.actions import parse
from textual.screen import Screen
from textual.widgets import Input, TextArea

from legion.domain.machines.machine import OFFERS
from legion.domain.takeovers import Takeover, TakeoverMode
from legion.store.work import takeovers
from legion.tui.app import LegionApp
from legion.tui.keys import KEYS, Key, KeyContext
from legion.tui.screens.forms import Form
from legion.tui.screens.place import PLACES
from legion.tui.screens.ticket import TicketScreen
from legion.wire.agents import HireAgent
from legion.wire.errors import StateConflict
from legion.wire.machines import MachineLine, MachineList
from legion.wire.operations import Operations
from legion.wire.sessions import SessionLine, SessionList
from legion.wire.table import rows
from legion.wire.ticket_pages import Diff
from legion.wire.tickets import Acted
from tests.support.board import Board
from tests.tui.driving import Shown, drive, opened
from tests.tui.planned import answers
from tests.tui.test_places import DIFF, fill

LEAVES = ("quit", "start_daemon", "init", "retry_plan", "edit")
"""They end the UI, start a daemon or an editor, or need a failed plan or no project; their own tests press them."""
NEEDS_TICKET = {
    "check": 1, "undo": 1, "land": 3, "retry": 4, "drop": 4, "submit": 6, "copy": 2, "review": 3, "diff": 3,
}  # fmt: skip
TEXT = (*"yes", "space", *"no_x1Amdsc", "question_mark")
"""Letters that act on tickets, questions or agents where no text is taken."""
SPELLED = {"space": " ", "question_mark": "?"}
READING = ("output", "mail")
"""Operations that read by POST."""
"""Tickets of the board to which an action applies; the others apply to one at work."""


class RecordingApp(LegionApp):
    """Notes the actions that keys lead to, and does them."""

    def __init__(self, *given: object) -> None:
        super().__init__(*given)  # type: ignore[arg-type]
        self.done: list[str] = []

    async def run_action(self, action: object, default_namespace: object = None, namespaces: object = None) -> bool:
        self.done.append(parse(action)[1] if isinstance(action, str) else str(action[1]))  # type: ignore[index]
        return await super().run_action(action, default_namespace, namespaces)  # type: ignore[arg-type]


def keys_of(*contexts: KeyContext) -> list[tuple[Key, str]]:
    return [(one, key) for one in KEYS if one.context in contexts and one.action not in LEAVES for key in one.keys]


async def pressed(ui: Shown, board: Board, one: Key, key: str) -> None:
    app = ui.app
    assert isinstance(app, RecordingApp)
    app.done.clear()
    await ui.press(key)
    await ui.until(lambda: one.action in app.done, f"{one.action} of {key} on {one.context.value}")
    await write_where_text_is_taken(ui, board)


async def write_where_text_is_taken(ui: Shown, board: Board) -> None:
    """Where the key opened a line or a form, letters are text: none of them acts, whatever it means elsewhere."""
    await ui.pilot.pause()
    box, shown = ui.app.focused, ui.app.screen
    if not isinstance(box, Input | TextArea):
        return
    asked, before = len(board.callers.asked), text_of(box)
    await ui.pilot.press(*TEXT)
    await ui.pilot.pause()
    assert ui.app.screen is shown
    assert text_of(box) == before + "".join(SPELLED.get(key, key) for key in TEXT), "letters go behind what is there"
    table = rows(Operations)
    acted = [name for name in board.callers.asked[asked:] if table[name].method != "GET" and name not in READING]
    assert acted == []


def text_of(box: Input | TextArea) -> str:
    return box.value if isinstance(box, Input) else box.text


async def back_to(ui: Shown, place: str) -> None:
    while len(ui.app.screen_stack) > 2:
        await ui.app.pop_screen()
    ui.app.go(place)
    await ui.pilot.pause()


async def back_to_open(ui: Shown, wanted: Callable[[Screen[Any]], bool]) -> bool:
    """To this screen above the board, if it is still open: composing one takes longer than pressing a key."""
    found = next((one for one in ui.app.screen_stack if wanted(one)), None)
    if found is None:
        await back_to(ui, "board")
        return False
    while ui.app.screen is not found:
        await ui.app.pop_screen()
    return True


def is_list(kind: str) -> Callable[[Screen[Any]], bool]:
    return lambda shown: getattr(shown, "kind", "") == kind


def machine(name: str, head: bool = False) -> MachineLine:
    return MachineLine(
        name=name, head=head, state="open", labels=[], slots=4, runs=1, version="1", heard_at=None, joined_at=None,
        quiet_hours="", tools="", advice="", offers=[] if head else [*OFFERS],
    )  # fmt: skip


def session(name: str, *, acting: bool = False, ended_at: float | None = None) -> SessionLine:
    return SessionLine(
        name=name, branch=name, acting=acting, open=0, ahead=0, target="t", folder="", created_at=0.0,
        ended_at=ended_at,
    )  # fmt: skip


def prepared(board: Board) -> None:
    fill(board)
    board.run(2, "I look at the code.\n", ended=False, driver="claude")
    board.ask(ticket=2)
    with board.store.write() as tx:
        takeovers.put(tx, Takeover(ticket=6, mode=TakeoverMode.PERSON))
    history = board.service.history(board.cwd, ticket=3)
    history.lines[-1].rewind = "1:7"
    done = Acted(tickets=[2], message="Done.")
    board.callers.instead = {
        **answers(),
        "machines": MachineList(machines=[machine("here", head=True), machine("desk")], reachable=""),
        "sessions": SessionList(sessions=[session("default", acting=True), session("old", ended_at=1.0)], checkout=""),
        "history": history,
        "diff": Diff(ticket=3, base="b", head="h", text=DIFF, live=False),
        **dict.fromkeys(("undo", "review", "land", "submit_ticket", "pause_ticket", "checkout", "rewind"), done),
    }
    board.service.hire(HireAgent(task="Lead.", name="boss", cwd=board.cwd))


@pytest.mark.parametrize("place", PLACES)
def test_every_key_of_every_place(board: Board, place: str):
    prepared(board)

    async def work() -> None:
        async with opened(board, size=(100, 30), kind=RecordingApp) as ui:
            await ui.until(lambda: ui.app.store.graph.value is not None)
            for one, key in keys_of(KeyContext(place)):
                await back_to(ui, place)
                if place == "squad":
                    await ui.until(lambda: ui.rows("#panes").selected == "2")
                    ui.rows("#panes").focus()
                if one.id == "squad.delegate":
                    await ui.until(lambda: ui.app.screen.leader is not None)  # type: ignore[attr-defined]
                    ui.app.screen.query_one("#say").focus()
                    await ui.pilot.pause()
                if place == "plans":
                    await ui.shows("a  Tables")
                    if one.action == "mark":
                        await ui.press("tab")
                await pressed(ui, board, one, key)

    drive(work)


def test_every_key_that_works_everywhere(board: Board):
    prepared(board)

    async def work() -> None:
        async with opened(board, size=(100, 30), kind=RecordingApp) as ui:
            await ui.until(lambda: ui.app.store.graph.value is not None)
            for one, key in keys_of(KeyContext.EVERYWHERE, KeyContext.LIST):
                await back_to(ui, "queue")
                if one.action == "go_back":
                    ui.app.open_ticket(2)
                    await ui.pilot.pause()
                await pressed(ui, board, one, key)

    drive(work)


async def back_to_ticket(ui: Shown, id: int, tab: str) -> None:
    await back_to_open(ui, lambda one: isinstance(one, TicketScreen) and one.id_of_ticket == id)
    ui.app.open_ticket(id, tab)
    await ui.pilot.pause()
    # The line below the title says what comes next once the ticket is read.
    await ui.until(lambda: ui.app.screen.query("#step") and ui.rows("#step").rows)
    await ui.shows({"diff": "a.py", "history": "↶"}.get(tab, "#"))


def test_every_key_of_a_ticket(board: Board):
    prepared(board)

    def where(one: Key) -> tuple[int, str]:
        tab = one.context.value if one.context in (KeyContext.DIFF, KeyContext.HISTORY) else "live"
        return NEEDS_TICKET.get(one.action, 2 if tab == "live" else 3), tab

    async def work() -> None:
        async with opened(board, size=(100, 30), kind=RecordingApp) as ui:
            keys = keys_of(KeyContext.TICKETS, KeyContext.TICKET, KeyContext.DIFF, KeyContext.HISTORY)
            for one, key in sorted(keys, key=lambda pair: where(pair[0])):
                if one.action == "open":
                    continue
                await back_to_ticket(ui, *where(one))
                if one.context is KeyContext.DIFF:
                    await ui.press("G")
                    if one.action == "send_back":
                        await ui.press("c", *"Why?", "enter")
                if one.context is KeyContext.HISTORY:
                    await ui.press("G")
                board.callers.trouble = (
                    StateConflict("Not in this test.") if one.action in ("attach", "shell") else None
                )
                await pressed(ui, board, one, key)
                board.callers.trouble = None

    drive(work)


def test_every_key_of_a_form_and_of_the_lists_of_the_menu(board: Board):
    prepared(board)
    lists = {"remove": "teams", "complete": "sessions", "forget": "sessions"}

    def list_of(one: Key) -> str:
        return "machines" if one.context is KeyContext.MACHINES else lists.get(one.action, "providers")

    async def work() -> None:
        async with opened(board, size=(100, 30), kind=RecordingApp) as ui:
            for one, key in keys_of(KeyContext.FORM):
                if not await back_to_open(ui, lambda shown: isinstance(shown, Form)):
                    await ui.press("w")
                    await ui.shows("name:")
                if one.action == "choose":
                    await ui.press("tab", "tab")
                await pressed(ui, board, one, key)
            for one, key in sorted(keys_of(KeyContext.MODELS, KeyContext.MACHINES), key=lambda pair: list_of(pair[0])):
                if one.action == "test":
                    continue
                kind = list_of(one)
                if not await back_to_open(ui, is_list(kind)):
                    ui.app.open_catalog(kind)
                await ui.settled()
                if one.action == "forget":
                    ui.rows("#body").select("ended old")
                elif one.context is KeyContext.MACHINES:
                    ui.rows("#body").select("desk")
                await pressed(ui, board, one, key)

    drive(work)
