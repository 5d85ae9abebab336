"""Saying in words and hunks what stands between two sides of a merge."""

from __future__ import annotations

import re
from dataclasses import dataclass

from legion.git.core.command import as_text, git
from legion.git.hub.objects import read_blobs, tree_entries
from legion.git.hub.repository import Hub

_AROUND = 3
_LIMIT = 4096
_OPENS = re.compile(r"<{7,} target$")
_CLOSES = re.compile(r">{7,} change$")
_PLAIN_FILE = ("100644", "100755")


@dataclass(frozen=True, kw_only=True)
class ConflictFile:
    """`hunks` holds the conflicting lines with a few around them, or a description where there are no lines."""

    path: str
    hunks: str
    marked: bool = False
    """The conflict is one of lines, between markers."""
    refused: str = ""
    """Why it is not merged by definition, where that was tried."""


def read_conflicts(hub: Hub, tree: str, answer: bytes) -> tuple[ConflictFile, ...]:
    """The files of a `merge-tree -z` answer from after its tree id: stages, an empty field, messages."""
    # Each stage ends with NUL, so a list of stages and its end look like two of them; an empty list like one.
    stages, _, messages = (b"\0" + answer).partition(b"\0\0")
    paths = list(dict.fromkeys(entry.split(b"\t", 1)[1] for entry in stages.split(b"\0") if entry))
    words = _describe(messages)
    paths += [path for path in words if path not in paths]
    texts = _marked(hub, tree, paths)
    return tuple(
        ConflictFile(
            path=as_text(path),
            marked=bool(texts.get(path)),
            hunks=_short(texts.get(path) or "\n".join(words.get(path, ())) or "Both sides changed this file."),
        )
        for path in paths
    )


def _describe(messages: bytes) -> dict[bytes, list[str]]:
    """What git says about each conflicting path."""
    said: dict[bytes, list[str]] = {}
    rest = messages.split(b"\0")
    while len(rest) > 1:
        count = int(rest[0])
        paths, kind, message = rest[1 : 1 + count], rest[1 + count], rest[2 + count]
        rest = rest[3 + count :]
        if kind.startswith(b"CONFLICT"):
            for path in paths:
                said.setdefault(path, []).append(as_text(message).strip())
    return said


def _marked(hub: Hub, tree: str, paths: list[bytes]) -> dict[bytes, str]:
    """The conflicting lines of each file that has markers."""
    if not paths:
        return {}
    found = git("ls-tree", "-r", "-z", tree, git_dir=hub.path).stdout
    wanted = set(paths)
    blobs = {path: blob for mode, blob, path in tree_entries(found) if path in wanted and mode in _PLAIN_FILE}
    contents = read_blobs(hub, list(blobs.values()))
    return {
        path: hunks(as_text(content)) for path, content in zip(blobs, contents, strict=True) if b"\0" not in content
    }


def hunks(text: str) -> str:
    """Every marked part with a few lines around it; empty where nothing is marked."""
    lines = text.splitlines()
    parts, start = [], None
    for number, line in enumerate(lines):
        if start is None and _OPENS.match(line):
            start = number
        elif start is not None and _CLOSES.match(line):
            first, last = max(0, start - _AROUND), min(len(lines), number + 1 + _AROUND)
            parts.append(f"@@ line {first + 1} @@\n" + "\n".join(lines[first:last]))
            start = None
    return "\n".join(parts)


def _short(text: str) -> str:
    return text if len(text) <= _LIMIT else text[:_LIMIT].rsplit("\n", 1)[0] + "\n[...]"
