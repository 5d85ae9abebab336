"""A fast path of plain `legion status`, which people and status lines ask often: it imports no click.

Whatever is not plain (options, another version of the daemon, a daemon that is not running) is left to the complete
command.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from legion import __version__
from legion.cli.base.output import Screen
from legion.cli.base.streams import replace_unknown_characters
from legion.cli.board.status_screen import screen_of
from legion.cli.quick_connection import connection
from legion.client.http import NotRunning, Unanswered
from legion.client.shapes import UnreadableAnswer, read
from legion.wire.board import Status
from legion.wire.errors import LegionError


def status(arguments: Sequence[str]) -> int | None:
    """The exit code, or None where nothing was printed and the complete command has to run."""
    line = None if arguments else connection()
    try:
        cwd = os.getcwd()  # noqa: PTH109  # importing pathlib takes longer
    except FileNotFoundError:
        return None
    if line is None:
        return None
    replace_unknown_characters()
    try:
        answer = line.ask("GET", "/v1/status", query={"cwd": cwd, "all": False})
        if line.daemon_version != __version__:
            return None
        screen = Screen.of(sys.stdout, plain=bool(os.environ.get("NO_COLOR")))
        sys.stdout.write("".join(f"{one}\n" for one in screen_of(read(Status, answer), screen)))
        sys.stdout.flush()
    except UnreadableAnswer:
        return None
    except LegionError as error:
        if isinstance(error, NotRunning) and not isinstance(error, Unanswered):
            return None
        sys.stderr.write(" ".join(error.message.split()) + "\n")
        return error.exit_code
    except BrokenPipeError:
        from legion.cli.run import close_quietly

        close_quietly()
    return 0
