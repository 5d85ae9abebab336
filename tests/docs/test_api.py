"""The page about the API lists the operations as the table has them. To renew it: run this file."""

from __future__ import annotations

from legion.wire.operations import OPERATIONS
from legion.wire.table import OpenTo, Operation
from tests.support.codebase import ROOT

PAGE = ROOT / "docs/api.md"
MARK, END = "<!-- operations -->\n", "<!-- end -->"


def line(row: Operation) -> str:
    query = ", ".join(f"`{one.name}`" for one in row.in_query)
    body = "" if row.body is None else f"`{shape(str(row.body.annotation))}`"
    callers = (
        "all agents" if OpenTo.TICKET in row.open_to else "standing agents" if OpenTo.AGENTS in row.open_to else ""
    )
    cells = (f"`{row.method} {row.path}`", row.summary, query, body, f"`{shape(row.answer_name)}`", callers)
    return f"| {' | '.join(cells)} |"


def shape(annotation: str) -> str:
    """wire.tickets.Acted as Acted; what may be left out in brackets."""
    name = annotation.removesuffix(" | None").rpartition(".")[2]
    return f"[{name}]" if annotation.endswith(" | None") else name


def written(page: str) -> str:
    before, start, rest = page.partition(MARK)
    _, end, after = rest.partition(END)
    head = ["| request | does | query | body | answer | also open to |", "|---|---|---|---|---|---|"]
    table = "".join(f"{one}\n" for one in (*head, *map(line, OPERATIONS.values())))
    return f"{before}{start}{table}{end}{after}"


def test_the_page_about_the_api_lists_every_operation_as_it_is():
    page = PAGE.read_text()
    assert MARK in page
    assert page == written(page)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
