"""Git filters (LFS, git-crypt, ...): which ones are in force in a commit, and what git needs to run them in a sandbox.

The hub holds files as git stores them; trees hold them as the person's checkout does. A filter's program is named by
the person's git settings, never by files of a repository. Git itself says which filter a file goes through
(`check-attr`): by the rules of the commit that a tree started from, and only where those are silent by those in the
tree, so that no agent takes a file out of a filter. A filter that the settings do not define, or whose command may come
from the tree, stores nothing: such a file counts as unreadable.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from legion.domain.landing.filter_rules import FilterRefusal, filter_names, program_names, refusal
from legion.git.core.command import as_text
from legion.git.core.history import History
from legion.git.hub import lfs
from legion.git.hub.attribute_files import (
    PersonAttributes,
    attribute_files,
    filter_attributes,
    person_attributes,
    person_settings,
)
from legion.system import safe_files

_PARTS = re.compile(r"filter\.(.+)\.(clean|smudge|process|required)", re.DOTALL)
_FAILED = b"legion: the git filter of this file failed\n"
"""What is stored for a file whose filter failed, until the file is taken out of the tree."""
_FAIL = f"printf '%s\\n' '{_FAILED.decode().strip()}'"
_SHA1 = 40
_LONGEST_LINE = 2000
"""Git passes over longer lines of an attribute file."""
_SPECIAL = re.compile(rb"([\\*?\[])")
_QUOTED = re.compile(rb'(["\\])')
_PLACES = re.compile(r"(?:^|(?<=[=:,]))/[^=:,]+")
"""Absolute paths in a word of a command, also behind `--key=` or `file:`."""
_GITS_FOLDERS = frozenset(("objects", "refs", "logs", "hooks", "info", "worktrees", "modules", "branches", lfs.LFS))


class Confine(Protocol):
    def __call__(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        readable: Sequence[Path],
        writable: Sequence[Path],
    ) -> tuple[Sequence[str], Mapping[str, str]]:
        """The command line and the environment that run a program of the system with these folders alone."""


@dataclass(frozen=True, kw_only=True)
class FilterSource:
    """The person's repository, whose settings define filters, and the sandbox in which those run."""

    common_dir: Path
    confine: Confine


