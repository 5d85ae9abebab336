"""Has the person write a text in their editor, until the daemon accepts it or they leave it."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import click

from legion.cli.base.command import CommandCall
from legion.cli.base.output import sanitize
from legion.cli.base.texts import file_text
from legion.wire.errors import BadInput, LegionError

Answer = TypeVar("Answer")


def refuse_no_editor(command: str) -> None:
    """Raises BadInput without a terminal; `command` saves a text from a file."""
    if not sys.stdin.isatty():
        raise BadInput(f"There is no terminal for an editor; run {command} --from FILE.")


def edit(
    call: CommandCall,
    name: str,
    text: str,
    *,
    is_unchanged: Callable[[str], bool],
    save: Callable[[str], Answer],
    command: str,
) -> Answer | None:
    """The answer to the saved text; None where nothing was changed. A text that was refused is kept for `command`.

    The editor gets a temporary file, so one that saves early changes nothing.
    """
    handle, path = tempfile.mkstemp(prefix=f"legion-{name}-", suffix=".toml")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    while True:
        click.edit(filename=path)
        written = file_text(path)
        if is_unchanged(written):
            Path(path).unlink()
            call.say("Nothing was changed.")
            return None
        try:
            done = save(written)
        except LegionError as refused:
            call.say(sanitize(refused.message))
            if not click.confirm("Edit it again?", default=True, err=True):
                again = f"{command} --from {path}"
                raise BadInput(f"Nothing was changed; your text is kept, and `{again}` saves it.") from None
            continue
        Path(path).unlink()
        return done
