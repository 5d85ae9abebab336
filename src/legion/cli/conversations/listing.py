"""`legion conversations` and `search`: what your agent programs and Legion's runs talked about."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.output import Cell, Colour, Screen, clock, count, progress, sanitize, size
from legion.client.text.rows import Column, Columns, Row, listing, note, row
from legion.client.text.tickets import dollars
from legion.wire.conversations import ConversationLine, Conversations, IndexState, SearchHit, SearchResult

_SHORT_ID = 8
_OWN = "legion"
"""The program of Legion's own runs."""
_FIRST_WAIT, _WAIT = 0.5, 20.0
Report = TypeVar("Report")

hours_of = click.FloatRange(min=0.0, min_open=True, max=100_000)
wait_option = click.option("--wait", is_flag=True, help="Wait until every conversation has been read.")


@command("conversations", example="legion conversations\nlegion conversations --hours 720 --json")
@click.option("--hours", type=hours_of, default=168.0, show_default=True, help="Only those of so many hours.")
@wait_option
def conversations(call: CommandCall, hours: float, wait: bool) -> None:
    """Conversations of your own agent programs (Claude Code, Codex, Gemini, opencode) and of Legion's runs.

    Their files are only read. A dot marks a conversation that a program has open now.
    """
    found = settled(call, wait, lambda timeout: call.legion().conversations(hours, timeout), lambda seen: seen.index)
    call.show(found, conversation_rows)
    mention_index(call, found.index)


@command(
    "search",
    example="legion conversations search 'login form'\n"
    "legion conversations search '\"merge queue\" bisect' --hours 720",
)
@click.argument("query", metavar="QUERY")
@click.option("--hours", type=hours_of, default=100_000.0, help="Only in entries of so many hours.")
@click.option("--most", type=click.IntRange(1, 200), default=20, show_default=True, help="Conversations to show.")
@wait_option
def search(call: CommandCall, query: str, hours: float, most: int, wait: bool) -> None:
    """Search in all conversations, newest first.

    All words must occur in one message; "two words" in quotes must follow each other; migr* is the start of a word.
    """
    words = query
    found = settled(
        call,
        wait,
        lambda timeout: call.legion().search_conversations(words, hours, most, timeout),
        lambda seen: seen.index,
    )
    call.answer(found, lambda: _hits(found, call.screen))
    mention_index(call, found.index)


def settled(
    call: CommandCall, wait: bool, ask: Callable[[float], Report], index: Callable[[Report], IndexState]
) -> Report:
    """The report, with --wait only when the index is complete."""
    if not wait:
        return ask(_FIRST_WAIT)
    with progress("Reading conversations"):
        found = ask(_WAIT)
        while index(found).reading:
            found = ask(_WAIT)
    return found


def mention_index(call: CommandCall, index: IndexState) -> None:
    if index.reading:
        call.say(
            f"Note: still reading, {size(index.bytes_done)} of {size(index.bytes)} in {count(index.files, 'file')};"
            " --wait waits for the rest."
        )


def _name(line: ConversationLine) -> str:
    """What `legion conversations export` takes for it. Runs of one agent differ only at the end of their ids."""
    id = sanitize(line.id)
    return id if line.program == _OWN else id[:_SHORT_ID]


CONVERSATION: Columns[ConversationLine] = (
    Column("open", lambda one: "●" if one.alive else " ", Colour.GREEN, keeps=True),
    Column("id", lambda one: _name(one), Colour.BOLD, keeps=True),
    Column("program", lambda one: one.program, Colour.CYAN, keeps=True),
    Column("changed", lambda one: clock(one.modified_at), Colour.DIM, keeps=True),
    Column("project", lambda one: one.project.rpartition("/")[2]),
    Column("messages", lambda one: f"{one.messages} msg"),
    Column("cost", lambda one: "" if one.usd is None else dollars(one.usd)),
    Column("title", lambda one: one.title),
    Column("answer", lambda one: one.last_answer, Colour.DIM),
)


def conversation_rows(found: Conversations, width: int) -> list[Row]:
    if not found.conversations:
        return [row("No conversation in this time: --hours N looks further back.")]
    broken = sum(line.broken for line in found.conversations)
    were = "was" if broken == 1 else "were"
    skipped = [note(f"{count(broken, 'line')} could not be read and {were} skipped", indent=2)] if broken else []
    return [*listing(CONVERSATION, found.conversations, width), *skipped]


def _hits(found: SearchResult, screen: Screen) -> Iterator[str]:
    if not found.hits:
        yield f"Nothing found for {sanitize(found.query)}."
    for hit in found.hits:
        line = hit.conversation
        name = _name(line)
        place = sanitize(line.project).rpartition("/")[2]
        yield screen.line(
            Cell(name, Colour.BOLD),
            Cell(f"  {line.program}", Colour.CYAN),
            Cell(f"  {clock(hit.at)}  {place}  ", Colour.DIM),
            Cell(sanitize(line.title)),
            indent=0,
        )
        yield from _excerpt(hit, screen)


def _excerpt(hit: SearchHit, screen: Screen) -> Iterator[str]:
    cells, end = [Cell(f"{hit.role}: ", Colour.DIM)], 0
    for start, stop in hit.found:
        cells += [Cell(_shown(hit.excerpt[end:start])), Cell(_shown(hit.excerpt[start:stop]), Colour.YELLOW)]
        end = stop
    yield screen.line(*cells, Cell(_shown(hit.excerpt[end:])), indent=4)


def _shown(text: str) -> str:
    """Without what could drive the terminal; spaces at its ends are kept, as the pieces are joined again."""
    inner = sanitize(text)
    return f"{' ' if text[:1] == ' ' and inner else ''}{inner}{' ' if text[-1:] == ' ' else ''}"
