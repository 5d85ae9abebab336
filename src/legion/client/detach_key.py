"""Finds Ctrl-Q in what the person types, in every form that terminals send it in, and not inside a paste.

Bytes pass on as they come, so that no key waits for the next one; only the position in a sequence is kept.
"""

from __future__ import annotations

import re
import time

_ESCAPE, _CTRL_Q = 0x1B, 0x11
_LONGEST = 64
"""Bytes of a key's sequence."""
_PASTE_BEGINS, _PASTE_ENDS = b"\x1b[200~", b"\x1b[201~"
_PASTE_PAUSE = 2.0
"""Seconds without a byte after which a paste has ended, although its end was lost: there must be a way out."""
_KEY = re.compile(rb"\x1b\[(\d+)(?::\d*)?(?::(\d*))?;(\d+)(?::(\d+))?(?:;[\d:]*)?u")
"""The key, and in a keyboard's other layout the key at its place; modifiers, and whether it is pressed or released."""
_OTHER_KEY = re.compile(rb"\x1b\[27;(\d+);(\d+)~")
_Q = (b"113", b"81")
_CTRL = 4
_LOCKS = 64 | 128
"""Caps lock and num lock."""
_RELEASED = b"3"


class DetachKey:
    def __init__(self) -> None:
        self._sequence = b""
        """What there is of a sequence that has not ended."""
        self._pastes = False
        self._typed_at = 0.0

    def cut(self, typed: bytes) -> tuple[bytes, bool]:
        """What goes to the program, and whether the person leaves; what follows the key is dropped."""
        now = time.monotonic()
        self._pastes = self._pastes and now - self._typed_at < _PASTE_PAUSE
        self._typed_at = now
        start = 0
        for at, byte in enumerate(typed):
            if byte == _CTRL_Q and not self._pastes:
                return typed[:at], True
            if byte == _ESCAPE:
                self._sequence, start = b"\x1b", at
            elif self._sequence:
                self._sequence += bytes((byte,))
                if self._ends_here() and self._leaves():
                    return typed[:start], True
        return typed, False

    def _ends_here(self) -> bool:
        if len(self._sequence) == 2:
            return not self._sequence.endswith(b"[")
        return 0x40 <= self._sequence[-1] <= 0x7E or len(self._sequence) > _LONGEST

    def _leaves(self) -> bool:
        """Of a complete sequence."""
        sequence, self._sequence = self._sequence, b""
        if sequence in (_PASTE_BEGINS, _PASTE_ENDS):
            self._pastes = sequence == _PASTE_BEGINS
            return False
        return not self._pastes and _is_ctrl_q(sequence)


def _is_ctrl_q(sequence: bytes) -> bool:
    if found := _KEY.fullmatch(sequence):
        key, base, modifiers, event = found.groups()
        return (key in _Q or base in _Q) and event != _RELEASED and _is_ctrl(modifiers)
    found = _OTHER_KEY.fullmatch(sequence)
    return found is not None and found[2] in _Q and _is_ctrl(found[1])


def _is_ctrl(modifiers: bytes) -> bool:
    return (int(modifiers) - 1) & ~_LOCKS == _CTRL
