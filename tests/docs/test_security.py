"""SECURITY.md lists who may call each route as the routes have it. To renew it: run this file."""

from __future__ import annotations

import re

from legion.api import app, machines
from legion.domain.agents.tools import Tool
from legion.gateway.access.admission import ROUTES
from legion.jobs.machines.travel import RelayDoor
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


def gateway_routes() -> str:
    """Those of the gateway, and whether a machine's relay passes them on; then what else it passes on."""
    lines = []
    for one in ROUTES:
        path = one.path.format(model="m", name="m")
        relayed = "x" if any(RelayDoor.GATEWAY.opens(method, path) for method in one.methods) else ""
        needs = "the pass of a living run" if one.needs_pass else "nothing"
        lines.append([f"`{' '.join(one.methods)} {one.path}`", needs, relayed])
    assert all(RelayDoor.TOOLS.opens("POST", f"/v1/tools/{one.value}") for one in Tool)
    lines.append(["`POST /v1/tools/{name}` of the daemon", "the token of a living run", "x"])
    return table(["route", "needs", "through a machine's relay"], lines)


def written(page: str) -> str:
    tables = {"routes": routes(), "gateway": gateway_routes(), "machines": machine_routes()}
    for mark, content in ((f"<!-- {name} -->\n", content) for name, content in tables.items()):
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
