"""Entry point of the command. It answers `legion version` before it imports anything else."""

from __future__ import annotations

import os
import sys


def main() -> None:
    arguments = sys.argv[1:]
    _replace_closed_streams()
    try:
        if arguments in (["version"], ["--version"], ["-V"]):
            from legion import __version__

            sys.stdout.write(f"legion {__version__}\n")
            code = 0
        else:
            code = _run(arguments)
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted.\n")
        code = 130
    except OSError as error:
        # Of the fast paths: the complete command reports its own.
        from legion.cli.run import close_quietly

        close_quietly()
        sys.stderr.write(f"The system refused: {error.strerror or error}.\n")
        code = 1
    sys.exit(code)


def _run(arguments: list[str]) -> int:
    """Agents wait for `dispatch`, and people look at `status`: their plain forms run without the other modules."""
    if arguments[:1] == ["dispatch"] and "_LEGION_COMPLETE" not in os.environ:
        from legion.cli.quick_dispatch import dispatch

        code = dispatch(arguments[1:])
        if code is not None:
            return code
    if arguments == ["status"] and "_LEGION_COMPLETE" not in os.environ:
        from legion.cli.quick_status import status

        code = status(arguments[1:])
        if code is not None:
            return code
    if not arguments and "_LEGION_COMPLETE" not in os.environ and _is_screen():
        from legion.cli.quick_tui import open_here

        return open_here()
    from legion.cli.run import run

    return run(arguments)


def _is_screen() -> bool:
    """Whether a terminal UI can be drawn here."""
    terminals = all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr))
    return terminals and os.environ.get("TERM", "") not in ("", "dumb")


def _replace_closed_streams() -> None:
    """Replace closed streams, which are None in Python, by the null device, so that writing to them does not fail."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: PTH123, SIM115
