"""SECURITY.md lists who may call each route as the routes have it. To renew it: run this file."""

from __future__ import annotations

import re

from legion.api import app, machines
from legion.wire.table import IDENTITIES, OpenTo
from tests.support.codebase import ROOT

PAGE = ROOT / "SECURITY.md"
END = "<!-- end -->"
SHOWN = [one for one in IDENTITIES if one is not OpenTo.MACHINE]


def table(head: list[str], lines: list[list[str]]) -> str:
    rows = [head, ["---", *[":-:"] * (len(head) - 1)], *lines]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in rows)


def routes() -> str:
    lines = []
    for entry in app.table(None, None).entries:  # type: ignore[arg-type]  # nothing is called
        methods = " ".join(sorted(entry.methods - {"HEAD"})) or "WebSocket"
        path = re.sub(r":\w+}", "}", entry.path)
        open_to = IDENTITIES if OpenTo.NO_LOGIN in entry.open_to else [one for one in SHOWN if one in entry.open_to]
        lines.append([f"`{methods} {path}`", *("x" if one in open_to else "" for one in SHOWN)])
    return table(["route", *(IDENTITIES[one] for one in SHOWN)], lines)


def machine_routes() -> str:
    lines = [[f"`{one.method} {re.sub(r':[a-z]+}', '}', one.path)}`", one.identity.value] for one in machines.ROUTES]
    return table(["route", "needs"], lines)


def written(page: str) -> str:
    for mark, content in (("<!-- routes -->\n", routes()), ("<!-- machines -->\n", machine_routes())):
        before, start, rest = page.partition(mark)
        _, end, after = rest.partition(END)
        page = f"{before}{start}{content}{end}{after}"
    return page


def test_the_page_about_security_lists_every_route_as_it_is():
    page = PAGE.read_text()
    assert page == written(page)


def test_a_number_of_one_listener_is_read_by_its_own_rule():
    """Both listeners are in one process; each has its own pattern for numbers."""
    scope = {"type": "http", "method": "GET", "path": "/v1/tickets/0", "raw_path": b"/v1/tickets/0"}
    assert app.table(None, None).find(scope) is None  # type: ignore[arg-type]  # nothing is called
    assert machines.PREFIX


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
