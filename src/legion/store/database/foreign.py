"""Recognizes a database of legion_cc, which has the name of ours in the same folder: Legion must not write to it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

_THEIRS = {"squad_sessions", "pane_configs"}
_OURS = "schema_version"


def is_foreign(file: Path) -> bool:
    """Reads only, and makes no file next to it. What is new may still be in its write-ahead log alone."""
    if not file.is_file():
        return False
    more = "" if file.with_name(f"{file.name}-wal").exists() else "&immutable=1"
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro{more}", uri=True)) as database:
            tables = {row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.Error:
        return False
    return bool(tables & _THEIRS) and _OURS not in tables
