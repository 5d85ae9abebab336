"""Prepares stdout and stderr for any terminal."""

from __future__ import annotations

import sys


def replace_unknown_characters() -> None:
    """A character that the terminal cannot show must not end the command."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
