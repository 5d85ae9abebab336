"""`legion` alone in a terminal: opens the terminal UI before the modules of the command line are imported."""

from __future__ import annotations

import sys
from pathlib import Path

from legion.system.paths import default_data_dir
from legion.tui.start import run
from legion.wire.errors import LegionError


def open_here() -> int:
    """The exit code."""
    try:
        return run(default_data_dir(), str(Path.cwd()))
    except FileNotFoundError:
        sys.stderr.write("The current folder no longer exists; change to another one.\n")
        return 1
    except LegionError as error:
        sys.stderr.write(f"{error.message}\n")
        return error.exit_code
