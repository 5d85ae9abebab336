"""Runs the project's [setup] in a tree. Its output is not part of any change.

In a tree that shows exactly a commit, the outputs serve other commits that differ in nothing that setup read. What
outlives its tree (downloads, names that are kept out of changes) is written only by a setup on a commit that landed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import threading
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from legion.config.files.project import FILE
from legion.domain.errors import LegionError
from legion.domain.failure_causes import reason
from legion.domain.runs import Run
from legion.git.core.errors import GitError
from legion.git.core.history import GITLINK
from legion.git.trees import setup_changes
from legion.git.trees.obstacles import exactly
from legion.git.trees.setup_changes import FoundFiles
from legion.jobs.board import Board
from legion.jobs.context import Context
from legion.jobs.trees import ProjectContext, Trees
from legion.jobs.workspace import command, kept_outputs, sandbox
from legion.jobs.workspace.command import CancelToken
from legion.jobs.workspace.kept_outputs import SetupRecord
from legion.runner.spec import RunFolder
from legion.system import crash, files, read_marks, safe_files, trees
from legion.system.crash import Point

_LARGEST_KEY = 64 << 20
_LOOK_UP = 1.0
"""Seconds after which one that waits looks whether it was cancelled."""


class SetupFailed(LegionError):
    """The project's own [setup] command failed: no change is to blame."""

    says = ""
    """The line of its output that says most, with its likely cause."""


class SetupCutOff(LegionError):
    """Its runner was killed. The job backs off and tries again; nothing is known of the command."""


def key_of(project: ProjectContext, tree: Path) -> str:
    """A digest of the command and the key files: if it changes, setup runs again. Of a very large file, which only an
    agent can have made, its size and its first part count."""
    setup = project.config.setup
    digest = hashlib.sha256(setup.run.encode())
    for name in setup.key:
        digest.update(f"\0{name}\0".encode() + safe_files.digest(tree, name, most=_LARGEST_KEY))
    return digest.hexdigest()


def serves(project: ProjectContext, record: Path, commit: str) -> bool:
    """Whether what setup made on a landed commit is what it would make on this one."""
    known = kept_outputs.read(record)
    if not known.made_on or known.run != project.config.setup.run:
        return False
    return known.made_on == commit or not _reads_difference(project, known, known.made_on, commit)


def would_read(project: ProjectContext, record: Path, target: str, commit: str) -> bool:
    """Whether setup on the target would read what the commit changes, as far as its last run on a landed commit tells:
    then what it makes there is of no use for the commit."""
    known = kept_outputs.read(record)
    if not known.made_on or known.run != project.config.setup.run:
        return False
    return _reads_difference(project, known, target, commit)


def _reads_difference(project: ProjectContext, known: SetupRecord, one: str, other: str) -> bool:
    """Whether setup read what differs, or a file that differs is in the way of an output or changes how git writes
    others."""
    if known.read is None:
        return True
    try:
        changed = tuple(project.hub.differences(project.hub.tree_of(one), project.hub.tree_of(other)))
    except GitError:
        return True
    if any(entry is not None and entry.mode == GITLINK for _, *both in changed for entry in both):
        return True
    paths = [(os.fsdecode(path), old is None or new is None or old.mode != new.mode) for path, old, new in changed]
    key = set(project.config.setup.key)
    return any(
        path in key
        or path.rpartition("/")[2] == ".gitattributes"
        or _overlaps(path, known.outputs)
        # Nothing but Legion asks whether its settings are there, and a person commits them after the first setup.
        or known.read.include(path, is_new_or_gone=moved and path != FILE)
        for path, moved in paths
    )


def _overlaps(path: str, outputs: Iterable[str]) -> bool:
    """Whether the path is one of the outputs, or is below or above one."""
    return any(f"{path}/".startswith(f"{one}/") or one.startswith(f"{path}/") for one in outputs)


def is_intact(record: Path, tree: Path) -> bool:
    """Whether the outputs are still those that setup made, each in its place."""
    known = kept_outputs.read(record)
    return bool(known.key) and known.marks == _marks(tree, known.outputs)


def shown(tree: Path, outputs: tuple[str, ...]) -> tuple[Path, ...]:
    """The outputs that a sandbox can show read-only: a link among them may lead out of the tree."""
    return tuple(tree / path for path in outputs if not (tree / path).is_symlink())


