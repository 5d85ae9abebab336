"""The shape that every stream of events has, so that whoever writes them can rely on it.

An answer begins once, before its parts. A part begins once, with the next number, grows only while it is open, and ends
before the answer does. What an answer says are texts.
"""

from __future__ import annotations

from legion.gateway.dialects.inner import (
    Begun,
    Ended,
    Event,
    Failed,
    PartBegun,
    PartEnded,
    PartGrew,
    PartSealed,
    Unreadable,
    Waiting,
)


class Shape:
    def __init__(self) -> None:
        self._begun = False
        self._parts = 0
        self._open: set[int] = set()

    def take(self, event: Event) -> list[Event]:
        """The event, after what was missing before it. Raises Unreadable for one that cannot come now."""
        match event:
            case PartGrew():
                self._is_open(event.index, event.text)
            case PartSealed():
                self._is_open(event.index, event.seal)
            case PartBegun():
                if not self._begun or event.index != self._parts:
                    raise Unreadable("a part begins twice or too early")
                _are_texts(event.id, event.name)
                self._open.add(event.index)
                self._parts += 1
            case PartEnded():
                self._is_open(event.index)
                self._open.discard(event.index)
            case Begun():
                if self._begun:
                    raise Unreadable("the answer begins twice")
                _are_texts(event.id, event.model)
                self._begun = True
            case Ended():
                if not self._begun:
                    raise Unreadable("the answer ends without a beginning")
                return [*(PartEnded(index=index) for index in sorted(self._open)), event]
            case Failed() | Waiting():
                pass
        return [event]

    def _is_open(self, index: int, text: str = "") -> None:
        if index not in self._open:
            raise Unreadable("a part goes on that has not begun, or has ended")
        _are_texts(text)


def _are_texts(*values: object) -> None:
    for value in values:
        if not isinstance(value, str):
            raise Unreadable("a text is none")
