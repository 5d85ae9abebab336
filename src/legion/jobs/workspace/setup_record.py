"""Records of the setups that ran in trees: what each made and edited, and the commit on which it ran."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from legion.git.trees.setup_changes import SetupEdit
from legion.jobs.trees import ProjectContext
from legion.system import files
from legion.system.read_marks import ReadFiles


@dataclass(frozen=True, kw_only=True)
class SetupRecord:
    key: str = ""
    """Empty while setup runs, and after an interrupted one."""
    run: str | None = None
    """The command that made it; None in a record of an older release."""
    outputs: tuple[str, ...] = ()
    edited: tuple[SetupEdit, ...] = ()
    before: tuple[str, ...] | None = None
    """The untracked files in the tree at the start of a setup that has not ended yet."""
    state: str = ""
    """The files of the project at that start, as a tree; empty where that is not known."""
    place: str = ""
    """Where that tree was: only there does it contain the output of an unfinished setup, and its edits."""
    made_on: str = ""
    """The landed commit that the tree showed; empty where it showed anything else."""
    read: ReadFiles | None = None
    """What setup read of it; None: that is not known, so it may be anything."""
    marks: tuple[str, ...] = ()
    """Of the outputs, in their order: what tells each from another in its place. None are of an older release."""


def record_of(project: ProjectContext, tree: Path) -> Path:
    """The record that setup ran in this worktree, named by inode, which a rename keeps. The outputs of setup must still
    exist, so a reused inode number is detected."""
    return project.folder / "setup" / f"{tree.stat().st_ino}.json"


def outputs(record: Path) -> tuple[str, ...]:
    """The paths that setup made in the tree of this record; a new folder is one path."""
    return read(record).outputs


def edited(project: ProjectContext, tree: Path) -> tuple[SetupEdit, ...]:
    """The files of the project that setup changed in this worktree."""
    known = read(record_of(project, tree))
    return known.edited if known.place == str(tree) else ()


def read(record: Path) -> SetupRecord:
    try:
        known = json.loads(record.read_text())
    except (FileNotFoundError, ValueError):
        return SetupRecord()
    before = known.get("before")
    return SetupRecord(
        key=known["key"],
        outputs=tuple(known["outputs"]),
        run=known.get("run"),
        edited=tuple(_edit(facts) for facts in known.get("edited", ())),
        before=None if before is None else tuple(before),
        state=known.get("state", ""),
        place=known.get("place", ""),
        made_on=known.get("made_on", ""),
        read=_read_files(known.get("read")),
        marks=tuple(known.get("marks", ())),
    )


def _read_files(facts: Mapping[str, Any] | None) -> ReadFiles | None:
    return None if facts is None else ReadFiles(**{name: frozenset(paths) for name, paths in facts.items()})


def _edit(facts: Mapping[str, Any]) -> SetupEdit:
    mode, id = facts["before"]
    return SetupEdit(path=facts["path"], before=(mode, id), after=tuple(facts["after"]) if facts["after"] else None)


def write(record: Path, known: SetupRecord) -> None:
    record.parent.mkdir(parents=True, exist_ok=True)
    files.write_atomic(record, text(known))


def text(known: SetupRecord) -> str:
    return json.dumps(asdict(known), default=sorted)