def is_prepared(context: Board, run: Run) -> bool:
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
    context: Context,
    project: ProjectContext,
    tree: Path,
    *,
    record: Path | None = None,
    shows: str = "",
    landed: str = "",
    base: str = "",
    cancel: CancelToken | None = None,
) -> None:
    """Run setup in the tree unless what it would make is there.

    `base`: the commit from which the work in the tree started; its filters count there. `shows`: the tree's files are
    exactly those of this commit. Then outputs of another commit are used only if they serve this one, and setup starts
    from nothing. `landed`: the landed commit whose files are in the tree, if no program of a change has worked there.
    `record`: where to keep what is known of a check tree, which is shown again before each use.

    Of several that start together with the same key, one runs, and the others use what it made if they can.
    """
    if not project.config.setup.run:
        return
    is_check_tree, record = record is not None, record or kept_outputs.record_of(project, tree)
    key = key_of(project, tree)
    last = _last(project, tree, record, key, shows)
    if last is None:
        return
    unfinished = last.place == str(tree) and last.before is not None
    commit, index = shows or project.target, record.with_suffix(".index")
    if not unfinished:
        record.parent.mkdir(parents=True, exist_ok=True)
        last = _as_mixture(context, project, tree, last, commit, base, index)
        kept_outputs.write(record, last)
    crash.reach(Point.SETUP_BEFORE_RUN)
    has_landed = bool(landed) and _is_untouched(project, last, landed)
    is_known = not unfinished and _is_untouched(project, last, commit)
    # In a tree with nothing of an earlier setup, it makes what any other tree of that commit would get.
    made_on = (shows or ("" if last.outputs else landed)) if has_landed and not unfinished else ""
    with contextlib.ExitStack() as turn:
        waited = is_known and turn.enter_context(_turn(context, project, key, makes=bool(made_on), cancel=cancel))
        given = _give_kept(context, project, tree, key, commit) if is_known else None
        if given is not None or waited:
            turn.close()
        marked = read_marks.mark(tree) if given is None and made_on else None
        began = time.time_ns()
        if given is None:
            _run(context, project, tree, landed=has_landed, cancel=cancel)
        read = None if marked is None else read_marks.read_since(tree, marked)
        live = sandbox.live_tree(context, project, tree)
        after, edits = setup_changes.after(live, commit, last.state, index, base=base)
        made = sorted((set(last.outputs) & set(after)) | (set(after) - set(last.before or ())))
        if has_landed:
            _leave_out_of_changes(project, made)
        if is_check_tree:
            _separate(tree, made)
        done = SetupRecord(
            key=key,
            run=project.config.setup.run,
            outputs=tuple(made),
            edited=tuple({edit.path: edit for edit in (*last.edited, *edits)}.values()),
            place=str(tree),
            made_on=made_on if given is None else given.made_on,
            read=read if given is None else given.read,
            marks=_marks(tree, made),
        )
        kept_outputs.write(record, done)
        index.unlink(missing_ok=True)
        if marked is not None and sandbox.is_on(context) and not _is_kept(project, tree, done, marked, began):
            _OWN_TO_EACH.add((project.folder, key))
    crash.reach(Point.SETUP_AFTER_RECORD)


def _as_mixture(
    context: Context, project: ProjectContext, tree: Path, last: SetupRecord, commit: str, base: str, index: Path
) -> SetupRecord:
    """What a tree is from here on: it must not pass for the output of the last setup."""
    live, known = sandbox.live_tree(context, project, tree), _known_of_worktree(project, tree)
    return _started(last, setup_changes.before(live, commit, base=base, known=known, index=index), tree)


_TURNS = threading.Condition()
_MAKING: set[tuple[Path, str]] = set()
"""Projects and keys with a setup whose outputs may serve others."""
_OWN_TO_EACH: set[tuple[Path, str]] = set()
"""Those with outputs that belong to one tree, as far as was seen: nothing is gained by waiting for them."""


@contextlib.contextmanager
def _turn(
    context: Trees, project: ProjectContext, key: str, *, makes: bool, cancel: CancelToken | None
) -> Iterator[bool]:
    """Wait for a setup with this key whose outputs may serve, and be that one for others if it `makes` such. Returns
    whether there was one. Raises Cancelled."""
    one = (project.folder, key)
    waited = False
    with _TURNS:
        while one in _MAKING and one not in _OWN_TO_EACH:
            waited = True
            _TURNS.wait(_LOOK_UP)
            if cancel is not None:
                cancel.raise_if_cancelled()
        is_maker = makes and not waited and sandbox.is_on(context) and one not in _MAKING
        if is_maker:
            _MAKING.add(one)
    try:
        yield waited
    finally:
        with _TURNS:
            if is_maker:
                _MAKING.discard(one)
            _TURNS.notify_all()


def _last(project: ProjectContext, tree: Path, record: Path, key: str, shows: str) -> SetupRecord | None:
    """What an earlier setup left in the tree; None where it serves."""
    last = kept_outputs.read(record)
    if not shows or last.before is not None:
        return None if last.key == key and all(os.path.lexists(tree / path) for path in last.outputs) else last
    if serves(project, record, shows) and is_intact(record, tree):
        return None
    for path in last.outputs:
        # Nothing outside of the tree: a link may be where a folder was.
        if not kept_outputs.is_behind_link(tree, path):
            trees.remove(tree / path)
    return SetupRecord()


