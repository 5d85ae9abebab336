"""Filters what a program draws on the person's terminal: only sequences that are known to draw pass.

A program may be hostile. Terminals also take sequences that reach past the screen: the clipboard, files, printers,
the keyboard, reports that appear as if the person had typed them. The rules are those of terminals: control
characters inside a sequence do not end it, and an escape inside one starts the next.
"""

from __future__ import annotations

import re

_LONGEST = 8192
"""Bytes of a sequence that has not ended yet. Nothing that is drawn is longer."""
_ESCAPE = 0x1B
_QUIET = rb"\x00-\x17\x19\x1c-\x1f\x7f"
"""Control characters that terminals act on, or ignore, in the middle of a sequence."""
_PLAIN = re.compile(
    rb"(?:[^\x1b\xc2]+|\xc2[\xa0-\xbf]|\x1b\[(?:[0-9;:]*[A-HJKLMPSTX@dfmr]|\?(?:7|25|1049|2004|2026)[hl]))*"
)
"""Text, colours and moves of the cursor: nearly all output, in one match.

Without possessive quantifiers: Python before 3.11.5 skips what an alternative had read before it failed.
"""
_BEYOND_ASCII = re.compile(rb"\xc2[\x80-\x9f]")
"""Control characters beyond ASCII, encoded."""
_KIND = re.compile(rb"\x1b[" + _QUIET + rb"]*([^" + _QUIET + rb"])?")
_CONTROL = re.compile(rb"([ -?" + _QUIET + rb"]*)(.)?", re.DOTALL)
_STRING = re.compile(rb"([^\x07\x18\x1a\x1b]*)(\x1b.|[\x07\x18\x1a])?", re.DOTALL)
_NOISE = re.compile(rb"[" + _QUIET + rb"]|" + _BEYOND_ASCII.pattern)
_NUMBERS = re.compile(rb"\d+")
_STRINGS = b"PX^_"
"""Device strings and messages to other programs."""
_ENDS = (b"\x07", b"\x1b\\")

_TITLES_LINKS_AND_MARKS = frozenset({0, 1, 2, 8, 133, 777})
_NOTIFICATION = 9
_COLOURS = frozenset({4, 5, *range(10, 20)})
_OTHER_COMMANDS = re.compile(rb"9;(?!4;)\d+(;|$)")
"""Some terminals run programs by these."""
_WINDOW_REPORTS = frozenset({14, 16, 18, 22, 23})
"""Sizes, and the stack of titles. Other numbers move windows, or type the title as if the person had."""
_LOCK_KEYBOARD, _DRAWING_TUBE = 2, 38
"""Modes that no program needs, and that take the keyboard or the screen away."""


class OutputFilter:
    """Lets a program draw, and nothing else. A sequence in pieces is held back until it is complete."""

    def __init__(self) -> None:
        self._held = b""

    def feed(self, data: bytes) -> bytes:
        data, self._held = self._held + data, b""
        shown = bytearray()
        position = 0
        while True:
            plain = _PLAIN.match(data, position)
            assert plain is not None, "it may be empty"
            shown += plain[0]
            start = plain.end()
            if start == len(data):
                return bytes(shown)
            step = _sequence(data, start) if data[start] == _ESCAPE else _letter(data, start)
            if step is None and len(data) - start < _LONGEST:
                self._held = data[start:]
                return bytes(shown)
            # Without its first character, what has no end is harmless text.
            drawn, position = step or (b"", start + 1)
            shown += drawn


_Step = tuple[bytes, int] | None
"""What passes, and the position behind the sequence; None where the sequence is not complete."""


def _letter(data: bytes, start: int) -> _Step:
    """A byte with which letters start, and control characters beyond ASCII."""
    if start + 1 == len(data):
        return None
    return (b"", start + 2) if _BEYOND_ASCII.match(data, start) else (data[start : start + 1], start + 1)


def _sequence(data: bytes, start: int) -> _Step:
    begun = _KIND.match(data, start)
    assert begun is not None, "it starts with an escape"
    kind, behind = begun[1], begun.end()
    if kind is None:
        return None
    if kind == b"[":
        return _control(data, behind)
    if kind == b"]" or kind in _STRINGS:
        return _string(data, behind, draws=kind == b"]")
    if kind[0] < 0x20 or kind[0] > 0x7E:
        return b"", behind - (kind not in b"\x18\x1a")
    return b"\x1b" + kind, behind


def _control(data: bytes, start: int) -> _Step:
    """`ESC [` and what follows: colours, cursor, modes."""
    found = _CONTROL.match(data, start)
    assert found is not None, "every part may be empty"
    final = found[2]
    if final is None:
        return None
    if not b"@" <= final <= b"~":
        return b"", found.end() - (final not in b"\x18\x1a")
    parameters = _NOISE.sub(b"", found[1])
    return (b"\x1b[" + parameters + final if _control_draws(parameters, final) else b""), found.end()


def _string(data: bytes, start: int, *, draws: bool) -> _Step:
    """A title, a link, a notification; or what is left out."""
    found = _STRING.match(data, start)
    assert found is not None, "every part may be empty"
    end = found[2]
    if end is None:
        return None
    if end not in _ENDS:
        return b"", found.end() - (len(end) if end[:1] == b"\x1b" else 0)
    text = _NOISE.sub(b"", found[1])
    return (b"\x1b]" + text + end if draws and _string_draws(text) else b""), found.end()


def _control_draws(parameters: bytes, final: bytes) -> bool:
    numbers = [int(one) for one in _NUMBERS.findall(parameters[:_LONGEST])]
    match final:
        case b"i" | b"y":  # The printer; tests, and sums over what others have drawn
            return False
        case b"t":
            return parameters[:1].isdigit() and numbers[0] in _WINDOW_REPORTS
        case b"h" | b"l":
            return _DRAWING_TUBE not in numbers if parameters[:1] == b"?" else _LOCK_KEYBOARD not in numbers
        case _:
            return True


def _string_draws(text: bytes) -> bool:
    digits = _NUMBERS.match(text)
    if digits is None:
        return False
    number = int(digits[0][-5:]) if len(digits[0]) < 20 else -1
    if number == _NOTIFICATION:
        return text[:2] == b"9;" and _OTHER_COMMANDS.match(text) is None
    # Colours may be asked for; new ones would stay when the person leaves.
    return number in _TITLES_LINKS_AND_MARKS or (number in _COLOURS and text.endswith(b"?"))
