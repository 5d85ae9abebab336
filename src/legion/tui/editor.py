"""Opens a text in the person's editor, in place of the terminal UI."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from pathlib import Path

from textual.app import App


def edited(app: App[None], text: str, name: str) -> str | None:
    """What the editor left; None where it ended with an error."""
    editor = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
    with tempfile.TemporaryDirectory(prefix="legion-") as folder:
        file = Path(folder) / f"{''.join(one for one in name if one.isalnum() or one == '-')}.toml"
        file.write_text(text)
        with app.suspend():
            try:
                ended = subprocess.run([*editor, str(file)], check=False)
            except OSError as error:
                app.notify(f"{editor[0]} does not start: {error.strerror}; set EDITOR.", severity="error")
                return None
        return file.read_text() if ended.returncode == 0 else None
