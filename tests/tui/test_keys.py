"""The key map: no key means two things in one place, every action exists, and a person can rebind any."""

from __future__ import annotations

import importlib

import pytest

from legion.config.files.user import parse
from legion.tui.app import LegionApp
from legion.tui.keys import BY_ID, KEYS, Key, KeyContext, KeyMap, shown_key
from legion.tui.screens.catalog import CatalogPlace
from legion.tui.screens.forms import Form
from legion.tui.screens.history_tab import HistoryList
from legion.tui.screens.machines import MachinesPlace
from legion.tui.screens.models import ModelsPlace
from legion.tui.screens.place import PLACES, Place
from legion.tui.screens.ticket import ChangeList, TicketScreen
from legion.tui.views.status_line import help_rows
from legion.tui.widgets.bindings import changes_of
from legion.tui.widgets.row_list import RowList


def place_class(name: str) -> type[Place]:
    module, _, attribute = LegionApp._PLACES[name].partition(":")
    found: type[Place] = getattr(importlib.import_module(f"legion.tui.screens.{module}"), attribute)
    return found


SCREENS: dict[str, type[Place]] = {
    **{name: place_class(name) for name in PLACES}, "ticket": TicketScreen, "catalog": CatalogPlace,
    "machines": MachinesPlace, "models": ModelsPlace,
}  # fmt: skip
OWNERS: dict[KeyContext, list[type]] = {
    KeyContext.EVERYWHERE: [LegionApp],
    KeyContext.LIST: [RowList],
    KeyContext.DIFF: [ChangeList],
    KeyContext.HISTORY: [HistoryList],
    KeyContext.FORM: [Form],
}
for screen in SCREENS.values():
    for context in screen.CONTEXTS:
        if context not in (KeyContext.LIST, KeyContext.DIFF, KeyContext.HISTORY):
            OWNERS.setdefault(context, []).append(screen)


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.id)
def test_every_action_exists_where_its_keys_work(key: Key):
    owners = OWNERS[key.context]
    assert owners
    assert [owner.__name__ for owner in owners if not hasattr(owner, f"action_{key.action}")] == []


@pytest.mark.parametrize("context", KeyContext)
def test_a_key_means_one_thing_in_a_context(context: KeyContext):
    keys = [key for one in KEYS if one.context is context for key in one.keys]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize("name", SCREENS)
def test_a_key_means_one_thing_on_a_screen_and_lists_come_first(name: str):
    """Contexts of the same widget share no key; those of a list inside shadow those of the screen on purpose."""
    own = [
        context
        for context in SCREENS[name].CONTEXTS
        if context not in (KeyContext.LIST, KeyContext.DIFF, KeyContext.HISTORY)
    ]
    keys = [key for one in KEYS if one.context in own for key in one.keys]
    assert len(keys) == len(set(keys))
    inside = {key for one in KEYS if one.context is KeyContext.LIST for key in one.keys}
    # A key with priority is the screen's on purpose: the squad selects agents where lists scroll.
    assert not inside & {key for one in KEYS if one.context in own and not one.priority for key in one.keys}


def test_the_keys_that_people_know_are_there():
    known = {
        "everywhere.menu": "ctrl+p", "everywhere.quit": "ctrl+q", "everywhere.next_pane": "tab", "list.down": "j",
        "list.up": "k", "list.choose": "enter", "tickets.retry": "r", "tickets.drop": "d", "tickets.diff": "f",
        "everywhere.clear_ended": "D", "board.left": "alt+left", "board.right": "alt+right",
        "squad.narrower": "ctrl+left",
        "squad.wider": "right_square_bracket", "everywhere.new_ticket": "n", "everywhere.new_ticket_full": "N",
        "tickets.attach": "o", "tickets.pause": "c", "list.scroll_up": "shift+up", "everywhere.help": "question_mark",
        "everywhere.board": "ctrl+t", "everywhere.refresh": "R", "ticket.next_tab": "l", "diff.comment": "c",
        "inbox.yes": "y", "inbox.no": "n", "tickets.message": "i", "history.rewind": "R", "tickets.copy": "y",
        "tickets.push": "p", "tickets.check": "B", "tickets.land": "m", "ticket.previous_tab": "h",
        "agents.delegate": "shift+tab", "squad.delegate": "shift+tab",
        "squad.next_agent": "shift+down", "squad.previous_agent": "shift+up",
        "machines.update": "r", "machines.clean": "c", "models.complete": "c", "models.forget": "x", "models.add": "n",
    }  # fmt: skip
    assert {id: key for id, key in known.items() if key not in BY_ID[id].keys} == {}


def test_a_person_can_rebind_and_unbind():
    keys = KeyMap.with_changes(["board.filter = ctrl+f /", "tickets.drop = unbind"])
    assert keys.faults == ()
    changed = {key.id: key.keys for key in keys.keys if key.keys != BY_ID[key.id].keys}
    assert changed == {"board.filter": ("ctrl+f", "slash"), "tickets.drop": ()}
    assert changes_of(keys) == {"board.filter": "ctrl+f,slash", "tickets.drop": "f20"}
    assert keys.shown()["filter"] == "Ctrl+F"
    assert "drop" not in keys.shown()


@pytest.mark.parametrize("line", ["board.filter", "= x", "board.nothing = x", "board.filter ="])
def test_a_line_that_makes_no_sense_is_reported_and_changes_nothing(line: str):
    settings = parse(f'[tui]\nkeys = ["{line}"]\n')
    keys = KeyMap.with_changes(settings.tui.keys)
    assert len(keys.faults) == 1
    assert keys.keys == KEYS


def test_the_help_names_every_key_of_a_place():
    text = "\n".join(row.text for row in help_rows(KeyMap(), (KeyContext.INBOX, KeyContext.LIST), 200))
    for key in KEYS:
        if key.context in (KeyContext.INBOX, KeyContext.LIST, KeyContext.EVERYWHERE):
            assert key.help in text
            assert all(shown_key(one) in text for one in key.keys)


@pytest.mark.parametrize(
    ("key", "shown"),
    [("ctrl+p", "Ctrl+P"), ("question_mark", "?"), ("R", "R"), ("shift+down", "Shift+↓"), ("slash", "/"), ("j", "j")],
)
def test_keys_are_shown_as_people_write_them(key: str, shown: str):
    assert shown_key(key) == shown
