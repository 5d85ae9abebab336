"""Git filters (LFS, git-crypt, ...): which ones are in force in a commit, and what git needs to run them in a sandbox.

The hub holds files as git stores them; trees hold them as the person's checkout does. A filter's program is named by
the person's git settings, never by files of a repository. The rules of the commit that a tree started from go before
those in the tree, so that no agent takes a file out of a filter. A filter that the settings do not define, or whose
command may come from the tree, stores nothing: such a file counts as unreadable.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shlex
import shutil
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Protocol

from legion.domain.landing.filter_rules import FilterRefusal, FilterRule, filter_names, filter_rules, refusal
from legion.git.core.command import fields
from legion.git.core.history import History
from legion.git.hub.attribute_files import Difference, attribute_files, with_differences
from legion.git.hub.writable import WritableRepository
from legion.system import safe_files
from legion.system.process import run

_LFS = "lfs"
_PARTS = re.compile(r"filter\.(.+)\.(clean|smudge|process|required)", re.DOTALL)
_FAILED = b"legion: the git filter of this file failed\n"
"""What is stored for a file whose filter failed, until the file is taken out of the tree."""
_FAIL = f"printf '%s\\n' '{_FAILED.decode().strip()}'"
_POINTER = re.compile(rb"version https://git-lfs[^\n]*\n(?:ext-[^\n]*\n)*oid sha256:([0-9a-f]{64})\n")
_LARGEST_POINTER = 1024
_ID = re.compile("[0-9a-f]{64}")
_SHA1 = 40
_KEYS = "git-crypt"
"""The folder in a repository where git-crypt looks for its keys, and the section of its settings."""


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

    rules: tuple[FilterRule, ...]
    settings: Mapping[str, str]
    """For git: the programs."""
    refused: Mapping[str, FilterRefusal]
    """Those that do not run."""
    lfs: Path
    """Where LFS of the hub keeps the content of files."""
    source: FilterSource

    @property
    def forgiving(self) -> Filters:
        """The same where a filter fails: git would end without storing anything, and now marks the file instead."""
        named = {name: _command(self.settings, name) for name in self.names}
        kept = {key: value for key, value in self.settings.items() if not key.endswith((".process", ".clean"))}
        return replace(self, settings=kept | {f"filter.{name}.clean": text for name, text in named.items()})

    @property
    def names(self) -> tuple[str, ...]:
        return filter_names(self.rules)

    @property
    def mark(self) -> str:
        """Equal where a tree looks the same."""
        return hashlib.sha256(repr((self.rules, sorted(self.settings.items()))).encode()).hexdigest()

    @property
    def readable(self) -> tuple[Path, ...]:
        folders = (
            *((_lfs_of(self.source.common_dir), self.lfs) if _LFS in self.names else ()),
            *((self.source.common_dir / _KEYS,) if _KEYS in self.names else ()),
        )
        programs = (
            Path(word)
            for key, value in self.settings.items()
            for word in _arguments(value)
            if word.startswith("/") and key.startswith("filter.")
        )
        return tuple(place.resolve() for place in (*folders, *programs) if place.is_dir() or place.is_file())

    def furnish(self, git_dir: Path) -> dict[str, str]:
        """Prepare the folder of a repository in which git runs them, and none of them writes. Returns the variables."""
        safe_files.write(git_dir, "info/attributes", os.fsencode("".join(rule.line for rule in self.rules)))
        if _KEYS in self.names:
            _link(git_dir / _KEYS, self.source.common_dir / _KEYS)
        # LFS looks next to the objects that a repository borrows for what it lacks itself.
        borrowed = git_dir / "borrowed"
        (borrowed / "objects").mkdir(parents=True, exist_ok=True)
        if _LFS in self.names:
            _link(borrowed / _LFS, _lfs_of(self.source.common_dir))
        return {
            "HOME": str(Path.home()),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(borrowed / "objects"),
            "GIT_LFS_SKIP_DOWNLOAD_ERRORS": "1",
            # Python finds no module in the current folder, which is the tree.
            "PYTHONSAFEPATH": "1",
        }

    def admit(self, folder: Path) -> None:
        """Copy what LFS wrote below the folder into the hub, as far as it is what its name says."""
        for file in (folder / "objects").glob("??/??/*"):
            place = file.relative_to(folder)
            if _ID.fullmatch(file.name) and not (self.lfs / place).exists():
                _copy_checked(safe_files.opened(folder, str(place)), self.lfs / place, file.name)


def rules_of(repository: History, commit: str, common_dir: Path) -> tuple[FilterRule, ...]:
    """Those of a commit, and after them those of the person's repository alone."""
    return _rules(repository, attribute_files(repository, commit), common_dir)


def filters_of(hub: History, source: FilterSource | None, commit: str) -> Filters | None:
    """The filters in force in a commit; None where there are none."""
    return None if source is None else _with_rules(hub, source, rules_of(hub, commit, source.common_dir))


