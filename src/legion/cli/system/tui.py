"""`legion tui`: opens the terminal UI; with --plain, a loop that reads commands of `legion` line by line."""

from __future__ import annotations

import contextlib
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.output import sanitize
from legion.client.text import board
from legion.wire.errors import BadInput, LegionError, NotFound

_LINES = {
    "board [FILTER]": "All tickets, or those with these words.",
    "tree [FILTER]": "Tickets below those that they wait for.",
    "inbox": "Questions that wait for you.",
    "answer N CHOICE [TEXT]": "Answer a question.",
    "ticket N, log N, diff N": "Everything about one ticket, the output of its agent, its change.",
    "history N": "What happened to it.",
    "agents": "Standing agents, and your mail.",
    "queue": "The merge queue.",
    "usage [day|ticket|agent|model|epic]": "Spending.",
    "tell N|AGENT TEXT": "Send a message.",
    "retry N [FEEDBACK]": "Try it again.",
    "stop, pause, resume, interrupt, review, land, undo, drop N": "Act on a ticket.",
    "COMMAND ...": "Any other command of `legion`; `help COMMAND` explains one.",
    "quit": "Leave.",
}


@command("tui", example="legion tui\nlegion tui ~/shop\nlegion tui --plain")
@click.argument("project", metavar="[PROJECT]", default="")
@click.option("--plain", is_flag=True, help="The same by lines, for screen readers and dull terminals.")
def tui(call: CommandCall, project: str, plain: bool) -> int:
    """Open the terminal UI of this project, or of PROJECT: a folder inside it, or its name.

    Without a command, `legion` does the same in a terminal. `?` shows the keys, docs/tui.md the screens.
    """
    if call.json:
        raise BadInput("The terminal UI has no JSON; use `legion status --json` or `legion status events --json`.")
    cwd = _folder(call, project) if project else call.cwd
    if plain:
        os.chdir(cwd)
        return _read_lines(call)
    from legion.tui.start import run

    return run(call.data_dir, cwd)


def _folder(call: CommandCall, project: str) -> str:
    folder = Path(project).expanduser()
    if folder.is_dir():
        return str(folder.absolute())
    known = call.legion().status(None).projects
    found = next((one for one in known if one.name == project), None)
    if found is None:
        names = ", ".join(one.name for one in known) or "none yet"
        raise NotFound(f"There is no folder and no project `{project[:60]}`; the projects are: {names}.")
    return found.root


def _read_lines(call: CommandCall) -> int:
    """Run commands until the end of the input. Nothing is printed in between."""
    interactive = sys.stdin.isatty()
    _run(call, ["board"])
    if interactive:
        call.out("\nType a command; help lists them, quit leaves.")
    while True:
        if interactive:
            call.out_piece("> ")
        line = sys.stdin.readline()
        words = line.split()
        if not line or words[:1] in (["quit"], ["q"]):
            return 0
        with contextlib.suppress(ValueError):
            words = words if words[:1] in _WITH_TEXT else shlex.split(line)
        words = words[1:] if words[:1] == ["legion"] else words
        if words:
            _run(call, words)


_WITH_TEXT = (["tell"], ["interrupt"], ["retry"], ["answer"])
"""What stands behind their number needs no quotes."""


def _run(call: CommandCall, words: Sequence[str]) -> None:
    try:
        match words:
            case ["help"]:
                space = max(map(len, _LINES))
                for usage, text in _LINES.items():
                    call.out(f"{usage:<{space}}  {text}")
            case ["board" | "tree" as form, *filter] if filter:
                _filtered(call, form, " ".join(filter))
            case ["answer", id, choice, *rest] if rest and not _has_choices(call, id):
                _invoke(call, ["answer", id, " ".join([choice, *rest])])
            case _:
                for one in _meant(list(words)):
                    _invoke(call, one)
    except click.ClickException as error:
        call.out(error.format_message())
    except click.exceptions.Exit:
        return
    except LegionError as error:
        call.out(sanitize(error.message))


def _meant(words: list[str]) -> list[list[str]]:
    """The commands that a line stands for."""
    match words:
        case ["board"]:
            return [["status"]]
        case ["tree"]:
            return [["status", "graph"]]
        case ["queue"]:
            return [["status", "queue"]]
        case ["history", id]:
            return [["status", "events", id, "--last", "40"]]
        case ["usage", by] if not by.startswith("-"):
            return [["usage", "--by", by]]
        case ["agents"]:
            return [["agents", "--tree"], ["inbox", "mail", "--all"]]
        case ["tell" | "retry" | "interrupt" as verb, to, text, *rest]:
            return [[verb, to, " ".join([text, *rest])]]
        case ["answer", id, choice, text, *rest]:
            return [["answer", id, choice, " ".join([text, *rest])]]
    return [words]


def _invoke(call: CommandCall, words: list[str]) -> None:
    root = click.get_current_context().find_root().command
    common = ["--data-dir", str(call.data_dir), *(["--session", call.session] if call.session else [])]
    common += [] if call.screen.colours else ["--no-color"]
    with root.make_context("legion", [*common, *words]) as context:
        root.invoke(context)


def _filtered(call: CommandCall, form: str, filter: str) -> None:
    legion, width = call.legion(), call.screen.columns
    if form == "tree":
        rows = board.tree(legion.graph(call.cwd), width, filter)
    else:
        rows = board.listed(board.shown(legion.status(call.cwd).tickets, filter), width)
    for line in call.screen.rows(rows):
        call.out(line)


def _has_choices(call: CommandCall, id: str) -> bool:
    waiting = call.legion().inbox().questions
    return any(one.choices for one in waiting if str(one.id) == id.removeprefix("#"))
