"""`legion dispatch` in its everyday form, asked for before click and the wire's shapes are imported.

Those cost more than everything else until the agent starts. Whatever is not plain (help, --from, --json, a text from
stdin, a mistake, a daemon that is not running) is left to the whole command, which reads the words again.
"""

from __future__ import annotations

import os
import sys

from legion import __version__
from legion.cli.base.texts import checked, short_title
from legion.client.http import DaemonAddress, DaemonConnection, NotRunning, Unanswered
from legion.wire.errors import BadInput, LegionError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_SHORT = {"-t": "--title", "-c": "--context", "-k": "--criteria", "-p": "--plan"}
_TEXTS = ("--title", "--context", "--criteria", "--plan", "--epic", "--driver", "--command", "--model")
_LISTS = ("--files", "--prove")
_FLAGS = ("--checkpoint", "--ask", "--plan-first")
_NUMBERS = {"--priority": (-1000, 1000), "--max-attempts": (1, 20)}
_DIGITS = 9


def dispatch(words: Sequence[str]) -> int | None:
    """The exit code, or None where nothing was done and the whole command has to."""
    try:
        ticket = read(words)
        cwd = os.getcwd()  # noqa: PTH109  # pathlib takes longer to import than all of this
    except (BadInput, FileNotFoundError):
        return None
    line = _line()
    if ticket is None or line is None:
        return None
    try:
        made = line.ask("POST", "/v1/tickets", body={"cwd": cwd, "tickets": [ticket], "request": os.urandom(16).hex()})
        _tell(made, line, tip=not (ticket.get("context") or ticket.get("criteria")))
    except LegionError as error:
        if isinstance(error, NotRunning) and not isinstance(error, Unanswered):
            return None
        sys.stderr.write(" ".join(error.message.split()) + "\n")
        return error.exit_code
    except BrokenPipeError:
        from legion.cli.run import close_quietly

        close_quietly()
    return 0


def read(words: Sequence[str]) -> dict[str, Any] | None:
    """The ticket that these words behind `dispatch` ask for, in the wire's fields; None where they are not plain."""
    told: dict[str, Any] = {}
    texts: list[str] = []
    left = [checked(word, "It") for word in reversed(words)]
    while left:
        word = left.pop()
        option, equals, value = word.partition("=")
        if not word.startswith("-"):
            texts.append(word)
        elif word in _FLAGS:
            told[_field(word)] = True
        elif not equals and left and not left[-1].startswith("-"):
            if not _take(told, _SHORT.get(word, word), left.pop()):
                return None
        elif not equals or not _take(told, option, value):
            return None
    if len(texts) > 1:
        return None
    told["text"] = "".join(texts)
    told["title"] = told.get("title") or short_title(told["text"])
    return told


def _take(told: dict[str, Any], option: str, value: str) -> bool:
    """Put the option's value with what was told; False where only the whole command knows what to do."""
    if option in _TEXTS:
        told[_field(option)] = value
    elif option in _LISTS:
        told.setdefault(_field(option), []).append(value)
    elif option in _NUMBERS:
        least, most = _NUMBERS[option]
        if not _is_number(value) or not least <= int(value) <= most:
            return False
        told[_field(option)] = int(value)
    elif option == "--budget":
        if not _is_number(value.replace(".", "", 1)):
            return False
        told["budget"] = float(value)
    elif option == "--after":
        numbers = value.split(",")
        if not all(_is_number(number) and int(number) > 0 for number in numbers):
            return False
        told["after"] = list(dict.fromkeys([*told.get("after", []), *map(int, numbers)]))
    else:
        return False
    return True


def _field(option: str) -> str:
    return option.lstrip("-").replace("-", "_")


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) <= _DIGITS


def data_dir() -> str | None:
    """The folder that `system.paths` would choose; None where only that knows what a relative one means."""
    folder, data, home = (os.environ.get(name) for name in ("LEGION_DATA_DIR", "XDG_DATA_HOME", "HOME"))
    if not folder:
        folder = f"{data}/legion" if data else f"{home}/.local/share/legion" if home else ""
    return folder if folder.startswith("/") else None


def _line() -> DaemonConnection | None:
    """To the daemon that serves the person's folder, if it seems to be there."""
    folder = data_dir()
    socket = f"{folder}/api.sock"
    named = os.environ.get("LEGION_URL") or os.environ.get("LEGION_SESSION_ID")
    if folder is None or named or not os.access(socket, os.W_OK):
        return None
    try:
        with open(f"{folder}/token") as file:  # noqa: PTH123  # as above
            return DaemonConnection(DaemonAddress(socket=socket, token=file.read().strip()))
    except OSError:
        return None


def _tell(made: dict[str, Any], line: DaemonConnection, *, tip: bool) -> None:
    """Mostly nothing but the number; for more than that there is time now to import what says it."""
    if line.daemon_version == __version__ and not made["notes"] and not (tip and sys.stdout.isatty()):
        sys.stdout.write("".join(f"Ticket ID: {id}\n" for id in made["ids"]))
        sys.stdout.flush()
        return
    from pathlib import Path

    from legion.cli.base.command import CommandCall
    from legion.cli.base.output import Screen
    from legion.cli.tickets.dispatch import tell
    from legion.client.legion import Legion
    from legion.wire.tickets import Dispatched

    legion = Legion(line.address, line)
    call = CommandCall(json=False, data_dir=Path(), screen=Screen.of(sys.stdout, plain=True))
    call.mention_version(legion)
    tell(call, legion.understood(Dispatched, made), tip=tip)
