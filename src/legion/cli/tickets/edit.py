"""`legion edit` and `legion retry`: a ticket's fields, changed before it starts or is tried again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.parameters import TICKET, TICKETS, ticket_argument
from legion.cli.base.texts import read_text, valid_text
from legion.wire.controls import EditTicket
from legion.wire.dispatch import TICKET_FIELDS
from legion.wire.errors import BadInput
from legion.wire.tickets import Action

_TEXTS = ("title", "text", "context", "criteria", "plan")
_GATES = ("auto", "person", "project")


def _edit_options(function: Callable[..., None]) -> Callable[..., None]:
    """One option for each field that can be changed."""
    short = {name: TICKET_FIELDS[name].rule.short for name in _TEXTS}
    options = [
        *(click.option(*filter(None, (short[name], f"--{name}")), name, help=_help(name)) for name in _TEXTS),
        click.option(
            "-a", "--after", "after", type=TICKETS, metavar="N,N", help="Tickets that must land before it; none: ''."
        ),
        click.option("--files", "files", multiple=True, metavar="GLOB", help="Files it may touch; may be given again."),
        click.option("--priority", "priority", type=int, metavar="N", help="Higher starts and lands first."),
        click.option("--gate", "gate", type=click.Choice(_GATES), help="Whether its change waits for `legion land`."),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def _help(name: str) -> str:
    return f"Its new {name}; - reads it from stdin." if name != "title" else "Its new title."


def _wanted(options: dict[str, Any]) -> EditTicket | None:
    """None where no option was given."""
    given = {name: value for name, value in options.items() if value not in (None, ())}
    if not given:
        return None
    for name in _TEXTS:
        if name in given:
            given[name] = read_text(given[name], f"--{name}")
    if "files" in given:
        given["files"] = [valid_text(one, "--files") for one in given["files"] if one]
    if given.get("gate") == "project":
        given["gate"] = ""
    return EditTicket(**given)


@command("edit", example="legion edit 12 --priority 5\nlegion edit 12 -k 'make test passes' -a 9,10")
@ticket_argument
@_edit_options
def edit(call: CommandCall, id: int, **options: Any) -> None:  # noqa: ANN401
    """Change a ticket before it starts. Priority and gate can change at any time.

    An ended ticket can be edited, too: the change counts when it is tried again.
    """
    wanted = _wanted(options)
    if wanted is None:
        raise BadInput(f"Name what to change: `legion edit {id} --priority 5`; `legion edit --help` lists the options.")
    call.report(call.legion().edit(id, wanted))


@command(
    "retry", example="legion retry 12 --feedback 'Keep the old API working.'\nlegion retry 12 -k 'make test passes'"
)
@click.argument("ids", metavar="N...", type=TICKET, nargs=-1, required=True)
@click.option(
    "--feedback", default="", metavar="TEXT", help="What the next attempt should know; - reads it from stdin."
)
@_edit_options
def retry(call: CommandCall, ids: tuple[int, ...], feedback: str, **options: Any) -> None:  # noqa: ANN401
    """Try failed or stopped tickets again, with a fresh count of attempts, and with other texts if you like."""
    action = Action(feedback=read_text(feedback, "--feedback"), edit=_wanted(options))
    legion = call.legion()
    call.report_each(ids, lambda id: legion.retry(id, action))
