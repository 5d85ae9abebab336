"""`legion export-beads`: the project's tickets as beads, one line of JSON each, for `bd import`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.output import count
from legion.cli.base.parameters import files
from legion.wire.errors import BadInput
from legion.wire.ticket_pages import TicketPage

_STATUS = {
    "draft": "open",
    "queued": "open",
    "parked": "blocked",
    "failed": "blocked",
    "stopped": "deferred",
    "done": "closed",
}


@command("export-beads", example="legion export-beads -o .beads/issues.jsonl\nlegion export-beads | bd import")
@click.option("-o", "--output", metavar="FILE", shell_complete=files, help="A new file; stdout if left out.")
@click.option("--prefix", metavar="NAME", default="legion", show_default=True, help="Ticket 7 becomes NAME-7.")
@click.option("--all", "every", is_flag=True, help="Ended tickets, too.")
def export_beads(call: CommandCall, output: str | None, prefix: str, every: bool) -> None:
    """Print the project's tickets as beads, one line of JSON each."""
    if not prefix.isascii() or not prefix.replace("-", "").isalnum():
        raise BadInput(f"`{prefix[:40]}` is no prefix of beads; write letters, digits and dashes.")
    legion = call.legion()
    tickets = [one for one in legion.status(call.cwd, True).tickets if every or one.state != "done"]
    lines = list(_lines([legion.ticket(one.id) for one in tickets], prefix))
    if output is None:
        for line in lines:
            call.out(line)
        return
    try:
        with Path(output).open("x", encoding="utf-8") as file:
            file.write("".join(f"{line}\n" for line in lines))
    except FileExistsError:
        raise BadInput(f"{output} exists; pass a new file, or remove it first.") from None
    except OSError as trouble:
        raise BadInput(f"{output} cannot be written ({trouble.strerror}); pass another file.") from None
    call.say(f"{count(len(lines), 'ticket')} written to {output}.")


def _lines(pages: list[TicketPage], prefix: str) -> Iterator[str]:
    epics = {name: f"{prefix}-e{n}" for n, name in enumerate(dict.fromkeys(p.ticket.epic for p in pages), 1) if name}
    there = {page.ticket.id for page in pages}
    for name, id in epics.items():
        inside = [page.ticket for page in pages if page.ticket.epic == name]
        closed = all(one.state == "done" for one in inside)
        yield json.dumps(
            {
                "id": id,
                "title": name,
                "status": "closed" if closed else "open",
                "priority": 2,
                "issue_type": "epic",
                "created_at": _time(min(one.created_at for one in inside)),
                "updated_at": _time(max(one.moved_at for one in inside)),
            },
            ensure_ascii=False,
        )
    for page in pages:
        yield json.dumps(_bead(page, prefix, epics.get(page.ticket.epic, ""), there), ensure_ascii=False)


def _bead(page: TicketPage, prefix: str, epic: str, there: set[int]) -> dict[str, object]:
    one = page.ticket
    id = f"{prefix}-{one.id}"
    edges = [(f"{prefix}-{other}", "blocks") for other in one.after if other in there]
    edges += [(epic, "parent-child")] if epic else []
    made: dict[str, object] = {
        "id": id,
        "title": one.title,
        "description": page.text,
        "notes": page.context,
        "acceptance_criteria": page.criteria,
        "design": page.plan,
        "status": _STATUS.get(one.state, "in_progress"),
        # 0 is the most urgent there, and 2 is usual.
        "priority": min(4, max(0, 2 - one.priority)),
        "issue_type": "task",
        "labels": one.labels,
        "created_at": _time(one.created_at),
        "updated_at": _time(one.moved_at),
        "closed_at": _time(one.moved_at) if one.state == "done" else None,
        "dependencies": [
            {"issue_id": id, "depends_on_id": other, "type": kind, "created_at": _time(one.created_at)}
            for other, kind in edges
        ],
    }
    return {key: value for key, value in made.items() if value or key == "priority"}


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
