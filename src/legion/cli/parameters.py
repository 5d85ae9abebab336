"""Parameters that several commands share, and how the Tab key fills them in."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from legion.cli.output import harmless
from legion.client.discovery import find
from legion.system.paths import default_data_dir
from legion.wire.errors import LegionError

BIGGEST = 2**63 - 1


class TicketNumber(click.ParamType[int]):
    """12 or #12."""

    name = "N"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        digits = str(value).removeprefix("#")
        if not (digits.isascii() and digits.isdigit() and 1 <= int(digits[:20]) <= BIGGEST):
            self.fail(
                f"`{harmless(str(value))[:40]}` is no ticket number: write the one that `legion status` shows",
                param,
                ctx,
            )
        return int(digits)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """Living tickets by number; nothing where the daemon is not running, for a Tab must start nothing."""
        try:
            tickets = find(ctx.params.get("data_dir") or default_data_dir()).status(None).tickets
        except LegionError:
            return []
        found = [ticket for ticket in tickets if str(ticket.id).startswith(incomplete.removeprefix("#"))]
        return [CompletionItem(str(ticket.id), help=harmless(ticket.title)[:60]) for ticket in found]


TICKET = TicketNumber()

ticket_argument = click.argument("id", metavar="N", type=TICKET)
