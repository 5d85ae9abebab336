"""Finds out whether two changes have paths in common."""

from __future__ import annotations


def overlap(some: frozenset[bytes], others: frozenset[bytes]) -> bool:
    """Whether two sets of changed paths have anything in common; a file and a folder of one name have, too."""
    if not some.isdisjoint(others):
        return True
    return not _folders(some).isdisjoint(others) or not _folders(others).isdisjoint(some)


def _folders(paths: frozenset[bytes]) -> set[bytes]:
    found: set[bytes] = set()
    for path in paths:
        while (path := path.rpartition(b"/")[0]) and path not in found:
            found.add(path)
    return found
