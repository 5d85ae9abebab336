"""Answers a program's requests for files, inside its worktree only. No link is followed, whatever the agent made."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

from acp import RequestError

from legion.system import safe_files

LARGEST = 16 << 20
"""Bytes of a file: it becomes one message."""


class WorktreeFiles:
    def __init__(self, tree: Path) -> None:
        self._tree = tree

    def read(self, path: str, line: int | None, limit: int | None) -> str:
        """Raises RequestError for a file outside, a link, or none."""
        content = safe_files.read(self._tree, self._inside(path), most=LARGEST + 1)
        if content is None:
            raise RequestError.resource_not_found(path)
        if len(content) > LARGEST:
            raise RequestError.invalid_params({"details": f"{path} is larger than {LARGEST >> 20} MB."})
        text = content.decode("utf-8", "replace")
        if line is None and limit is None:
            return text
        lines = text.splitlines(keepends=True)
        first = max(0, (line or 1) - 1)
        return "".join(lines[first : None if limit is None else first + limit])

    def write(self, path: str, content: str) -> None:
        """Raises RequestError for a place outside, or where a link or folder is in the way."""
        data = content.encode("utf-8", "replace")
        if len(data) > LARGEST:
            raise RequestError.invalid_params({"details": f"{path} is larger than {LARGEST >> 20} MB."})
        try:
            safe_files.write(self._tree, self._inside(path), data, keep_mode=True)
        except OSError as fault:
            raise RequestError.invalid_params({"details": f"{path} cannot be written: {fault.strerror}."}) from fault

    def folder(self, path: str | None) -> Path:
        """A folder of the worktree, where a command may start. Raises RequestError for any other, and for links."""
        if path is None or PurePosixPath(path) == PurePosixPath(self._tree):
            return self._tree
        below = self._inside(path)
        place = self._tree / below
        if place.resolve() != self._tree.resolve() / below or not place.is_dir():
            raise RequestError.invalid_params({"details": f"{path} is no folder of the worktree {self._tree}."})
        return place

    def _inside(self, path: str) -> str:
        """The path below the worktree."""
        pure = PurePosixPath(os.path.normpath(path))
        if not pure.is_absolute():
            pure = PurePosixPath(self._tree) / pure
        is_below = pure.is_relative_to(self._tree) and pure != PurePosixPath(self._tree)
        if ".." in PurePosixPath(path).parts or not is_below:
            raise RequestError.invalid_params({"details": f"{path} is outside of the worktree {self._tree}."})
        return str(pure.relative_to(self._tree))
