"""Conflict markers in a change: those that Legion planted, and those of a merge of the agent's own.

A line that looks like one marker may be wanted. Three of them in order are the rest of a merge, except in documents and
tests, which may be about merging.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from legion.domain.review.diffs import FileDiff
from legion.domain.review.path_patterns import extension
from legion.domain.review.protected_files import is_test

_PLANTED = re.compile(r"(?:<{7,} target|>{7,} change)\b")
_OPENS, _MIDDLE, _CLOSES = re.compile(r"<{7}(?: |$)"), re.compile(r"={7}$"), re.compile(r">{7}(?: |$)")
_DOCUMENTS = frozenset({"md", "markdown", "rst", "txt", "adoc", "asciidoc", "org", "html", "tex", "patch", "diff"})


def may_hold(patch: str) -> bool:
    """A quick look at the text of a patch: false for nearly every change, so that only the others are parsed."""
    return _IN_PATCH.search(patch) is not None


_IN_PATCH = re.compile(r"^\+(?:<{7,}|>{7,})(?: |$)", re.MULTILINE)


def marked(files: Iterable[FileDiff]) -> tuple[str, ...]:
    """The paths of the files in which conflict markers were added."""
    return tuple(file.path for file in files if _is_marked(file.path, [line.text for line in file.added]))


def _is_marked(path: str, added: Sequence[str]) -> bool:
    if any(_PLANTED.match(line) for line in added):
        return True
    if extension(path) in _DOCUMENTS or is_test(path):
        return False
    wanted = [_OPENS, _MIDDLE, _CLOSES]
    for line in added:
        if wanted and wanted[0].match(line):
            wanted.pop(0)
    return not wanted
