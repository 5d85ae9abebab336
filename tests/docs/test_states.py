"""The page about tickets shows the states and moves as the domain has them. To write them anew: run this file."""

from __future__ import annotations

import inspect
import re

from legion.domain.tickets import ticket
from legion.domain.tickets.ticket import MOVES, State, Unpark
from tests.support.codebase import ROOT

PAGE = ROOT / "docs/tickets.md"


def states() -> list[str]:
    """Each state with the words that stand below it in the code."""
    source = inspect.getsource(State)
    words = dict(re.findall(r'= "(\w+)"\n    """(.*?)"""', source))
    return ["| state | means |", "|---|---|", *(f"| `{state.value}` | {words[state.value]} |" for state in State)]


def moves() -> list[str]:
    """One line per step, since many start from several states."""
    origins: dict[tuple[str, str], list[str]] = {}
    for (origin, step), goal in MOVES.items():
        origins.setdefault((step.__name__, goal.value), []).append(f"`{origin.value}`")
    lines = [f"| {', '.join(froms)} | {said(step)} | `{goal}` |" for (step, goal), froms in origins.items()]
    return [
        "| from | step | to |",
        "|---|---|---|",
        *lines,
        f"| `parked` | {said(Unpark.__name__)} | where it was; an interrupted run starts again in `queued` |",
    ]


def said(step: str) -> str:
    """The step's own words, where it has any."""
    doc = inspect.getdoc(getattr(ticket, step)) or ""
    sentence = " ".join(doc.split())
    return sentence if not sentence.startswith(f"{step}(") else WORDLESS[step]


WORDLESS = {"Park": "It has to wait for something outside.", "Stop": "A person stops it."}


def written(text: str) -> str:
    for name, lines in (("states", states()), ("moves", moves())):
        before, start, rest = text.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition("<!-- end -->")
        table = "".join(f"{line}\n" for line in lines)
        text = f"{before}{start}{table}{end}{after}"
    return text


def test_the_page_about_tickets_shows_states_and_moves_as_they_are():
    assert PAGE.read_text() == written(PAGE.read_text())


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
