"""`legion conversations export`, `analytics`, `health` and `ask`: one conversation, and reports on all of them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.output import Cell, Colour, Screen, count, sanitize, size, thousands
from legion.cli.base.parameters import files
from legion.cli.base.progress import progress
from legion.cli.base.texts import read_text
from legion.cli.board.status import dollars
from legion.cli.conversations.listing import hours_of, mention_index, row, settled, wait_option
from legion.client.text.terminal import sanitize_lines
from legion.wire.conversations import Analytics, AskConversation, ConversationHealth, ConversationLine, ConversationSums
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
    call.answer(found, lambda: _analytics(found, call.screen))
    mention_index(call, found.index)


def _analytics(found: Analytics, screen: Screen) -> Iterator[str]:
    if not found.total.conversations:
        yield "No conversation in this time: --hours N looks further back."
        return
    parts = (
        ("program", found.by_program),
        ("project", found.by_project),
        ("model", found.by_model),
        ("day", found.by_day),
    )
    for name, groups in parts:
        head = [Cell(word, Colour.DIM) for word in (name, "conversations", "messages", "tokens", "cost")]
        yield from screen.table([head, *(_sums_row(sums) for sums in groups[:_SHOWN])], indent=0)
        if len(groups) > _SHOWN:
            yield from screen.aside(f"and {len(groups) - _SHOWN} more (--json)")
        yield ""
    yield from screen.table([[Cell(cell.text, Colour.BOLD) for cell in _sums_row(found.total, "all")]], indent=0)
    if found.total.unpriced:
        yield from screen.aside(f"{count(found.total.unpriced, 'conversation')} with models without a known price")


def _sums_row(sums: ConversationSums, name: str = "") -> list[Cell]:
    return [
        Cell(name or sanitize(sums.key) or "(unknown)"),
        Cell(str(sums.conversations)),
        Cell(str(sums.messages)),
        Cell(thousands(sums.tokens)),
        Cell(dollars(sums.usd)),
    ]


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
    call.answer(found, lambda: _health(found, call.screen))
    mention_index(call, found.index)


def _health(found: ConversationHealth, screen: Screen) -> Iterator[str]:
    many = count(found.conversations, "conversation")
    yield f"{many}, {size(found.bytes)}; the index takes {size(found.index_bytes)}"
    groups = (
        ("stale", found.stale),
        ("large", found.large),
        ("orphaned", found.orphaned),
        ("broken", found.broken),
    )
    for name, lines in groups:
        yield from _group(f"{name}: {found.counts[name]}", lines, screen)
    yield from _group("largest", found.largest, screen)
    yield from _group("oldest", found.oldest, screen)


def _group(title: str, lines: Sequence[ConversationLine], screen: Screen) -> Iterator[str]:
    yield screen.line(Cell(title, Colour.BOLD), indent=0)
    yield from screen.table([row(line, screen) for line in lines[:_SHOWN]], indent=2)


@command(
    "ask",
    example="legion conversations ask 12 'Why did you rename the table?'\n"
    "legion conversations ask 3f2a90c1 'What is left to do?'",
)
@click.argument("run", metavar="RUN")
@click.argument("question", metavar="QUESTION")
@click.option("--model", metavar="NAME", default="", help="The model that answers; default: as in your settings.")
def ask(call: CommandCall, run: str, question: str, model: str) -> None:
    """Ask a finished conversation; - reads the question from stdin.

    RUN is a ticket's number, or the id of a conversation. A copy of the conversation answers: it can read and change
    nothing, and the conversation stays as it is. The answer costs tokens for all of the conversation.
    """
    wanted = AskConversation(
        id=run,
        question=read_text(question, "QUESTION"),
        model=model,
    )
    with progress("Asking"):
        answer = call.legion().ask_conversation(wanted)
    call.answer(answer, lambda: sanitize_lines(answer.answer))
    if answer.usd:
        call.say(f"Note: this answer cost {dollars(answer.usd)}.")