def filters_after(
    before: Filters | None,
    hub: History,
    history: History,
    source: FilterSource | None,
    parent: str,
    differences: Sequence[Difference],
) -> Filters | None:
    """Those for a tree that differs so from `parent`; its rules go before any that the tree added.

    An added rule for a filter without a definition hides nothing yet: its files are stored, and the person is asked.
    """
    old = attribute_files(hub, parent) if source is not None else {}
    files = with_differences(old, differences)
    if source is None or files == old:
        return before
    first = () if before is None else before.rules
    known = {"", *(() if before is None else filter_names(first)), *defined(source.common_dir)}
    found = _rules(history, files, source.common_dir)
    added = tuple(rule for rule in found if rule not in first and rule.name in known)
    return _with_rules(hub, source, (*added, *first)) if added else before


def defined(common_dir: Path) -> dict[str, dict[str, str]]:
    """The filters in the person's git settings, of the system, their own and the repository's, each with its parts."""
    found: dict[str, dict[str, str]] = {}
    for key, value in _settings(common_dir, r"^filter\.").items():
        if (part := _PARTS.fullmatch(key)) is not None:
            found.setdefault(part[1], {})[part[2]] = value
    return found


def hand_over_lfs(hub: WritableRepository, common_dir: Path, blobs: Iterable[str]) -> None:
    """Copy the content of LFS files that these blobs point to into the person's repository, where theirs lacks it."""
    ours, theirs = hub.path / _LFS, _lfs_of(common_dir)
    if not ours.is_dir():
        return
    for blob in blobs:
        if hub.size_of(blob) <= _LARGEST_POINTER and (pointer := _POINTER.match(hub.content(blob))) is not None:
            id = pointer[1].decode()
            place = Path("objects", id[:2], id[2:4], id)
            if not (theirs / place).exists():
                _copy_checked(safe_files.opened(ours, str(place)), theirs / place, id)


def _copy_checked(source: BinaryIO | None, goal: Path, id: str) -> None:
    """Nothing but the content that the id stands for appears under it."""
    if source is None:
        return
    goal.parent.mkdir(parents=True, exist_ok=True)
    half = goal.with_name(f".{goal.name}.{uuid.uuid4().hex}")
    try:
        with source, half.open("xb") as copy:
            shutil.copyfileobj(source, copy, 1 << 20)
        with half.open("rb") as copied:
            if hashlib.file_digest(copied, "sha256").hexdigest() == id:
                half.rename(goal)
    finally:
        half.unlink(missing_ok=True)


def _with_rules(hub: History, source: FilterSource, rules: tuple[FilterRule, ...]) -> Filters | None:
    names = filter_names(rules)
    if not names:
        return None
    # The mirror of a hub on a machine has no person whose settings count.
    known = {} if source.common_dir == hub.path else defined(source.common_dir)
    refused = {name: why for name in names if (why := refusal(name, known.get(name))) is not None}
    # Nothing of a file is stored whose filter cannot run: it may be there to hide the file's text.
    parts = {name: {"clean": _FAIL, "smudge": "cat"} if name in refused else known[name] for name in names}
    settings = {f"filter.{name}.{part}": value for name in names for part, value in parts[name].items()}
    for name in names:
        # Git takes a file as it is where a command is missing, or fails and is not required.
        settings |= {f"filter.{name}.required": "true"}
        settings |= {} if {"smudge", "process"} & {*parts[name]} else {f"filter.{name}.smudge": "cat"}
    settings |= _settings(source.common_dir, rf"^{_KEYS}\.") if _KEYS in names else {}
    return Filters(rules=rules, settings=settings, refused=refused, lfs=hub.path / _LFS, source=source)


def _rules(repository: History, files: Mapping[bytes, str], common_dir: Path) -> tuple[FilterRule, ...]:
    texts = {os.fsdecode(path): os.fsdecode(repository.content(blob)) for path, blob in files.items()}
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "git"
    places = (common_dir / "config", Path.home() / ".gitconfig", home / "config", Path("/etc/gitconfig"))
    named = _attributes_setting(common_dir, tuple(_changed(place) for place in places))
    everywhere = Path(named).expanduser() if named else home / "attributes"
    first = (_text(Path("/etc/gitattributes")), _text(everywhere))
    return filter_rules(texts, first=first, last=_text(common_dir / "info" / "attributes"))


@functools.lru_cache(maxsize=64)
def _attributes_setting(common_dir: Path, changed: tuple[int, ...]) -> str:
    """Asked again once one of the files with settings was changed."""
    return _settings(common_dir, r"^core\.attributesfile$").get("core.attributesfile", "")


def _changed(file: Path) -> int:
    return file.stat().st_mtime_ns if file.is_file() else 0


def _text(file: Path) -> str:
    return os.fsdecode(file.read_bytes()) if file.is_file() else ""


def _settings(common_dir: Path, names: str) -> dict[str, str]:
    """By an ordinary git of the person, which only reads; the last value of a name counts."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or "CONFIG" in name}
    words = ("git", "config", "-z", "--get-regexp", names)
    answer = run(words, env={**env, "GIT_DIR": str(common_dir), "LC_ALL": "C"})
    pairs = (one.partition(b"\n") for one in fields(answer.stdout))
    return {os.fsdecode(key): os.fsdecode(value) for key, _, value in pairs}


def _lfs_of(common_dir: Path) -> Path:
    """Where the person's LFS keeps the content of files."""
    storage = _settings(common_dir, r"^lfs\.storage$").get("lfs.storage", _LFS)
    return common_dir / storage


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
