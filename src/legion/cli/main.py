"""Where the command starts. `legion version` is answered before anything else is imported."""

from __future__ import annotations

import sys


def main() -> None:
    words = sys.argv[1:]
    try:
        if words in (["version"], ["--version"], ["-V"]):
            from legion import __version__

            sys.stdout.write(f"legion {__version__}\n")
            code = 0
        else:
            from legion.cli.run import run

            code = run(words)
    except KeyboardInterrupt:
        sys.stderr.write("Interrupted.\n")
        code = 130
    sys.exit(code)
