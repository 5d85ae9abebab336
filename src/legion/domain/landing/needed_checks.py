"""Which of a project's checks a change needs: in a repository of several packages, those of what it touches."""

from __future__ import annotations

from collections.abc import Iterable

from legion.domain.checks import Check
from legion.domain.review.path_patterns import matches


def needed(checks: Iterable[Check], changed: Iterable[str]) -> tuple[Check, ...]:
    """The checks that a change of these files needs.

    A check with `paths` is left out only if every changed file is in the paths of others: a file that no check names,
    a lock file at the root for instance, may matter to each of them.
    """
    every, files = tuple(checks), tuple(changed)
    named = [glob for check in every for glob in check.paths]
    if not files or not all(matches(file, named) for file in files):
        return every
    return tuple(check for check in every if not check.paths or any(matches(file, check.paths) for file in files))
