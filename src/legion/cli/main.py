"""Where the command starts. `legion version` is answered before anything else is imported."""

from __future__ import annotations

import os
import sys


def main() -> None:
    words = sys.argv[1:]
    _open_what_is_closed()
    try:
        if words in (["version"], ["--version"], ["-V"]):
            from legion import __version__

            sys.stdout.write(f"legion {__version__}\n")
            code = 0
        else:
            code = _run(words)
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted.\n")
        code = 130
    sys.exit(code)


def _run(words: list[str]) -> int:
    """An agent waits for `dispatch`, so in its plain form that is asked for before the rest is imported."""
    if words[:1] == ["dispatch"] and "_LEGION_COMPLETE" not in os.environ:
        from legion.cli.quick_dispatch import dispatch

        code = dispatch(words[1:])
        if code is not None:
            return code
    from legion.cli.run import run

    return run(words)


def _open_what_is_closed() -> None:
    """A stream that the caller closed is None in Python; what goes there is lost, and the rest still works."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: PTH123, SIM115
