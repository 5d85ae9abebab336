"""`legion version`, for the cases that the fast path in main does not answer."""

from __future__ import annotations

from legion import __version__
from legion.cli.base.command import CommandCall, command
from legion.cli.base.shapes import Version


@command("version", example="legion version")
def version(call: CommandCall) -> None:
    """The version of this program."""
    call.answer(Version(version=__version__), lambda: [f"legion {__version__}"])
