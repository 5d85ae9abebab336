"""Text that programs wrote, as data: what no encoding can hold is replaced, what a screen does not show is marked.

`whole` is for everything that is written as JSON, `recorded` for what a run leaves behind and for commit messages,
`reveal` for what a person reads. `tests/house/test_text.py` forbids other ways to write JSON.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeAlias, TypeVar

AnyJson: TypeAlias = Any
"""What JSON can hold."""
_Value = TypeVar("_Value")
_PARSES = 5

_DEEPEST = 100
"""Levels of a value that are written; a program can nest thousands, and no reader of ours needs ten."""
TOO_DEEP = "[nested too deep]"

HIDDEN: tuple[tuple[int, int], ...] = (
    *((0x00, 0x08), (0x0B, 0x0C), (0x0E, 0x1F), (0x7F, 0x9F)),  # control characters, without tab and ends of lines
    *((0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F)),
    *((0x200B, 0x200F), (0x2028, 0x202E), (0x2060, 0x206F)),  # zero width, line separators, directions
    *((0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFFB)),
    *((0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF)),  # tags, and more selectors of variants
)
"""The characters that a screen does not show, or that change the order of what it shows: those that Unicode lets a
program leave out (Default_Ignorable_Code_Point), and the controls."""
_EMOJI = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2934\u2935\u2b00-\u2bff"
    "\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
_JOINING = "\u0600-\u08ff\u0900-\u0dff\u1780-\u17b3\u17b6-\u17ff\u1820-\u18af\ufb50-\ufdff\ufe70-\ufefc"
_HAN = "\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_FINE = "|".join(
    (
        "\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{1,6}\U000e007f",  # the flag of a region
        f"[{_EMOJI}][\ufe0e\ufe0f]?(?:\u200d[{_EMOJI}]\ufe0f?|[\U0001f3fb-\U0001f3ff])*",
        "[0-9#*]\ufe0f\u20e3",  # a key of a telephone
        f"(?<=[{_JOINING}])[\u200c\u200d](?=[{_JOINING}])",  # Arabic, Persian and Indic letters
        f"[{_HAN}][\ufe00-\ufe02\U000e0100-\U000e01ef]",  # variants of Chinese and Japanese characters
    )
)
"""Where such a character belongs to what is shown."""

_SET = "".join(f"{chr(first)}-{chr(last)}" for first, last in HIDDEN)
_PATTERN = rf"({_FINE})|[{_SET}]|\r(?!\n|$)"  # a lone carriage return ends a line for compilers, and for no screen
PAGE_PATTERN = "".join(one if one.isascii() and one.isprintable() else f"\\u{{{ord(one):x}}}" for one in _PATTERN)
"""The same expression as a browser writes it: `app/odd.js` gets it when it is served."""
_SEEN_OR_HIDDEN = re.compile(_PATTERN)
_HALF = re.compile("[\ud800-\udfff]")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")


def whole(text: str) -> str:
    """Two halves of a surrogate pair become their character, a lone half becomes the replacement character."""
    if text.isascii() or not _HALF.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def recorded(text: str) -> str:
    """Whole, and with a mark for each control character other than tab and the ends of lines."""
    return text if text.isprintable() else _CONTROL.sub(_marked, whole(text))


def python_statements(source: str | bytes) -> list[ast.stmt] | None:
    """None for what is no Python. Before 3.11.5 one of two threads that parse at once can fail: it parses again."""
    for _ in range(_PARSES):
        try:
            return ast.parse(source).body
        except SystemError:
            continue
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            break
    return None


def count(number: int, one: str, many: str = "") -> str:
    """1 ticket, 2 tickets; 1 ticket is, 2 tickets are."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def storable(text: str) -> str:
    """Whole, and without NUL, which no database stores."""
    return whole(text).replace("\0", "\N{REPLACEMENT CHARACTER}")


def in_all(value: _Value, change: Callable[[str], str], depth: int = _DEEPEST) -> _Value:
    """The value with every text in it changed: JSON values and dataclasses, keys included."""
    changed: Any = value
    if isinstance(value, str):
        changed = change(value)
    elif depth == 0 and isinstance(value, dict | list | tuple):
        changed = TOO_DEEP
    elif isinstance(value, dict):
        changed = {in_all(key, change): in_all(one, change, depth - 1) for key, one in value.items()}
    elif isinstance(value, list | tuple):
        changed = type(value)([in_all(one, change, depth - 1) for one in value])
    elif is_dataclass(value) and not isinstance(value, type):
        parts = {one.name: getattr(value, one.name) for one in fields(value)}
        new = {name: in_all(part, change, depth - 1) for name, part in parts.items()}
        different = {name: part for name, part in new.items() if part is not parts[name] and part != parts[name]}
        changed = replace(value, **different) if different else value
    result: _Value = changed
    return result


def to_json(value: object, **options: Any) -> str:
    """The one way to write JSON: no reader fails because of a program's letters."""
    try:
        text = json.dumps(value, **options)
    except RecursionError:
        return json.dumps(in_all(value, whole), **options)
    # In ASCII a half is an escape, as is each half of a pair.
    suspect = _HALF.search(text) if options.get("ensure_ascii") is False else "\\ud" in text
    return json.dumps(in_all(value, whole), **options) if suspect else text


def from_json(text: str) -> AnyJson:
    """What an earlier release wrote may hold halves."""
    value = json.loads(text)
    return in_all(value, whole) if "\\ud" in text else value


def reveal(text: str) -> str:
    """What a person reads: each hidden character as a mark such as <U+202E>. Emoji and letters of every language stay
    as they are.
    """
    return text if text.isascii() and text.isprintable() else _SEEN_OR_HIDDEN.sub(_marked, whole(text))


def hidden_in(text: str) -> list[str]:
    """The hidden characters of a text, in its order."""
    if text.isascii() and text.isprintable():
        return []
    return [found[0] for found in _SEEN_OR_HIDDEN.finditer(text) if not found[1]]


def _marked(found: re.Match[str]) -> str:
    return found[0] if found.re.groups and found[1] else f"<U+{ord(found[0]):04X}>"
