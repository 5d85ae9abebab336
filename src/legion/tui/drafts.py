"""Drafts: text that the person typed and has not sent, and the small things that the UI remembers, in one file.

Every change is written at once, so that killing the UI loses no text. A file that cannot be read counts as empty; one
that cannot be written costs only the memory.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping
from pathlib import Path


class Drafts:
    """Texts by name. An empty text removes its name."""

    def __init__(self, file: Path | None) -> None:
        """Without a file nothing outlives the UI."""
        self._file = file
        self._texts = _read(file)

    def get(self, name: str) -> str:
        return self._texts.get(name, "")

    def put(self, name: str, text: str) -> None:
        if self._texts.get(name, "") == text:
            return
        if text:
            self._texts[name] = text
        else:
            self._texts.pop(name, None)
        self._write()

    def remove(self, start: str) -> None:
        """All names that start so: the form was sent."""
        self._texts = {name: text for name, text in self._texts.items() if not name.startswith(start)}
        self._write()

    def of(self, start: str) -> Mapping[str, str]:
        return {name.removeprefix(start): text for name, text in self._texts.items() if name.startswith(start)}

    def _write(self) -> None:
        if self._file is None:
            return
        with contextlib.suppress(OSError):
            new = self._file.with_suffix(".new")
            handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(handle, "w") as file:
                json.dump(self._texts, file)
            new.replace(self._file)


def _read(file: Path | None) -> dict[str, str]:
    if file is None:
        return {}
    try:
        found = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {str(name): text for name, text in found.items() if isinstance(text, str)}
