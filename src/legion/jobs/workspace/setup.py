"""Runs the project's [setup] in a tree, once per content of the lock files. Its output is not part of any change."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from legion.domain.errors import LegionError
from legion.domain.runs import Run
from legion.git.trees import setup_changes
from legion.git.trees.setup_changes import SetupEdit
from legion.git.trees.tree import exactly, untracked
from legion.jobs.context import Context, ProjectContext
from legion.jobs.workspace import command
from legion.runner.spec import RunFolder
from legion.system import crash, files
from legion.system.crash import Point


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


def reusable(project: ProjectContext, record: Path) -> tuple[str, ...]:
    """The outputs that the setup in force can use again: none of them where another command made them."""
    known = _read(record)
    return known.outputs if known.run in (None, project.config.setup.run) else ()


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


def ensure(context: Context, project: ProjectContext, tree: Path, record: Path) -> None:
    """Run setup in the tree unless it has run there for the same key."""
    if not project.config.setup.run:
        return
    key = key_of(project, tree)
    last = _read(record)
    if last.key == key and all(os.path.lexists(tree / path) for path in last.outputs):
        return
    unfinished = last.place == str(tree) and last.before is not None
    before = last.before if unfinished else None
    if before is None:
        before = untracked(project.hub, tree, project.target)
    state = last.state if unfinished else _state(project, tree, record)
    # From here on the tree is a mixture, which must not pass for the output of the last setup.
    started = _Record(outputs=last.outputs, edited=last.edited, before=before, state=state, place=str(tree))
    _write(record, started)
    crash.reach(Point.SETUP_BEFORE_RUN)
    project.cache.mkdir(parents=True, exist_ok=True)
    ended = command.run(
        context,
        project,
        name="setup",
        command=project.config.setup.run,
        tree=tree,
        timeout=project.config.setup.timeout,
        writable=(project.cache,),
        env={"XDG_CACHE_HOME": str(project.cache), "PIP_CACHE_DIR": str(project.cache / "pip")},
    )
    if ended.lost:
        raise SetupCutOff(f"The project's setup was interrupted ({ended.how}) and runs again soon.")
    if ended.exit_code != 0:
        raise SetupFailed(
            f"The [setup] command `{project.config.setup.run}` failed ({ended.how}): fix it in legion.toml; "
            f"its output ends with: {ended.tail[-400:].strip() or 'nothing'}"
        )
    after = untracked(project.hub, tree, project.target)
    made = sorted((set(last.outputs) & set(after)) | (set(after) - set(before)))
    _leave_out_of_changes(project, made)
    now = _edits(project, tree, record, state)
    again = {edit.path for edit in now}
    edited = (*(edit for edit in last.edited if edit.path not in again), *now)
    run = project.config.setup.run
    _write(record, _Record(key=key, run=run, outputs=tuple(made), edited=edited, place=str(tree)))
    crash.reach(Point.SETUP_AFTER_RECORD)


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
    )


def _edit(facts: Mapping[str, Any]) -> SetupEdit:
    mode, id = facts["before"]
    return SetupEdit(path=facts["path"], before=(mode, id), after=tuple(facts["after"]) if facts["after"] else None)


def _state(project: ProjectContext, tree: Path, record: Path) -> str:
    """For a worktree; other trees show exactly a commit before each use."""
    known = project.worktrees.index(tree.name)
    if tree != project.worktrees.path(tree.name) or not known.exists():
        return ""
    record.parent.mkdir(parents=True, exist_ok=True)
    return setup_changes.state(project.hub, tree, _index(record), known=known)


def _edits(project: ProjectContext, tree: Path, record: Path, state: str) -> tuple[SetupEdit, ...]:
    index = _index(record)
    found = setup_changes.edits(project.hub, tree, index, state) if state and index.exists() else ()
    index.unlink(missing_ok=True)
    return found


def _index(record: Path) -> Path:
    return record.with_suffix(".index")


def _write(record: Path, known: _Record) -> None:
    record.parent.mkdir(parents=True, exist_ok=True)
    files.write_atomic(record, json.dumps(asdict(known)))


def _leave_out_of_changes(project: ProjectContext, paths: list[str]) -> None:
    """By the hub's own exclude file, which snapshots use and no agent can reach."""
    exclude = project.hub.path / "info" / "exclude"
    with files.waiting_lock(project.folder / "exclude.lock"):
        lines = exclude.read_text().splitlines() if exclude.exists() else []
        new = [line for line in map(exactly, paths) if line not in lines]
        if new:
            exclude.parent.mkdir(exist_ok=True)
            files.write_atomic(exclude, "\n".join([*lines, *new]) + "\n", mode=0o644)
