"""Reads the state of an interactive program from its output, without an emulator: bytes in, facts out.

The last plain text is compared with the patterns of the program's description. Bell, title and the notifications of
terminals (OSC 9, 777 and 133) are read, too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from legion.drivers.terminal_options import TerminalOptions

_KEPT = 6000
_NEAR_THE_END = 1500
"""Characters of plain text in which a question counts as the present one."""
_LONGEST_QUESTION = 200
_CONTROL = re.compile(
    rb"\x1b\](?P<osc>[^\x07\x1b]{0,4096})(?:\x07|\x1b\\)"
    rb"|\x1b[PX^_][^\x1b]{0,4096}\x1b\\"
    rb"|\x1b\[(?P<csi>[0-?]*[ -/]*[@-~])"
    rb"|\x1b[@-Z\\-~]|\x1b[ -/][0-~]"
    rb"|(?P<bell>\x07)|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]"
)
_UNFINISHED = re.compile(rb"\x1b(?:\][^\x07\x1b]{0,4096}\x1b?|\[[0-?]*[ -/]*|[PX^_][^\x1b]{0,4096}\x1b?|[ -/])?$")
_CLEARS = (b"2J", b"3J", b"?1049h", b"?1049l")


class ScreenState(Enum):
    """What the program is doing, as far as its terminal shows."""

    WORKING = "working"
    READY = "ready"
    """It waits for the next prompt."""
    ASKING = "asking"
    """It waits for an answer."""
    QUIET = "quiet"
    """It prints nothing and uses no CPU, and no pattern says why."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The question's line up to what matched, and whether a rule accepts it."""

    text: str
    rule: str
    """The pattern that accepts it; empty: a person answers."""


class ScreenReader:
    def __init__(self, options: TerminalOptions) -> None:
        self._ready = tuple(map(re.compile, options.ready))
        self._asking = tuple(map(re.compile, options.asking))
        self._accept = tuple(map(re.compile, options.accept))
        self._rest = b""
        self._plain = ""
        self._prompt_shown = False
        self.title = ""
        self.bells = 0
        self.notes: list[str] = []
        """Texts of notifications that were not taken yet."""

    def feed(self, data: bytes) -> None:
        data, self._rest = self._rest + data, b""
        if cut := _UNFINISHED.search(data):
            data, self._rest = data[: cut.start()], data[cut.start() :]
        position = 0
        for found in _CONTROL.finditer(data):
            self._print(data[position : found.start()])
            position = found.end()
            self._obey(found)
        self._print(data[position:])

    @property
    def text(self) -> str:
        """The last lines as plain text."""
        return self._plain

    def state(self, *, quiet: bool) -> ScreenState:
        """`quiet`: it has printed nothing for a while and uses no CPU. While it prints, no pattern is trusted."""
        if not quiet:
            return ScreenState.WORKING
        if self.asked() is not None:
            return ScreenState.ASKING
        last = self._plain.rstrip("\n").rpartition("\n")[2]
        if self._prompt_shown or any(one.search(last) for one in self._ready):
            return ScreenState.READY
        return ScreenState.QUIET

    def asked(self) -> Asked | None:
        """The last question on the screen. A rule accepts it only by text that follows the question before it."""
        near = self._plain[-_NEAR_THE_END:]
        found = [list(pattern.finditer(near)) for pattern in self._asking]
        latest = max((one for one in found if one), key=lambda matches: matches[-1].start(), default=None)
        if latest is None:
            return None
        *earlier, last = latest
        before = earlier[-1].end() if earlier else 0
        rule = next((one.pattern for one in self._accept if one.search(near, before)), "")
        line = near[before : last.start()].rpartition("\n")[2] + last[0]
        return Asked(text=line.strip()[-_LONGEST_QUESTION:], rule=rule)

    def answered(self) -> None:
        """An answer was typed: what is on the screen so far is no longer a question."""
        self._plain = ""
        self._prompt_shown = False

    def _print(self, data: bytes) -> None:
        text = data.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
        self._plain = (self._plain + text)[-_KEPT:]

    def _obey(self, found: re.Match[bytes]) -> None:
        if found["bell"] is not None:
            self.bells += 1
        elif found["osc"] is not None:
            self._obey_osc(found["osc"].decode("utf-8", "replace"))
        elif found["csi"] is not None:
            if found["csi"] in _CLEARS:
                self._plain = ""
            elif found["csi"][-1:] in (b"H", b"f", b"d", b"E", b"F", b"B"):
                # The cursor moves to another line: what follows does not continue this one.
                self._print(b"\n")
            elif found["csi"][-1:] in (b"C", b"G"):
                self._print(b" ")

    def _obey_osc(self, text: str) -> None:
        number, _, rest = text.partition(";")
        if number in ("0", "2"):
            self.title = rest[:200]
        elif number == "9" and not rest.startswith("4;"):
            self.notes.append(rest[:500])
        elif number == "777" and rest.startswith("notify;"):
            self.notes.append(rest.removeprefix("notify;").replace(";", ": ")[:500])
        elif number == "133":
            self._prompt_shown = rest[:1] in ("A", "B")
