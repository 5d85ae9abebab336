"""Outputs of [setup] in trees: a record of each, and copies of them.

The outputs of the last setup on a landed commit are kept aside: another tree gets a copy, which takes seconds. Outputs
that name the folder of their tree, as those of Python's `venv` do, work only there and are not kept.

A check reads the outputs in its tree. Those that tools write to (caches, build folders) it gets as a copy, which is
removed after it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from legion.git.trees.setup_changes import SetupEdit
from legion.jobs.trees import ProjectContext
from legion.system import files, process, trees
from legion.system.read_marks import ReadFiles

_SEARCH_SECONDS = 300.0
_CACHES_IN = {"node_modules": (".cache", ".vite", ".vite-temp", ".vitest")}
"""By name of an output: folders in it where tools keep what they can make again."""
_WRITTEN_TO = frozenset(
    (
        *("target", "build", "_build", "dist", "out", "obj", "bin", "dist-newstyle", ".stack-work", ".dart_tool"),
        *(".gradle", ".next", ".nuxt", ".output", ".svelte-kit", ".angular", ".astro", ".turbo", ".nx", ".cache"),
        *("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".tox", ".nox", "coverage"),
        *("htmlcov", ".coverage", ".nyc_output", ".parcel-cache", ".eslintcache", ".stylelintcache"),
    )
)
"""Names of outputs that builds and tests write to."""


def record(project: ProjectContext) -> Path:
    """What `setup` knows of the kept outputs. Without it there are none."""
    return project.folder / "kept" / "record.json"


@contextmanager
def alone(project: ProjectContext) -> Iterator[None]:
    """While this lasts, the kept outputs and their record belong together."""
    record(project).parent.mkdir(parents=True, exist_ok=True)
    with files.waiting_lock(project.folder / "kept.lock"):
        yield


def keep(project: ProjectContext, tree: Path, outputs: Sequence[str], facts: str) -> bool:
    """Keep these outputs with their record instead of the earlier ones, if they work in another folder."""
    paths = [tree / path for path in outputs]
    if not paths or any(is_behind_link(tree, path) for path in outputs) or _names_its_folder(tree, paths):
        return False
    with project.check_trees.scratch() as scratch:
        new = scratch / "kept"
        for number, path in enumerate(paths):
            (new / str(number)).mkdir(parents=True)
            if not trees.copy([path], new / str(number)):
                return False
        files.write_atomic(new / record(project).name, facts)
        with alone(project):
            record(project).parent.rename(scratch / "old")
            new.rename(record(project).parent)
    return True


def give(project: ProjectContext, tree: Path, outputs: Sequence[str]) -> bool:
    """Copy the kept outputs into a tree. False: something is in their place there, or they could not be copied."""
    if any(os.path.lexists(tree / path) or is_behind_link(tree, path) for path in outputs):
        return False
    for number, path in enumerate(outputs):
        place = tree / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if not trees.copy([record(project).parent / str(number) / place.name], place.parent):
            trees.remove_all([tree / path for path in outputs])
            return False
    return True


@contextmanager
def written_to(project: ProjectContext, tree: Path, outputs: Iterable[Path]) -> Iterator[tuple[tuple[Path, Path], ...]]:
    """Pairs of a place in the tree that tools write to, and what stands there for one check."""
    safe = [one for one in outputs if one.is_relative_to(tree) and not _is_link(tree, one)]
    copied = [one for one in safe if one.name in _WRITTEN_TO]
    emptied = [one / name for one in safe if one.is_dir() for name in _CACHES_IN.get(one.name, ())]
    emptied = [one for one in emptied if not _is_link(tree, one)]
    if not copied and not emptied:
        yield ()
        return
    with project.check_trees.scratch() as scratch:
        pairs = []
        for number, place in enumerate((*copied, *emptied)):
            ours = scratch / str(number)
            ours.mkdir()
            if place in copied:
                trees.copy([place], ours)
                ours /= place.name
            else:
                # The program sees it in a folder that is read-only, where no place for it can be made later.
                with suppress(OSError):
                    place.mkdir(exist_ok=True)
            pairs.append((place, ours))
        yield tuple((place, ours) for place, ours in pairs if ours.exists() and (place in copied or place.is_dir()))


def _is_link(tree: Path, place: Path) -> bool:
    return place.is_symlink() or is_behind_link(tree, str(place.relative_to(tree)))


def is_behind_link(tree: Path, path: str) -> bool:
    """Whether a link on the way to the path leads elsewhere."""
    return (tree / path).parent.resolve() != (tree.resolve() / path).parent


def _names_its_folder(tree: Path, outputs: Sequence[Path]) -> bool:
    own = {str(tree), str(tree.resolve())}
    words = own | {quote(word) for word in own}
    if any(word in target for target in _links(outputs) for word in words):
        return True
    patterns = [part for word in sorted(words) for part in ("-e", word)]
    argv = ("grep", "-rqF", "-D", "skip", *patterns, "--", *map(str, outputs))
    return process.run(argv, timeout=_SEARCH_SECONDS, env={**os.environ, "LC_ALL": "C"}).code != 1


def _links(outputs: Iterable[Path]) -> Iterable[str]:
    for output in outputs:
        below = (output / one.path for one in trees.walk(output) if one.entry.is_symlink())
        for path in (output, *below):
            with suppress(OSError):
                yield str(path.readlink())


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
