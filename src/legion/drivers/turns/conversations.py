"""Remembers a program's own id of a conversation under ours, in the agent's state folder.

The agent can write there. A forged id misleads only the agent that reads it, and no link is followed.
"""

from __future__ import annotations

import re
from pathlib import Path

from legion.system import safe_files

_FOLDER = ".legion-conversations"
_ID = re.compile(r"[\w.:/@-]{1,300}")


def remembered(home: Path, conversation: str) -> str:
    """The program's id; empty where there is none."""
    content = safe_files.read(home, f"{_FOLDER}/{conversation}") or b""
    text = content[:400].decode("utf-8", "replace").strip()
    return text if _ID.fullmatch(text) else ""


def remember(home: Path, conversation: str, id: str) -> None:
    safe_files.write(home, f"{_FOLDER}/{conversation}", id.encode())


def forget(home: Path, conversation: str) -> None:
    """The conversation cannot be resumed: the next run starts another."""
    safe_files.write(home, f"{_FOLDER}/{conversation}", b"")
