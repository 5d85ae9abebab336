"""Ctrl-Q leaves in every form in which terminals send it, and is text inside a paste."""

from __future__ import annotations

import pytest

from legion.client.terminal import DetachKey
from tests.support.attacks import Attacker, Door, attack

CTRL_Q = [
    pytest.param(b"\x11", id="plain"),
    pytest.param(b"\x1b[113;5u", id="kitty"),
    pytest.param(b"\x1b[81;5u", id="kitty-capital"),
    pytest.param(b"\x1b[113;133u", id="num-lock"),
    pytest.param(b"\x1b[113;69u", id="caps-lock"),
    pytest.param(b"\x1b[113;197u", id="both-locks"),
    pytest.param(b"\x1b[113;5:1u", id="pressed"),
    pytest.param(b"\x1b[113;5:2u", id="repeated"),
    pytest.param(b"\x1b[1081::113;5u", id="other-layout"),
    pytest.param(b"\x1b[1081:1049:113;133:1u", id="other-layout-with-all"),
    pytest.param(b"\x1b[113;5;113u", id="with-its-text"),
    pytest.param(b"\x1b[27;5;113~", id="modify-other-keys"),
    pytest.param(b"\x1b[27;69;81~", id="modify-other-keys-caps-lock"),
]
OTHER = [
    pytest.param(b"q", id="q"),
    pytest.param(b"\x1b[113;5:3u", id="released"),
    pytest.param(b"\x1b[113;7u", id="with-alt"),
    pytest.param(b"\x1b[113;1u", id="no-modifier"),
    pytest.param(b"\x1b[113u", id="no-modifiers-at-all"),
    pytest.param(b"\x1b[119;5u", id="ctrl-w"),
    pytest.param(b"\x1b[27;5;119~", id="ctrl-w-otherwise"),
    pytest.param(b"\x1b[1;5A", id="an-arrow"),
    pytest.param(b"\x1b[<0;11;3M", id="the-mouse"),
    pytest.param(b"\x1b" + b"[1" * 100, id="nonsense"),
]


@pytest.mark.parametrize("key", CTRL_Q)
def test_the_key_leaves_however_it_is_cut_into_pieces(key: bytes):
    for cut in range(len(key) + 1):
        keys = DetachKey()
        kept, left = keys.cut(b"ab" + key[:cut])
        assert kept[:2] == b"ab"
        if not left:
            kept, left = keys.cut(key[cut:] + b"rest")
        assert left
        assert b"rest" not in kept
    assert DetachKey().cut(b"ab" + key + b"rest") == (b"ab", True)


@pytest.mark.parametrize("key", CTRL_Q)
def test_it_leaves_also_after_a_lone_escape_and_after_a_paste(key: bytes):
    keys = DetachKey()
    assert keys.cut(b"\x1b") == (b"\x1b", False)
    assert keys.cut(key)[1]
    keys = DetachKey()
    assert keys.cut(b"\x1b[200~text\x1b[201~") == (b"\x1b[200~text\x1b[201~", False)
    assert keys.cut(key)[1]


@pytest.mark.parametrize("key", OTHER)
def test_other_keys_pass(key: bytes):
    assert DetachKey().cut(key) == (key, False)


@attack(Attacker.REPOSITORY, Door.KEYS)
@pytest.mark.parametrize("key", CTRL_Q)
def test_inside_a_paste_the_key_is_text_however_it_is_cut(key: bytes):
    """Copied text leaves nothing behind that a shell would run."""
    paste = b"\x1b[200~safe " + key + b" more\ntouch x\n\x1b[201~"
    for cut in range(len(paste)):
        keys = DetachKey()
        pieces = keys.cut(paste[:cut]), keys.cut(paste[cut:])
        assert pieces == ((paste[:cut], False), (paste[cut:], False))
