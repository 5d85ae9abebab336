"""The .gitattributes files of a commit, read from the repository and from no checkout."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from legion.git.core.command import fields, git
from legion.git.core.history import History, TreeEntry

_NAME = b".gitattributes"
EVERYWHERE = ":(top,glob)**/.gitattributes"
"""Matches all of them."""
# The id of the tree without files, by the length of ids in the repository.
EMPTY_TREE = {
    40: "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
    64: "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321",
}
Difference = tuple[bytes, TreeEntry | None, TreeEntry | None]
"""A path, and what is there in one tree and in the other."""
_PLAIN_FILE = (b"100644", b"100755")
_KNOWN: dict[Path, tuple[str, Mapping[bytes, str]]] = {}
"""By repository: the tree that was asked for last. Targets follow each other, and the way to the next is short."""


def attribute_files(repository: History, commit: str) -> Mapping[bytes, str]:
    """Path and id of each; links and what git would not check out are left out."""
    tree = repository.tree_of(commit)
    known = _KNOWN.get(repository.path)
    if known is not None and known[0] == tree:
        return known[1]
    found = (
        with_differences(known[1], repository.differences(known[0], tree))
        if known is not None
        else _all(repository, tree)
    )
    _KNOWN[repository.path] = (tree, found)
    return found


def with_differences(before: Mapping[bytes, str], differences: Iterable[Difference]) -> Mapping[bytes, str]:
    """Those of a tree that differs so from the tree of `before`."""
    found = dict(before)
    for path, _, new in differences:
        if path.rpartition(b"/")[2] == _NAME:
            found.pop(path, None)
            if new is not None and _is_plain(new, path):
                found[path] = new.id
    return found


def _all(repository: History, tree: str) -> Mapping[bytes, str]:
    words = ("--no-literal-pathspecs", "diff-tree", "-r", "-z", "--raw", "--no-renames")
    raw = fields(git(*words, EMPTY_TREE[len(tree)], tree, "--", EVERYWHERE, git_dir=repository.path).stdout)
    found = {}
    for facts, path in zip(raw[::2], raw[1::2], strict=True):
        _, mode, _, blob, _ = facts.lstrip(b":").split(b" ")
        if _is_plain(TreeEntry(mode, blob.decode()), path):
            found[path] = blob.decode()
    return found


def _is_plain(entry: TreeEntry, path: bytes) -> bool:
    return entry.mode in _PLAIN_FILE and not {b"", b".", b"..", b".git"} & set(path.split(b"/"))
