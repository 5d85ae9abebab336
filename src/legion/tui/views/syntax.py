"""Colours of programming languages, line by line, by Pygments. A file of an unknown language has none."""

from __future__ import annotations

from typing import Any

from legion.client.text.terminal import Cell, Colour

_LONGEST = 400
"""Longer lines, as in minified files, are not coloured."""
_COLOURS = (
    ("Token.Comment", Colour.DIM),
    ("Token.Literal.String", Colour.YELLOW),
    ("Token.Literal.Number", Colour.YELLOW),
    ("Token.Keyword", Colour.CYAN),
    ("Token.Name.Function", Colour.BLUE),
    ("Token.Name.Class", Colour.BLUE),
    ("Token.Name.Decorator", Colour.BLUE),
    ("Token.Name.Tag", Colour.CYAN),
)


class Colouring:
    """Colours the lines of one file. Pygments is loaded when the first file is shown."""

    def __init__(self, path: str) -> None:
        self._lexer = _lexer(path)

    def cells(self, line: str) -> list[Cell]:
        if self._lexer is None or len(line) > _LONGEST or not line.strip():
            return [Cell(line)]
        cells: list[Cell] = []
        for kind, text in self._lexer.get_tokens(line):
            shown = text.replace("\n", "")
            if shown:
                cells.append(Cell(shown, _colour(str(kind))))
        # The lexer drops spaces at the ends of a line where its language ignores them.
        lost = len(line) - len(line.lstrip()) - (len(cells[0].text) - len(cells[0].text.lstrip()) if cells else 0)
        return [Cell(" " * lost), *cells] if lost > 0 else cells


def _colour(kind: str) -> Colour:
    return next((colour for start, colour in _COLOURS if kind.startswith(start)), Colour.NONE)


def _lexer(path: str) -> Any:  # noqa: ANN401 - Pygments has no types
    from pygments.lexers import get_lexer_for_filename  # type: ignore[import-untyped]
    from pygments.util import ClassNotFound  # type: ignore[import-untyped]

    try:
        return get_lexer_for_filename(path, stripnl=False, stripall=False, ensurenl=False)
    except ClassNotFound:
        return None
