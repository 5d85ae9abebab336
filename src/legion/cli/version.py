"""`legion version`, for the cases that the fast path in main does not answer."""

from __future__ import annotations

from legion import __version__
from legion.cli.command import Call, command
from legion.cli.shapes import Version


@command("version", example="legion version")
def version(call: Call) -> None:
    """The version of this program."""
    call.answer(Version(version=__version__), lambda: [f"legion {__version__}"])
