"""Warm conversations: tokens of tickets that copy a conversation of their epic, against tickets that read themselves.

The scripted model counts as a provider with a prompt cache does. What it cannot decide is written into the scripts: an
agent with a copy does not read again what the copy holds.
"""

from __future__ import annotations

from pathlib import Path

from bench.report import Report
from tests.support.models import Company, company
from tests.support.repository import CHECK

_FILES = 8
_LINES = 200
_TICKETS = 4
_READ = "".join(
    f'[[step]]\ncall = {{tool = "Read", input = {{file_path = "{{cwd}}/part{number}.py"}}}}\n'
    for number in range(_FILES)
)
_WRITE = """\
[[step]]
call = {tool = "Write", input = {file_path = "{cwd}/done-{name}.txt", content = "done\\n"}}
[[step]]
say = "Done."
[capture]
name = 'piece (\\S+)'
"""


def run(folder: Path, report: Report) -> None:
    code = "".join(f"def step_{number}(value: int) -> int:\n    return value + {number}\n" for number in range(_LINES))
    files = {f"part{number}.py": f'"""Part {number}."""\n{code}' for number in range(_FILES)}
    config = CHECK.replace("[agents]\n", "[agents]\nwarm = true\n")
    with company(folder, config=config, files=files, cached=True) as one:
        one.script("reads", _READ + _WRITE)
        one.script("knows", _WRITE)
        plain = _spent(one, [_ticket(one, "reads", f"plain-{number}") for number in range(_TICKETS)])
        _spent(one, [_ticket(one, "reads", "first", epic="warm")])
        warm = _spent(one, [_ticket(one, "knows", f"warm-{number}", epic="warm") for number in range(_TICKETS)])
    for name in plain:
        report.value(f"{name}, each ticket reads for itself", plain[name], "a ticket")
        report.value(f"{name}, as a copy of one that has read", warm[name], "a ticket", aim=plain[name])


def _ticket(one: Company, script: str, piece: str, **fields: object) -> int:
    text = f"rehearsal: {script}. This is piece {piece}"
    return one.project.dispatch(piece, "", text=text, driver="claude", **fields)


def _spent(one: Company, tickets: list[int]) -> dict[str, float]:
    """The means per ticket."""
    one.project.until_settled(*tickets, patience=200)
    pages = [one.project.ticket(ticket) for ticket in tickets]
    assert [page.ticket.state for page in pages] == ["done"] * len(pages)
    copies = [bool(page.forked_from) for page in pages]
    assert len(set(copies)) == 1, copies
    used = [page.usage for page in pages if page.usage is not None]
    sums = {
        "tokens written to the cache": sum(spent.cache_write for spent in used),
        "tokens read from the cache": sum(spent.cache_read for spent in used),
        "tokens of answers": sum(spent.output for spent in used),
        "dollars": sum(spent.usd for spent in used),
    }
    return {name: value / len(tickets) for name, value in sums.items()}
