"""The agent programs that Legion knows: those it ships, and those in `programs/` next to the person's settings.

A file of the person's with the name of a shipped program changes only what it names. A file with a fault makes its own
program unusable and no other; `legion driver list` shows the fault.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from legion.domain.errors import BadInput
from legion.drivers.programs.description import ProgramDescription, described, merged, parse
from legion.system.paths import user_config_file

SHIPPED = Path(__file__).parent
FOLDER = "programs"
NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")
_MOST_FILES = 200


@dataclass(frozen=True, kw_only=True)
class Programs:
    found: Mapping[str, ProgramDescription] = field(default_factory=dict)
    own: Mapping[str, Path] = field(default_factory=dict)
    """The person's own files, by the name of their program."""
    faults: Mapping[str, str] = field(default_factory=dict)
    """What is wrong with a file of the person's."""


def own_folder() -> Path:
    """The person's own files. A repository cannot write there."""
    return user_config_file().parent / FOLDER


def programs() -> Programs:
    """All programs. Files that have not changed are not read again."""
    folder = own_folder()
    return _joined(tuple(_marks(folder)))


@functools.cache
def shipped() -> Mapping[str, Mapping[str, Any]]:
    """The tables of the shipped files."""
    return {path.stem: parse(path.read_text("utf-8"), path.stem, path.name) for path in sorted(SHIPPED.glob("*.toml"))}


@dataclass(frozen=True)
class _Mark:
    """Identifies one version of a file."""

    path: Path
    inode: int
    changed: int
    size: int


def _marks(folder: Path) -> Iterator[_Mark]:
    try:
        files = sorted(folder.glob("*.toml"))[:_MOST_FILES]
    except OSError:
        return
    for path in files:
        try:
            status = path.stat()
        except OSError:
            continue
        yield _Mark(path, status.st_ino, status.st_mtime_ns, status.st_size)


@functools.lru_cache(maxsize=8)
def _joined(marks: tuple[_Mark, ...]) -> Programs:
    found = {name: described(name, table, f"{name}.toml") for name, table in shipped().items()}
    own, faults = {}, {}
    for mark in marks:
        name = mark.path.stem
        own[name] = mark.path
        try:
            found[name] = read_own(mark.path)
        except BadInput as fault:
            found.pop(name, None)
            faults[name] = fault.message
    return Programs(found=dict(sorted(found.items())), own=own, faults=faults)


def read_own(path: Path) -> ProgramDescription:
    """The program of a person's file, on top of the shipped one of that name. Raises BadInput."""
    if not NAME.fullmatch(path.stem):
        raise BadInput(f"{path} must be named with small letters, digits and dashes: rename it.")
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise BadInput(f"{path} cannot be read as UTF-8 text ({fault}): fix or remove it.") from None
    table = parse(text, path.stem, str(path))
    under = shipped().get(path.stem, {})
    # A program that was changed was not tried.
    over = {"tried": False, **table} if under and "program" in table else table
    return described(path.stem, merged(under, over), str(path))
