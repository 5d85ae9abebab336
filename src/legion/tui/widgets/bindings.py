"""Textual's bindings, made from the key map. The person's changes come later, by `App.set_keymap`."""

from __future__ import annotations

from textual.binding import Binding, BindingType

from legion.tui.keys import KEYS, KeyContext, KeyMap

NO_KEY = "f20"
"""A key that no keyboard of today has: for actions that the person unbound."""


def bindings_of(*contexts: KeyContext) -> list[BindingType]:
    """The keys of these places, in the order of the map."""
    return [
        Binding(
            ",".join(key.keys),
            key.action,
            key.label,
            show=key.footer,
            tooltip=key.help,
            priority=key.priority,
            id=key.id,
        )
        for key in KEYS
        if key.context in contexts
    ]


def changes_of(keys: KeyMap) -> dict[str, str]:
    """For `App.set_keymap`: only what differs from the defaults."""
    usual = {key.id: key.keys for key in KEYS}
    return {key.id: ",".join(key.keys) or NO_KEY for key in keys.keys if key.keys != usual[key.id]}
