#!/usr/bin/env python3
"""A picture of a terminal: text with ANSI colours in, SVG out. Nothing but the standard library.

The picture in the README is a moment of a real run, in a terminal of 92 columns and 42 lines:

    tmux new-session -d -s demo -x 92 -y 42 .venv/bin/legion demo --folder /tmp/legion-demo
    tmux capture-pane -t demo -e -p | tools/picture.py > docs/pictures/demo.svg
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from html import escape

SGR = re.compile(r"\x1b\[([0-9;]*)m")
OTHER_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\([A-Z0-9]|[=>])")

COLUMN, LINE, MARGIN, BAR = 8.4, 19, 16, 30
FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, DejaVu Sans Mono, monospace"
BACKGROUND, FRAME, TEXT = "#16181d", "#2b2f38", "#d7dae0"
COLOURS = {
    31: "#ef7b7b",
    32: "#8fd18a",
    33: "#e5c07b",
    34: "#7aa7f0",
    35: "#c99be8",
    36: "#6fc7c7",
    37: TEXT,
    90: "#7d8492",
}


@dataclass(frozen=True)
class Style:
    colour: str = TEXT
    bold: bool = False
    dim: bool = False

    def after(self, code: int) -> Style:
        if code == 0:
            return Style()
        if code in (1, 2):
            return replace(self, bold=self.bold or code == 1, dim=self.dim or code == 2)
        if code == 22:
            return replace(self, bold=False, dim=False)
        if code == 39:
            return replace(self, colour=TEXT)
        return replace(self, colour=COLOURS.get(code, self.colour))

    @property
    def attributes(self) -> str:
        weight = ' font-weight="bold"' if self.bold else ""
        faint = ' fill-opacity="0.55"' if self.dim else ""
        return f'fill="{self.colour}"{weight}{faint}'


def pieces(line: str, style: Style) -> Iterator[tuple[str, Style]]:
    """The line's texts with their styles; the last one, which may be empty, carries the style into the next line."""
    parts = SGR.split(line)
    yield parts[0], style
    for codes, text in zip(parts[1::2], parts[2::2], strict=True):
        for code in codes.split(";"):
            style = style.after(int(code or 0))
        yield text, style


def columns(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def drawn(line: str, style: Style, y: int) -> tuple[list[str], Style]:
    """Each text stands at its own column, so that a viewer's font cannot push the rest aside."""
    column = 0
    elements = []
    for text, now in pieces(line, style):
        style = now
        word = text.strip(" ")
        if word:
            x = MARGIN + COLUMN * (column + columns(text[: text.index(word[0])]))
            length = COLUMN * columns(word)
            elements.append(
                f'<text x="{x:.1f}" y="{y}" textLength="{length:.1f}" {style.attributes}>{escape(word)}</text>'
            )
        column += columns(text)
    return elements, style


def picture(captured: str) -> str:
    lines = [line.rstrip() for line in OTHER_ESCAPES.sub(_kept, captured).rstrip().splitlines()]
    widest = max((columns(SGR.sub("", line)) for line in lines), default=0)
    width = round(2 * MARGIN + COLUMN * widest)
    height = BAR + 2 * MARGIN + LINE * len(lines)
    elements = []
    style = Style()
    for number, line in enumerate(lines):
        drawn_line, style = drawn(line, style, BAR + MARGIN + LINE * (number + 1) - 5)
        elements += drawn_line
    dots = "".join(f'<circle cx="{20 + 18 * n}" cy="{BAR // 2 + 1}" r="5" fill="#4a505c"/>' for n in range(3))
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size}>',
            f'<rect width="{width}" height="{height}" rx="8" fill="{BACKGROUND}"/>',
            f'<path d="M0 {BAR} V8 a8 8 0 0 1 8 -8 H{width - 8} a8 8 0 0 1 8 8 V{BAR} Z" fill="{FRAME}"/>',
            dots,
            f'<g font-family="{FONT}" font-size="14" xml:space="preserve">',
            *elements,
            "</g>",
            "</svg>",
            "",
        ]
    )


def _kept(found: re.Match[str]) -> str:
    """Colours stay, everything else that a terminal obeys goes."""
    return found[0] if SGR.fullmatch(found[0]) else ""


if __name__ == "__main__":
    sys.stdout.write(picture(sys.stdin.read()))
