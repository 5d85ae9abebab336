"""`legion conversations export`, `analytics`, `health` and `ask`: one conversation, and reports on all of them."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.output import count, sanitize, size, thousands
from legion.cli.base.parameters import files
from legion.cli.base.row_command import row_command
from legion.cli.conversations.listing import CONVERSATION, hours_of, mention_index, settled, wait_option
from legion.client.text.rows import BLANK, Column, Columns, Row, head, listing, note, row
from legion.client.text.terminal import sanitize_lines
from legion.client.text.tickets import dollars
from legion.wire.conversations import (
    Analytics,
    ConversationAnswer,
    ConversationHealth,
    ConversationRows,
    ConversationSums,
)
from legion.wire.errors import BadInput, LegionError

_FORMATS = ("md", "json", "html")
_SHOWN = 10


@command(
    "export",
    example="legion conversations export 3f2a90c1 -o talk.md\n"
    "legion conversations export --last --format html -o talk.html",
)
@click.argument("id", metavar="[ID]", default="")
@click.option("--last", is_flag=True, help="The conversation that changed last.")
@click.option(
    "-o", "--output", metavar="FILE", type=click.Path(path_type=Path), shell_complete=files, help="Write here."
)
@click.option("--format", type=click.Choice(_FORMATS), help="Default: by the name of FILE, else md.")
def export(call: CommandCall, id: str, last: bool, output: Path | None, format: str | None) -> None:
    """Write one conversation as Markdown, JSON or HTML, to stdout or to a file that does not exist yet.

    ID is the id or its first characters, as `legion conversations` shows them, or a ticket's number: its last run.
    """
    if bool(id) == last:
        raise BadInput("Name one conversation: its ID, or --last.")
    chosen = format or (output.suffix.removeprefix(".") if output and output.suffix[1:] in _FORMATS else "md")
    found = call.legion().export_conversation(id, chosen)
    if output is not None:
        _write(output, found.text)
        call.say(f"Written to {sanitize(str(output))}.")
    elif call.json:
        call.answer(found, list)
    else:
        sys.stdout.write(found.text if chosen == "json" else "\n".join(sanitize_lines(found.text)) + "\n")


def _write(output: Path, text: str) -> None:
    """Never over a file that exists."""
    try:
        with output.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise BadInput(f"{sanitize(str(output))} exists already; choose another name.") from None
    except OSError as error:
        raise LegionError(f"{sanitize(str(output))} cannot be written ({error.strerror}); choose another.") from None


@command("analytics", example="legion conversations analytics\nlegion conversations analytics --hours 720 --json")
@click.option("--hours", type=hours_of, default=24.0, show_default=True, help="Only conversations of so many hours.")
@wait_option
def analytics(call: CommandCall, hours: float, wait: bool) -> None:
    """How much you and your agents talked: conversations, messages, tokens and money.

    By program, project, model and day (UTC). Conversations of subagents are counted, too.
    """
    found = settled(call, wait, lambda timeout: call.legion().analytics(hours, timeout), lambda seen: seen.index)
    call.show(found, _analytics)
    mention_index(call, found.index)


_SUMS: Columns[ConversationSums] = (
    Column("", lambda one: one.key or "(unknown)"),
    Column("conversations", lambda one: str(one.conversations)),
    Column("messages", lambda one: str(one.messages)),
    Column("tokens", lambda one: thousands(one.tokens)),
    Column("cost", lambda one: dollars(one.usd)),
)


def _analytics(found: Analytics, width: int) -> list[Row]:
    if not found.total.conversations:
        return [row("No conversation in this time: --hours N looks further back.")]
    parts = {"program": found.by_program, "project": found.by_project, "model": found.by_model, "day": found.by_day}
    made: list[Row] = []
    for name, groups in parts.items():
        made += listing((replace(_SUMS[0], label=name), *_SUMS[1:]), groups[:_SHOWN], width, heads=True)
        made += [note(f"and {len(groups) - _SHOWN} more (--json)", indent=2)] if len(groups) > _SHOWN else []
        made.append(BLANK)
    made += listing(_SUMS, [], width, total=replace(found.total, key="all"))
    unpriced = f"{count(found.total.unpriced, 'conversation')} with models without a known price"
    return [*made, note(unpriced, indent=2)] if found.total.unpriced else made


@command("health", example="legion conversations health\nlegion conversations health --hours 2160 --json")
@click.option("--hours", type=hours_of, default=168.0, show_default=True, help="Only conversations of so many hours.")
@wait_option
def health(call: CommandCall, hours: float, wait: bool) -> None:
    """Conversations that are stale (48 hours), large (1,000 messages), orphaned (folder gone) or damaged; their space.

    Legion removes none of them: they belong to your programs. `legion doctor` checks Legion itself.
    """
    found = settled(
        call, wait, lambda timeout: call.legion().conversation_health(hours, timeout), lambda seen: seen.index
    )
    call.show(found, _health)
    mention_index(call, found.index)


def _health(found: ConversationHealth, width: int) -> list[Row]:
    many = count(found.conversations, "conversation")
    groups = {
        **{f"{name}: {found.counts[name]}": getattr(found, name) for name in ("stale", "large", "orphaned", "broken")},
        "largest": found.largest,
        "oldest": found.oldest,
    }
    return [
        row(f"{many}, {size(found.bytes)}; the index takes {size(found.index_bytes)}"),
        *(
            one
            for title, lines in groups.items()
            for one in (head(title), *listing(CONVERSATION, lines[:_SHOWN], width, indent=2))
        ),
    ]


_ASK = """\
legion conversations ask 12 'Why did you rename the table?'
legion conversations ask 3f2a90c1 'What is left to do?'"""


def _answer(found: ConversationAnswer, width: int) -> list[Row]:
    return [row(line) for line in sanitize_lines(found.answer)]


def _say_cost(call: CommandCall, found: ConversationAnswer) -> None:
    if found.usd:
        call.say(f"Note: this answer cost {dollars(found.usd)}.")


ask = row_command("ask", ConversationRows.ask_conversation, _ASK, shows=_answer, then=_say_cost, waiting="Asking")
