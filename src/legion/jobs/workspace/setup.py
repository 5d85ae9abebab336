"""Runs the project's [setup] in a tree. Its output is not part of any change.

In a tree that shows exactly a commit, the outputs serve other commits that differ in nothing that setup read. What
outlives its tree (downloads, names that are kept out of changes) is written only by a setup on a commit that landed.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from legion.domain.errors import LegionError
from legion.domain.runs import Run
from legion.git.core.errors import GitError
from legion.git.trees import setup_changes
from legion.git.trees.setup_changes import SetupEdit
from legion.git.trees.tree import exactly, untracked
from legion.jobs.context import Context, ProjectContext
from legion.jobs.workspace import command, kept_outputs, sandbox
from legion.runner.spec import RunFolder
from legion.system import crash, files, read_marks, trees
from legion.system.crash import Point
from legion.system.read_marks import ReadFiles

_SUBMODULE = b"160000"


class SetupFailed(LegionError):
    """The project's own [setup] command failed: no change is to blame."""


class SetupCutOff(LegionError):
    """Its runner was killed. The job backs off and tries again; nothing is known of the command."""


def key_of(project: ProjectContext, tree: Path) -> str:
    """A digest of the command and the key files: if it changes, setup runs again."""
    setup = project.config.setup
    digest = hashlib.sha256(setup.run.encode())
    for name in setup.key:
        file = tree / name
        content = file.read_bytes() if file.is_file() and not file.is_symlink() else b""
        digest.update(f"\0{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()


def record_of(project: ProjectContext, tree: Path) -> Path:
    """The record that setup ran in this worktree, named by inode, which a rename keeps. The outputs of setup must still
    exist, so a reused inode number is detected."""
    return project.folder / "setup" / f"{tree.stat().st_ino}.json"


def outputs(record: Path) -> tuple[str, ...]:
    """The paths that setup made in the tree of this record; a new folder is one path."""
    return _read(record).outputs


def serves(project: ProjectContext, record: Path, commit: str) -> bool:
    """Whether what setup made on a landed commit is what it would make on this one."""
    known = _read(record)
    if not known.made_on or known.run != project.config.setup.run:
        return False
    if known.made_on == commit:
        return True
    read = known.read
    if read is None:
        return False
    try:
        changed = tuple(project.hub.differences(project.hub.tree_of(known.made_on), project.hub.tree_of(commit)))
        if any(one is not None and one.mode == _SUBMODULE for _, *both in changed for one in both):
            return False
        paths = [(os.fsdecode(path), old is None or new is None or old.mode != new.mode) for path, old, new in changed]
    except GitError:
        return False
    key = set(project.config.setup.key)
    return not any(path in key or read.include(path, is_new_or_gone=moved) for path, moved in paths)


def is_intact(record: Path, tree: Path) -> bool:
    """Whether the outputs are still those that setup made, each in its place."""
    known = _read(record)
    return bool(known.key) and known.inodes == _inodes(tree, known.outputs)


def shown(tree: Path, outputs: tuple[str, ...]) -> tuple[Path, ...]:
    """The outputs that a sandbox can show read-only: a link among them may lead out of the tree."""
    return tuple(tree / path for path in outputs if not (tree / path).is_symlink())


def edited(project: ProjectContext, tree: Path) -> tuple[SetupEdit, ...]:
    """The files of the project that setup changed in this worktree."""
    known = _read(record_of(project, tree))
    return known.edited if known.place == str(tree) else ()


def is_prepared(context: Context, run: Run) -> bool:
    """Whether the worktree of a run is ready, with setup complete: the run's spec is written after that."""
    return RunFolder(context.data.runs / run.name).spec.exists()


def drop_stale_pool(project: ProjectContext) -> None:
    """Warm trees hold what an earlier setup made: after a change of the command they are thrown away."""
    mark = project.folder / "setup" / "warm"
    command_ = project.config.setup.run
    before = mark.read_text() if mark.exists() else None
    if before == command_:
        return
    if before is not None:
        project.worktrees.drop_waiting()
    mark.parent.mkdir(parents=True, exist_ok=True)
    files.write_atomic(mark, command_)


def ensure(
    context: Context, project: ProjectContext, tree: Path, record: Path, *, shows: str = "", landed: bool = False
) -> None:
    """Run setup in the tree unless what it would make is there.

    `shows`: the tree's files are exactly those of this commit. Then outputs of another commit are used only if they
    serve this one, and setup starts from nothing. `landed`: no file in the tree is of a change that has not landed.
    """
    if not project.config.setup.run:
        return
    key = key_of(project, tree)
    last = _read(record)
    if shows and last.before is None:
        if serves(project, record, shows) and is_intact(record, tree):
            return
        for path in last.outputs:
            _remove(tree, path)
        last = _Record()
    elif last.key == key and all(os.path.lexists(tree / path) for path in last.outputs):
        return
    unfinished = last.place == str(tree) and last.before is not None
    before = last.before if unfinished else None
    if before is None:
        before = untracked(project.hub, tree, shows or project.target)
    state = last.state if unfinished else _state(project, tree, record)
    # From here on the tree is a mixture, which must not pass for the output of the last setup.
    started = _Record(outputs=last.outputs, edited=last.edited, before=before, state=state, place=str(tree))
    _write(record, started)
    crash.reach(Point.SETUP_BEFORE_RUN)
    given = None if unfinished else _give_kept(context, project, tree, key, shows or project.target)
    marked = read_marks.mark(tree) if given is None and shows and landed and not unfinished else None
    began = time.time_ns()
    if given is None:
        _run(context, project, tree, landed=landed)
    read = None if marked is None else read_marks.read_since(tree, marked)
    after = untracked(project.hub, tree, shows or project.target)
    made = sorted((set(last.outputs) & set(after)) | (set(after) - set(before)))
    if landed:
        _leave_out_of_changes(project, made)
    if shows:
        _separate(tree, made)
    now = _edits(project, tree, record, state)
    again = {edit.path for edit in now}
    edited = (*(edit for edit in last.edited if edit.path not in again), *now)
    done = _Record(
        key=key,
        run=project.config.setup.run,
        outputs=tuple(made),
        edited=edited,
        place=str(tree),
        made_on=given.made_on if given is not None else shows if landed and not unfinished else "",
        read=given.read if given is not None else read,
        inodes=_inodes(tree, made),
    )
    _write(record, done)
    if marked is not None and sandbox.is_on(context) and not any(_is_edited(tree / path, began) for path in marked):
        kept_outputs.keep(project, tree, made, _text(done))
    crash.reach(Point.SETUP_AFTER_RECORD)


def _give_kept(context: Context, project: ProjectContext, tree: Path, key: str, commit: str) -> _Record | None:
    """Copy what setup made in another tree into this one, if it would make the same here. A setup without a sandbox may
    also have done something elsewhere, so it runs."""
    if not sandbox.is_on(context):
        return None
    with kept_outputs.alone(project):
        kept = _read(kept_outputs.record(project))
        if kept.key != key or not serves(project, kept_outputs.record(project), commit):
            return None
        return kept if kept_outputs.give(project, tree, kept.outputs) else None


def _is_edited(path: Path, since: int) -> bool:
    """Whether a file of the project is another one than before setup. Folders get new entries."""
    try:
        facts = path.lstat()
    except OSError:
        return True
    return not stat.S_ISDIR(facts.st_mode) and facts.st_ctime_ns >= since


def _run(context: Context, project: ProjectContext, tree: Path, *, landed: bool) -> None:
    ended = command.run(
        context,
        project,
        name="setup",
        command=project.config.setup.run,
        tree=tree,
        timeout=project.config.setup.timeout,
        installs=True,
        landed=landed,
    )
    if ended.lost:
        raise SetupCutOff(f"The project's setup was interrupted ({ended.how}) and runs again soon.")
    if ended.exit_code != 0:
        raise SetupFailed(
            f"The [setup] command `{project.config.setup.run}` failed ({ended.how}): fix it in legion.toml; "
            f"its output ends with: {ended.tail[-400:].strip() or 'nothing'}"
        )


def _separate(tree: Path, outputs: Iterable[str]) -> None:
    """Give each file that is a hard link a copy of its own: a check could write an output by it."""
    made = frozenset(outputs)
    for one in trees.walk(tree, skip=(".git",)):
        if one.path in made or not one.entry.is_file(follow_symlinks=False):
            continue
        if one.facts is not None and one.facts.st_nlink > 1 and not made.intersection(_above(one.path)):
            place = tree / one.path
            copy = place.with_name(f"{place.name}.own")
            shutil.copy2(place, copy, follow_symlinks=False)
            copy.replace(place)


def _above(path: str) -> Iterator[str]:
    while path := path.rpartition("/")[0]:
        yield path


def _remove(tree: Path, path: str) -> None:
    """Nothing outside of the tree: a link may be where a folder was."""
    if not kept_outputs.is_behind_link(tree, path):
        trees.remove(tree / path)


def _inodes(tree: Path, paths: Iterable[str]) -> tuple[int, ...]:
    """What tells these paths from others in their place; a path that is gone or behind a link has none."""
    return tuple(_inode(tree, path) for path in paths)


def _inode(tree: Path, path: str) -> int:
    place = tree / path
    return place.lstat().st_ino if os.path.lexists(place) and not kept_outputs.is_behind_link(tree, path) else 0


def forget_cut_off(record: Path) -> None:
    """For a tree that is cleaned before each use: an interrupted setup leaves nothing in it."""
    if _read(record).before is not None:
        record.unlink()


@dataclass(frozen=True, kw_only=True)
class _Record:
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
    inodes: tuple[int, ...] = ()
    """Of the outputs, in their order."""


def _read(record: Path) -> _Record:
    try:
        known = json.loads(record.read_text())
    except (FileNotFoundError, ValueError):
        return _Record()
    before = known.get("before")
    return _Record(
        key=known["key"],
        outputs=tuple(known["outputs"]),
        run=known.get("run"),
        edited=tuple(_edit(facts) for facts in known.get("edited", ())),
        before=None if before is None else tuple(before),
        state=known.get("state", ""),
        place=known.get("place", ""),
        made_on=known.get("made_on", ""),
        read=_read_files(known.get("read")),
        inodes=tuple(known.get("inodes", ())),
    )


def _read_files(facts: Mapping[str, Any] | None) -> ReadFiles | None:
    return None if facts is None else ReadFiles(**{name: frozenset(paths) for name, paths in facts.items()})


def _edit(facts: Mapping[str, Any]) -> SetupEdit:
    mode, id = facts["before"]
    return SetupEdit(path=facts["path"], before=(mode, id), after=tuple(facts["after"]) if facts["after"] else None)


def _state(project: ProjectContext, tree: Path, record: Path) -> str:
    """For a worktree; other trees show exactly a commit before each use."""
    known = project.worktrees.index(tree.name)
    if tree != project.worktrees.path(tree.name) or not known.exists():
        return ""
    record.parent.mkdir(parents=True, exist_ok=True)
    return setup_changes.state(project.hub, tree, _index(record), known=known, target=project.target)


def _edits(project: ProjectContext, tree: Path, record: Path, state: str) -> tuple[SetupEdit, ...]:
    index = _index(record)
    there = bool(state) and index.exists()
    found = setup_changes.edits(project.hub, tree, index, state, target=project.target) if there else ()
    index.unlink(missing_ok=True)
    return found


def _index(record: Path) -> Path:
    return record.with_suffix(".index")


def _write(record: Path, known: _Record) -> None:
    record.parent.mkdir(parents=True, exist_ok=True)
    files.write_atomic(record, _text(known))


def _text(known: _Record) -> str:
    return json.dumps(asdict(known), default=sorted)


def _leave_out_of_changes(project: ProjectContext, paths: list[str]) -> None:
    """By the hub's own exclude file, which snapshots use and no agent can reach."""
    exclude = project.hub.path / "info" / "exclude"
    with files.waiting_lock(project.folder / "exclude.lock"):
        lines = exclude.read_text().splitlines() if exclude.exists() else []
        new = [line for line in map(exactly, paths) if line not in lines]
        if new:
            exclude.parent.mkdir(exist_ok=True)
            files.write_atomic(exclude, "\n".join([*lines, *new]) + "\n", mode=0o644)