@dataclass(frozen=True, kw_only=True)
class Filters:
    """The filters that are in force for a tree."""

    names: tuple[str, ...]
    rules: tuple[Mapping[bytes, str], ...]
    """Path and id of attribute files: the first of these sets that says something of a file counts."""
    stores: tuple[Path, ...]
    """Where the content of those is, and the person's attribute files count, too."""
    settings: Mapping[str, str]
    """For git: the programs."""
    refused: Mapping[str, FilterRefusal]
    """Those that do not run."""
    lfs: Path
    """Where LFS of the hub keeps the content of files."""
    source: FilterSource
    own: PersonAttributes
    chosen: Mapping[bytes, str] = field(default_factory=dict)
    """By file: its filter, empty where it has none, whatever other rules say."""
    asked: frozenset[bytes] = frozenset()
    """The files that were looked up so far."""

    def on(self, paths: Iterable[bytes]) -> Filters:
        """The same with the filter of each of these files: no rule that a program changes meanwhile counts for them."""
        asked = self.asked | {*paths}
        chosen = {}
        for path, values in _values(self, asked).items():
            said = next((value for value in values if value != "unspecified"), None)
            if said is not None and (said in self.names or said in ("set", "unset")):
                chosen[path] = said if said in self.names else ""
        return replace(self, chosen=chosen, asked=asked)

    def would_move(self, other: Filters | None, paths: Iterable[bytes]) -> bool:
        """Whether a file went through another filter than it goes through by these."""
        used = {} if other is None else other.chosen
        return any((self.chosen.get(path) or "") != (used.get(path) or "") for path in paths)

    @property
    def personal(self) -> bool:
        """Whether the person's own rules count, of which git knows nothing where it writes files of a commit."""
        return bool(filter_names((self.own.everywhere, self.own.here)))

    @property
    def unwritable(self) -> tuple[str, ...]:
        """Files whose names are too long for a rule of their own."""
        return tuple(os.fsdecode(path) for path in self.chosen if len(_line(path, "")) > _LONGEST_LINE)

    @property
    def forgiving(self) -> Filters:
        """The same where a filter fails: git would end without storing anything, and now marks the file instead."""
        named = {name: _command(self.settings, name) for name in self.names}
        kept = {key: value for key, value in self.settings.items() if not key.endswith((".process", ".clean"))}
        return replace(self, settings=kept | {f"filter.{name}.clean": text for name, text in named.items()})

    @property
    def mark(self) -> str:
        """Equal where a tree looks the same."""
        facts = ([sorted(files.items()) for files in self.rules], self.own, sorted(self.settings.items()))
        return hashlib.sha256(repr(facts).encode()).hexdigest()

    @property
    def readable(self) -> tuple[Path, ...]:
        large = (lfs.store_of(self.source.common_dir), self.lfs) if lfs.LFS in self.names else ()
        programs = (
            Path(place)
            for value in self.settings.values()
            for word in _arguments(value)
            for place in (*_PLACES.findall(word), *([word] if word.startswith("/") else ()))
        )
        # Nothing above the person's own folder: a word of one slash would show all files.
        shown = (place for place in programs if not Path.home().is_relative_to(place.resolve()))
        found = (place.resolve() for place in (*large, *self._folders, *shown) if place.is_dir() or place.is_file())
        return tuple(dict.fromkeys(found))

    @property
    def _folders(self) -> tuple[Path, ...]:
        """Folders in the person's git folder that are no part of git and that a command names: keys and the like."""
        words = {word for value in self.settings.values() for word in re.findall(r"[\w.-]+", value)} - _GITS_FOLDERS
        places = (self.source.common_dir / word for word in sorted(words) if word.strip("."))
        return tuple(place for place in places if place.is_dir() and not place.is_symlink())

    def furnish(self, git_dir: Path) -> dict[str, str]:
        """Prepare the folder of a repository in which git runs them, and none of them writes. Returns the variables."""
        rules = b"".join(_line(path, name) for path, name in sorted(self.chosen.items()))
        safe_files.write(git_dir, "info/attributes", rules)
        for folder in self._folders:
            _link(git_dir / folder.name, folder)
        # LFS looks next to the objects that a repository borrows for what it lacks itself.
        borrowed = git_dir / "borrowed"
        (borrowed / "objects").mkdir(parents=True, exist_ok=True)
        if lfs.LFS in self.names:
            _link(borrowed / lfs.LFS, lfs.store_of(self.source.common_dir))
        return {
            "HOME": str(Path.home()),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(borrowed / "objects"),
            "GIT_LFS_SKIP_DOWNLOAD_ERRORS": "1",
            # Python finds no module in the current folder, which is the tree.
            "PYTHONSAFEPATH": "1",
        }

    def admit(self, folder: Path) -> None:
        """Copy what LFS wrote below the folder into the hub, as far as it is what its name says."""
        lfs.admit(folder, self.lfs)


def filters_of(hub: History, source: FilterSource | None, *commits: str) -> Filters | None:
    """The filters in force in commits, of which the first counts most; None where there are none."""
    if source is None:
        return None
    files = [attribute_files(hub, commit) for commit in commits]
    return _with_rules(hub, source, files, known=None, stores=(hub.objects,))


def filters_with(
    before: Filters | None,
    history: History,
    source: FilterSource | None,
    files: Mapping[bytes, str],
    *,
    stores: tuple[Path, ...],
) -> Filters | None:
    """Those for a tree with these attribute files, which never take a file out of a filter that was in force before.

    An added rule for a filter without a definition hides nothing yet: its files are stored, and the person is asked.
    """
    if source is None or (before is not None and files in before.rules):
        return before
    known = {*(() if before is None else before.names), *defined(source.common_dir)}
    rules = () if before is None else before.rules
    return _with_rules(history, source, (*rules, files), known=known, stores=stores)


def names_of(history: History, commit: str, common_dir: Path) -> tuple[str, ...]:
    """The filters that the rules in a commit name, and the person's own."""
    return filter_names(_texts(history, [attribute_files(history, commit)], person_attributes(common_dir)))


