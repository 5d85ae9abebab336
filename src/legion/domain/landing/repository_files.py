"""Finds files in a change that git takes for a repository of its own, on any system, and links that lead out of it.

Git runs programs that a repository's config names as soon as a command is used inside it. A change must therefore not
hold a repository, also not in disguise: macOS ignores the case of names and some invisible characters, Windows cuts
dots and blanks from their end and knows `.git` as `git~1`.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

_INVISIBLE = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
"""Code points that HFS+ ignores in names."""
_SHORT_GIT = re.compile(r"git~\d+")
_SHORT_MODULES = re.compile(r"gitmod~\d+|(?=.{8}$)(?:gi7eba|gi7eb|gi7e|gi7|gi|g)~\d+")
"""The 8.3 names of `.git` and `.gitmodules` on NTFS."""
_GIT, _MODULES = ".git", ".gitmodules"
_HEAD, _ELSEWHERE, _PARTS = "head", "commondir", frozenset({"objects", "refs"})
_DECIDES = frozenset({_HEAD, _ELSEWHERE, *_PARTS, "config", "config.worktree", "hooks"})
"""Names in a repository that make it one, or that decide what git runs there."""
_LINK = "120000"
_ABSOLUTE = re.compile(r"[/\\~]|[A-Za-z]:")
"""The start of a path on any system, or of what a shell makes one."""
_LONGEST_PATH, _LONGEST_NAME = 4000, 255
"""Bytes. Linux opens nothing that is longer, with some room for the folder of the worktree."""
_UNSAFE_SETTING = re.compile(r"^\s*(?:(?:url|path)\s*=\s*\"?-|update\s*=\s*\"?!)", re.IGNORECASE | re.MULTILINE)
_SUBMODULE = re.compile(r"\[\s*submodule\s+\"([^\"\n]*)\"", re.IGNORECASE)


class RepositoryFault(Enum):
    """Why a file may not land. The value continues a sentence after the path."""

    GIT_FOLDER = "git, here or on another system, takes this name for its own .git"
    DISGUISED_MODULES = "another system takes this name for .gitmodules"
    LINKED_MODULES = ".gitmodules must be a plain file"
    UNSAFE_MODULES = "it holds an entry that could run a program or write outside the repository"
    TOO_LONG = "the path is too long to be checked out"


@dataclass(frozen=True, kw_only=True)
class ChangedEntry:
    """A file, link or submodule of a change as it is afterwards."""

    path: str
    mode: str
    """As git writes it, in octal digits."""
    content: str = ""
    """The target of a link, and the text of .gitmodules; nothing of other files is needed."""


@dataclass(frozen=True, kw_only=True)
class FaultyEntry:
    path: str
    fault: RepositoryFault


def faults(changed: Iterable[ChangedEntry]) -> tuple[FaultyEntry, ...]:
    """The entries that may not land in any repository."""
    found = ((entry.path, _fault(entry)) for entry in changed)
    return tuple(FaultyEntry(path=path, fault=fault) for path, fault in found if fault is not None)


def needs_content(path: str, mode: str) -> bool:
    """Whether the rules read the content of the entry."""
    return mode == _LINK or path == _MODULES


def links_into_git(changed: Iterable[ChangedEntry]) -> tuple[str, ...]:
    """Links through which a program would write into a repository's own folder."""
    return tuple(entry.path for entry in changed if entry.mode == _LINK and _has_git(entry.content))


def links_outside(changed: Iterable[ChangedEntry]) -> tuple[str, ...]:
    """Links that lead out of the repository, to what is in that place on the host where it is checked out."""
    return tuple(entry.path for entry in changed if entry.mode == _LINK and _leaves(entry))


def may_form_repository(paths: Iterable[str]) -> bool:
    """False where no repository can come from a change of these paths, so that the tree need not be read."""
    return any(_suspects(path) for path in paths if not _too_long(path))


def repositories(changed: Iterable[str], tree: Iterable[str]) -> tuple[str, ...]:
    """The folders of `tree` that git takes for a repository and in which `changed` touches what decides that.

    `tree` are the paths of all files after the change, links and submodules included.
    """
    short = (path for path in changed if not _too_long(path))
    names: dict[str, set[str]] = {folder: set() for path in short for folder in _suspects(path)}
    for path in tree if names else ():
        for folder, name in _levels(path):
            if folder in names:
                names[folder].add(_folded(name))
    return tuple(sorted(folder or "." for folder, there in names.items() if _is_repository(there)))


def _leaves(link: ChangedEntry) -> bool:
    if _ABSOLUTE.match(link.content):
        return True
    depth = link.path.count("/")
    for name in _names(link.content):
        depth += -1 if name == ".." else name not in ("", ".")
        if depth < 0:
            return True
    return False


def _is_repository(names: set[str]) -> bool:
    """As git decides it, by names alone: a file, a folder and a link all count."""
    return _HEAD in names and (names >= _PARTS or _ELSEWHERE in names)


def _suspects(path: str) -> list[str]:
    return [folder for folder, name in _levels(path) if _folded(name) in _DECIDES]


def _levels(path: str) -> Iterator[tuple[str, str]]:
    """Each name of the path with the folder that holds it."""
    start = 0
    while (end := path.find("/", start)) >= 0:
        yield path[: max(start - 1, 0)], path[start:end]
        start = end + 1
    yield path[: max(start - 1, 0)], path[start:]


def _fault(entry: ChangedEntry) -> RepositoryFault | None:
    if _too_long(entry.path):
        return RepositoryFault.TOO_LONG
    if _has_git(entry.path):
        return RepositoryFault.GIT_FOLDER
    modules = [name for name in _names(entry.path) if _is_modules(_folded(name))]
    if any(name != _MODULES for name in modules):
        return RepositoryFault.DISGUISED_MODULES
    if modules and entry.mode == _LINK:
        return RepositoryFault.LINKED_MODULES
    if entry.path == _MODULES and _is_unsafe(entry.content):
        return RepositoryFault.UNSAFE_MODULES
    return None


def _is_modules(folded: str) -> bool:
    return folded == _MODULES or _SHORT_MODULES.fullmatch(folded) is not None


def _is_unsafe(modules: str) -> bool:
    """Git itself refuses such entries today; older versions ran them."""
    leaves = any(".." in _names(name) for name in _SUBMODULE.findall(modules))
    return leaves or _UNSAFE_SETTING.search(modules) is not None


def _too_long(path: str) -> bool:
    raw = path.encode("utf-8", "surrogateescape")
    return len(raw) > _LONGEST_PATH or any(len(name) > _LONGEST_NAME for name in raw.split(b"/"))


def _has_git(path: str) -> bool:
    return any(_folded(name) == _GIT or _SHORT_GIT.fullmatch(_folded(name)) for name in _names(path))


def _names(path: str) -> list[str]:
    """Windows also takes a backslash for the end of a name."""
    return re.split(r"[/\\]", path)


@functools.lru_cache(maxsize=1 << 14)
def _folded(name: str) -> str:
    """The name as the most forgiving system reads it. Names repeat within a change."""
    seen = unicodedata.normalize("NFD", _INVISIBLE.sub("", name)).casefold()
    return seen.partition(":")[0].rstrip(". ") if seen.strip(".") else seen
