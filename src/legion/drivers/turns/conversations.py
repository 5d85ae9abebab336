"""Remembers a program's own id of a conversation under ours, in the agent's state folder.

The agent can write there. A forged id misleads only the agent that reads it, and no link is followed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from pathlib import Path

from legion.system import safe_files

_FOLDER = ".legion-conversations"
_SHORT = 8
_MOST_SEARCHED = 256 << 20
"""Bytes of a conversation's file that are read."""
_ID = re.compile(r"[\w.:/@-]{1,300}")


def remembered(home: Path, conversation: str) -> str:
    """The program's id; empty where there is none."""
    content = safe_files.read(home, f"{_FOLDER}/{conversation}", most=400) or b""
    text = content.decode("utf-8", "replace").strip()
    return text if is_id(text) else ""


def is_id(text: str) -> bool:
    """Can this be a program's id of a conversation? It becomes a word of a command line, and part of a file's name."""
    return _ID.fullmatch(text) is not None


def remember(home: Path, conversation: str, id: str) -> None:
    if is_id(id):
        safe_files.write(home, f"{_FOLDER}/{conversation}", id.encode())


def marked(text: str, id: str) -> str:
    """A prompt that its conversation's file shows to be this one."""
    return f"{text.rstrip()}\n\n(prompt {id})"


def delivered(home: Path, places: Iterable[str], conversation: str, ids: Collection[str]) -> frozenset[str]:
    """Those of the marked prompts that the files of this conversation hold."""
    session = remembered(home, conversation).encode()
    found: set[str] = set()
    for path in sorted({path for place in places for path in home.glob(place)} if session else ()):
        place = str(path.relative_to(home))
        content = safe_files.read(home, place, most=_MOST_SEARCHED) or b""
        if session in content or session in place.encode():
            found |= {id for id in ids if f"(prompt {id})".encode() in content}
    return frozenset(found)


def copy_before_load(home: Path, places: tuple[str, ...], name: str, id: str) -> None:
    """Copy the conversation's file under this name into its own folder, for a program that overwrites it on loading.

    Gemini CLI names the file after the minute of its start: resumed within that minute, it empties its own history.
    """
    short = id[:_SHORT]
    if not name or not is_id(short):
        return
    copy = name.replace("{short}", short)
    files = [path for place in places for path in home.glob(place) if path.stem.endswith(f"-{short}")]
    for path in sorted(one for one in files if one.name != copy)[-1:]:
        content = safe_files.read(home, str(path.relative_to(home)), most=_MOST_SEARCHED)
        if content is not None:
            safe_files.write(home, str(path.with_name(copy).relative_to(home)), content)


def forget(home: Path, conversation: str) -> None:
    """The conversation cannot be resumed: the next run starts another."""
    safe_files.write(home, f"{_FOLDER}/{conversation}", b"")