def chosen_filters(history: History, commit: str, common_dir: Path, paths: Iterable[bytes]) -> dict[str, str]:
    """By file: the filter that it goes through by the rules in a commit and the person's own."""
    own = person_attributes(common_dir)
    files = attribute_files(history, commit)
    found = filter_attributes(common_dir, (history.objects,), files, paths, everywhere=own.everywhere)
    silent = ("unspecified", "set", "unset")
    return {as_text(path): value for path, value in found.items() if value not in silent}


def defined(common_dir: Path) -> dict[str, dict[str, str]]:
    """The filters in the person's git settings, of the system, their own and the repository's, each with its parts."""
    found: dict[str, dict[str, str]] = {}
    for key, value in person_settings(common_dir, r"^filter\.").items():
        if (part := _PARTS.fullmatch(key)) is not None:
            found.setdefault(part[1], {})[part[2]] = value
    return found


def _with_rules(
    history: History,
    source: FilterSource,
    rules: Sequence[Mapping[bytes, str]],
    *,
    known: set[str] | None,
    stores: tuple[Path, ...],
) -> Filters | None:
    own = person_attributes(source.common_dir)
    names = tuple(name for name in filter_names(_texts(history, rules, own)) if known is None or name in known)
    if not names:
        return None
    # The mirror of a hub on a machine has no person whose settings count.
    there = {} if source.common_dir == history.path else defined(source.common_dir)
    refused = {name: why for name in names if (why := refusal(name, there.get(name))) is not None}
    # Nothing of a file is stored whose filter cannot run: it may be there to hide the file's text.
    parts = {name: {"clean": _FAIL, "smudge": "cat"} if name in refused else there[name] for name in names}
    settings = {f"filter.{name}.{part}": value for name in names for part, value in parts[name].items()}
    for name in names:
        # Git takes a file as it is where a command is missing, or fails and is not required.
        settings |= {f"filter.{name}.required": "true"}
        settings |= {} if {"smudge", "process"} & {*parts[name]} else {f"filter.{name}.smudge": "cat"}
    programs = {one for name in names if name not in refused for one in program_names(name, parts[name].values())}
    sections = "|".join(re.escape(one.lower()) for one in sorted(programs))
    settings |= person_settings(source.common_dir, rf"^({sections})\.") if sections else {}
    return Filters(
        names=names,
        rules=tuple(rules),
        stores=stores,
        settings=settings,
        refused=refused,
        lfs=history.path / lfs.LFS,
        source=source,
        own=own,
    )


def _texts(history: History, rules: Sequence[Mapping[bytes, str]], own: PersonAttributes) -> list[str]:
    blobs = dict.fromkeys(id for files in rules for id in files.values())
    return [own.everywhere, own.here, *(os.fsdecode(history.content(blob)) for blob in blobs)]


def _values(filters: Filters, paths: Iterable[bytes]) -> dict[bytes, list[str]]:
    found: dict[bytes, list[str]] = {}
    for files in filters.rules:
        said = filter_attributes(
            filters.source.common_dir, filters.stores, files, paths, everywhere=filters.own.everywhere
        )
        for path, value in said.items():
            # What a name without a definition says does not count: a rule before or after it may.
            counts = value in filters.names or value in ("set", "unset")
            found.setdefault(path, []).append(value if counts else "unspecified")
    return found


def _line(path: bytes, name: str) -> bytes:
    """A rule for one file, as a line of an attribute file at the top."""
    quoted = _QUOTED.sub(rb"\\\1", _SPECIAL.sub(rb"\\\1", path)).replace(b"\n", b"\\n")
    return b'"/%s" %s\n' % (quoted, os.fsencode(f"filter={name}") if name else b"-filter")


def failed_id(digits: int) -> str:
    """The id of what is stored for a file whose filter failed."""
    stored = b"blob %d\0%s" % (len(_FAILED), _FAILED)
    return (hashlib.sha1(stored, usedforsecurity=False) if digits == _SHA1 else hashlib.sha256(stored)).hexdigest()


def _command(settings: Mapping[str, str], name: str) -> str:
    """The clean command of a filter, all of whose output or _FAILED comes out."""
    clean = settings.get(f"filter.{name}.clean", "false")
    return f'made=$(mktemp) && if ( {clean}\n ) >"$made"; then cat "$made"; else {_FAIL}; fi; rm -f "$made"'


def _arguments(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return []


def _link(place: Path, target: Path) -> None:
    if not place.is_symlink():
        place.symlink_to(target.resolve())
