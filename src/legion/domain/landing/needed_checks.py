"""Which of a project's checks a change needs: in a repository of several packages, those of what it touches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from legion.domain.checks import Check
from legion.domain.review.path_patterns import matches

_MOST_NAMES, _LONGEST = 100_000, 4096
"""Where links form a circle, a file has names without end."""


def needed(checks: Iterable[Check], changed: Iterable[str]) -> tuple[Check, ...]:
    """The checks that a change of these files needs.

    A check with `paths` is left out only if every changed file is in the paths of others: a file that no check names,
    a lock file at the root for instance, may matter to each of them. A pattern that starts with a wildcard names none:
    that all Python files are linted does not say whose they are.
    """
    every, files = tuple(checks), tuple(changed)
    named = [glob for check in every for glob in check.paths if not glob.startswith("*")]
    if not files or not all(matches(file, named) for file in files):
        return every
    return tuple(check for check in every if not check.paths or any(matches(file, check.paths) for file in files))


def seen_through(links: Mapping[str, str], changed: Iterable[str]) -> tuple[str, ...]:
    """The changed files by every name that they have: a link to a folder shows its files in another place, too."""
    places = {link: _place(link, to) for link, to in links.items()}
    found, new = dict.fromkeys(changed), list(changed)
    while new and len(found) < _MOST_NAMES:
        file = new.pop()
        for link, place in places.items():
            if f"{file}/".startswith(place):
                name = f"{link}/{f'{file}/'.removeprefix(place)}".rstrip("/")
                if name not in found and len(name) < _LONGEST:
                    found[name] = None
                    new.append(name)
    return tuple(found)


def _place(link: str, to: str) -> str:
    """Where a link leads, with a slash at its end; empty for the root. A way out of the repository ends there."""
    parts = [] if to.startswith("/") else link.split("/")[:-1]
    for part in to.split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in ("", "."):
            parts.append(part)
    return "".join(f"{part}/" for part in parts)
