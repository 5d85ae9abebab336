"""Runs the project's [setup] in a tree, once per content of the lock files. Its output is not part of any change."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

from legion.domain.errors import LegionError
from legion.git.trees.tree import exactly, untracked
from legion.jobs.context import Context, ProjectContext
from legion.jobs.workspace import command
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


def ensure(context: Context, project: ProjectContext, tree: Path, record: Path) -> None:
    """Run setup in the tree unless it has run there for the same key."""
    if not project.config.setup.run:
        return
    key = key_of(project, tree)
    last = _read(record)
    if last.key == key and all(os.path.lexists(tree / path) for path in last.outputs):
        return
    unfinished = last.before if last.place == str(tree) else None
    before = untracked(project.hub, tree, project.target) if unfinished is None else unfinished
    # From here on the tree is a mixture, which must not pass for the output of the last setup.
    _write(record, _Record(outputs=last.outputs, before=before, place=str(tree)))
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
    _write(record, _Record(key=key, outputs=tuple(made)))
    crash.reach(Point.SETUP_AFTER_RECORD)


def forget_cut_off(record: Path) -> None:
    """For a tree that is cleaned before each use: an interrupted setup leaves nothing in it."""
    if _read(record).before is not None:
        record.unlink()


@dataclass(frozen=True, kw_only=True)
class _Record:
    key: str = ""
    """Empty while setup runs, and after an interrupted one."""
    outputs: tuple[str, ...] = ()
    before: tuple[str, ...] | None = None
    """The untracked files in the tree at the start of a setup that has not ended yet."""
    place: str = ""
    """Where that tree was: only there does it contain the output of the unfinished setup."""


def _read(record: Path) -> _Record:
    try:
        known = json.loads(record.read_text())
    except (FileNotFoundError, ValueError):
        return _Record()
    before = known.get("before")
    return _Record(
        key=known["key"],
        outputs=tuple(known["outputs"]),
        before=None if before is None else tuple(before),
        place=known.get("place", ""),
    )


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