def _started(last: SetupRecord, found: FoundFiles, tree: Path) -> SetupRecord:
    kept = SetupRecord(outputs=last.outputs, edited=last.edited)
    return replace(kept, before=found.others, state=found.state, place=str(tree))


def _give_kept(context: Trees, project: ProjectContext, tree: Path, key: str, commit: str) -> SetupRecord | None:
    """Copy what setup made in another tree into this one, if it would make the same here. A setup without a sandbox may
    also have done something elsewhere, so it runs."""
    if not sandbox.is_on(context):
        return None
    with kept_outputs.alone(project):
        kept = kept_outputs.read(kept_outputs.record(project))
        if kept.key != key or not serves(project, kept_outputs.record(project), commit):
            return None
        return kept if kept_outputs.give(project, tree, kept.outputs) else None


def _is_kept(project: ProjectContext, tree: Path, done: SetupRecord, marked: read_marks.Marks, since: int) -> bool:
    """Keep what setup made for other trees. False where it belongs to this one."""
    edited = any(_is_edited(tree / path, since) for path in marked)
    return not edited and kept_outputs.keep(project, tree, done.outputs, kept_outputs.text(done))


def _is_edited(path: Path, since: int) -> bool:
    """Whether a file of the project is another one than before setup. Folders get new entries."""
    try:
        facts = path.lstat()
    except OSError:
        return True
    return not stat.S_ISDIR(facts.st_mode) and facts.st_ctime_ns >= since


def _is_untouched(project: ProjectContext, found: SetupRecord, commit: str) -> bool:
    """Whether the files that were there before setup are those of the commit, as far as that is known, and what an
    earlier setup made."""
    if not found.state:
        return True
    return found.state == project.hub.tree_of(commit) and set(found.before or ()) <= set(found.outputs)


def _known_of_worktree(project: ProjectContext, tree: Path) -> Path | None:
    """What is known of the files; None for other trees, which show exactly a commit before each use."""
    known = project.worktrees.index(tree.name)
    return known if tree == project.worktrees.path(tree.name) and known.exists() else None


def _run(context: Context, project: ProjectContext, tree: Path, *, landed: bool, cancel: CancelToken | None) -> None:
    ended = command.run(
        context,
        project,
        name="setup",
        command=project.config.setup.run,
        tree=tree,
        timeout=project.config.setup.timeout,
        installs=True,
        landed=landed,
        cancel=cancel,
    )
    if ended.lost:
        raise SetupCutOff(f"The project's setup was interrupted ({ended.how}) and runs again soon.")
    if ended.exit_code != 0:
        said = reason(ended.tail, ended.exit_code)
        failed = SetupFailed(
            f"The [setup] command `{project.config.setup.run}` failed ({ended.how}): fix it in legion.toml. "
            f"It says: {said}. Its output ends with: {ended.tail[-400:].strip() or 'nothing'}"
        )
        failed.says = said
        raise failed


def _separate(tree: Path, outputs: Iterable[str]) -> None:
    """Remove each file of the project that is a hard link: a check could write an output by it. It is written from its
    commit when the tree is shown next."""
    made = frozenset(outputs)
    for one in trees.walk(tree, skip=(".git",)):
        if one.path in made or not one.entry.is_file(follow_symlinks=False):
            continue
        if one.facts is not None and one.facts.st_nlink > 1 and not made.intersection(trees.above(one.path)):
            trees.remove(tree / one.path)


def _marks(tree: Path, paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(_mark(tree, path) for path in paths)


def _mark(tree: Path, path: str) -> str:
    """What tells an output from another in its place; a path that is gone or behind a link has none.

    A sandbox shows files and folders read-only, but no links, and the number of a removed link is soon given to a new
    one: so the time counts, too. That of a folder is another one after each new name in it.
    """
    place = tree / path
    facts = trees.facts(tree, path)
    if facts is None:
        return ""
    when = 0 if stat.S_ISDIR(facts.st_mode) else facts.st_ctime_ns
    leads_to = place.readlink() if stat.S_ISLNK(facts.st_mode) else ""
    return f"{facts.st_ino} {stat.S_IFMT(facts.st_mode)} {when} {leads_to}"


def forget_cut_off(record: Path) -> None:
    """For a tree that is cleaned before each use: an interrupted setup leaves nothing in it."""
    if kept_outputs.read(record).before is not None:
        record.unlink()


def _leave_out_of_changes(project: ProjectContext, paths: list[str]) -> None:
    """By the hub's own exclude file, which snapshots use and no agent can reach."""
    exclude = project.hub.path / "info" / "exclude"
    with files.waiting_lock(project.folder / "exclude.lock"):
        lines = exclude.read_bytes().splitlines() if exclude.exists() else []
        wanted = [os.fsencode(exactly(path)) for path in paths if "\n" not in path]
        new = [line for line in wanted if line not in lines]
        if new:
            exclude.parent.mkdir(exist_ok=True)
            files.write_atomic(exclude, b"\n".join([*lines, *new]) + b"\n", mode=0o644)
