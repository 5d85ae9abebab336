"""A fast path of `legion dispatch` that imports neither click nor the wire's shapes: it saves about 170 ms of CPU.

Whatever is not plain (a terminal, help, --from, --json, a text from stdin, a mistake, a daemon that is not running) is
left to the complete command, which reads the arguments again.
"""

from __future__ import annotations

import os
import sys

from legion import __version__
from legion.cli.base.dispatch_options import OPTIONS
from legion.cli.base.texts import short_title, valid_text
from legion.cli.quick_connection import connection
from legion.client.http import DaemonConnection, NotRunning, Unanswered
from legion.wire.errors import BadInput, LegionError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_DIGITS = 9


def dispatch(arguments: Sequence[str]) -> int | None:
    """The exit code, or None where nothing was done and the complete command has to run."""
    try:
        ticket = read(arguments)
        cwd = os.getcwd()  # noqa: PTH109  # importing pathlib takes longer than all of this
    except (BadInput, FileNotFoundError):
        return None
    line = connection()
    # In a terminal the complete command also reports the variables of the person's shell.
    if ticket is None or line is None or os.isatty(0):
        return None
    try:
        made = line.ask("POST", "/v1/tickets", body={"cwd": cwd, "tickets": [ticket], "request": os.urandom(16).hex()})
        _report(made, line)
    except LegionError as error:
        if isinstance(error, NotRunning) and not isinstance(error, Unanswered):
            return None
        sys.stderr.write(" ".join(error.message.split()) + "\n")
        return error.exit_code
    except BrokenPipeError:
        from legion.cli.run import close_quietly

        close_quietly()
    return 0


def read(arguments: Sequence[str]) -> dict[str, Any] | None:
    """The ticket that these arguments of `dispatch` describe, in the wire's fields; None where they are not plain."""
    ticket: dict[str, Any] = {}
    texts: list[str] = []
    left = [valid_text(word, "It") for word in reversed(arguments)]
    while left:
        word = left.pop()
        option, equals, value = word.partition("=")
        if not word.startswith("-"):
            texts.append(word)
        elif word in OPTIONS and OPTIONS[word][1] == "flag":
            ticket[OPTIONS[word][0]] = True
        elif not equals and left and not left[-1].startswith("-"):
            if not _take(ticket, word, left.pop()):
                return None
        elif not equals or not option.startswith("--") or not _take(ticket, option, value):
            return None
    if len(texts) > 1:
        return None
    ticket["text"] = "".join(texts)
    ticket["title"] = ticket.get("title") or short_title(ticket["text"])
    return ticket


def _take(ticket: dict[str, Any], option: str, value: str) -> bool:
    """Put the option's value into the ticket; False where only the complete command knows what to do."""
    name, kind, limits = OPTIONS.get(option) or ("", "", ())
    match kind:
        case "text":
            ticket[name] = value
            return not limits or value in limits
        case "texts":
            ticket.setdefault(name, []).append(value)
            return True
        case "tickets":
            numbers = value.split(",")
            if not all(_is_number(number) and int(number) > 0 for number in numbers):
                return False
            ticket[name] = list(dict.fromkeys([*ticket.get(name, []), *map(int, numbers)]))
            return True
        case "whole" if _is_number(value):
            ticket[name] = int(value)
            return _is_within(ticket[name], limits)
        case "amount" if _is_number(value.replace(".", "", 1)):
            ticket[name] = float(value)
            # For an amount the lower limit is not included.
            return _is_within(ticket[name], limits) and ticket[name] != limits[0]
    return False


def _is_within(number: float, limits: tuple[str | int, ...]) -> bool:
    least, most = map(int, limits)
    return least <= number <= most


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) <= _DIGITS


def _report(made: dict[str, Any], line: DaemonConnection) -> None:
    """Print the number; notes or another version of the daemon are printed by the complete command's code."""
    if line.daemon_version == __version__ and not made["notes"]:
        sys.stdout.write("".join(f"Ticket ID: {id}\n" for id in made["ids"]))
        sys.stdout.flush()
        return
    from pathlib import Path

    from legion.cli.base.command import CommandCall
    from legion.cli.base.output import Screen
    from legion.cli.tickets.dispatch import report
    from legion.client.legion import Legion
    from legion.wire.dispatch import Dispatched

    legion = Legion(line.address, line)
    call = CommandCall(json=False, data_dir=Path(), screen=Screen.of(sys.stdout, plain=True))
    call.mention_version(legion)
    report(call, legion.understood(Dispatched, made), tip=False)
