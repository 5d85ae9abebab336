"""Tables of the documents that tests derive from the code."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """As Markdown; a bar inside a cell is escaped."""
    rule = "|".join(["---"] * len(head))
    lines = [" | ".join(cell.replace("|", "\\|") for cell in row) for row in rows]
    return "".join(f"{line}\n" for line in (f"| {' | '.join(head)} |", f"|{rule}|", *(f"| {line} |" for line in lines)))


def with_table(text: str, name: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """The text with this table between `<!-- name -->` and `<!-- end -->`."""
    before, start, rest = text.partition(f"<!-- {name} -->\n")
    _, end, after = rest.partition("<!-- end -->")
    return f"{before}{start}{table(head, rows)}{end}{after}"
