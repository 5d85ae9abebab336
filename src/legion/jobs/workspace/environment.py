"""Prepares the environment of a run: slot, temp folder, env file, copied files, caches, `up` before and `down` after
it.

`prepare` and `release` may each be interrupted anywhere and repeated. What was done is recorded in the run's folder, so
that `down` follows every `up`, also after a crash of the daemon that started it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from legion.config.files.project import hash_of
from legion.config.sections.environment import PortOutside, fill_in
from legion.domain.errors import LegionError
from legion.domain.runs import Outcome, Run
from legion.git.person.inspect import WORKTREE_INCLUDE, included_files
from legion.git.trees.ignore_rules import is_left_out
from legion.jobs.board import Board
from legion.jobs.context import Context
from legion.jobs.trees import ProjectContext, Trees
from legion.jobs.workspace import caches, quota, sandbox, slots
from legion.jobs.workspace import command as commands
from legion.jobs.workspace.slots import Slot
from legion.store.board import projects
from legion.store.work import runs
from legion.system import files, safe_files, trees

_TAIL = 2000
_DOWNLOADS = "downloads"
"""In the temp folder."""


class EnvironmentFailed(LegionError):
    """The [environment] of the project or of the person does not work here: no agent is to blame."""


@dataclass(frozen=True, kw_only=True)
class WorkspaceEnv:
    """What a run gets apart from its worktree."""

    env: Mapping[str, str]
    writable: tuple[Path, ...]


@dataclass(frozen=True, kw_only=True)
class HookRun:
    """How `up` or `down` ended."""

    command: str
    ok: bool
    how: str
    tail: str


@dataclass(frozen=True, kw_only=True)
class EnvironmentRecord:
    """What was prepared for a run."""

    slot: Slot | None = None
    down: str = ""
    """The command that undoes it, as configured at that time."""
    timeout: float = 0.0
    owed: bool = False
    """`up` may have run, so `down` has to run."""
    up_result: HookRun | None = None
    down_result: HookRun | None = None
    notes: tuple[str, ...] = ()


def prepare(context: Context, project: ProjectContext, this_run: Run, tree: Path) -> WorkspaceEnv:
    """Prepare everything that this run has to itself. Raises EnvironmentFailed."""
    wanted = project.config.environment
    with context.store.read() as tx:
        earlier = [run for run in runs.of_seat(tx, this_run) if run.id < this_run.id]
    folder = context.data.runs / this_run.name
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    quota.allow_rest(context, this_run, earlier[-1:], tree)
    slot = slots.claim(context, this_run, ports=wanted.ports)
    _make_caches(context)
    _copy_cache(context, project, this_run)
    environment = _environment(context, this_run, slot)
    notes = _copy(context, project, tree)
    _write_env_file(context, project, this_run, slot, tree)
    record = read_record(context, this_run)
    if record.up_result is not None and record.up_result.ok and record.up_result.command == wanted.up and record.owed:
        return environment
    if record.owed:
        # An interrupted `up` may have left anything.
        _take_down(context, project, this_run, record, environment, tree)
    owed = bool(wanted.up or wanted.down)
    new = EnvironmentRecord(slot=slot, down=wanted.down, timeout=wanted.timeout, owed=owed, notes=notes)
    # Most projects have neither command, and their runs start without a write to disk.
    if owed or notes or record != EnvironmentRecord():
        _write_record(context, this_run, new)
    if wanted.up:
        _bring_up(context, project, this_run, new, environment, tree)
    return environment


def bare(context: Board, this_run: Run) -> WorkspaceEnv:
    """For a run that starts nothing of the project: only a temp folder of its own."""
    (context.data.runs / this_run.name).mkdir(parents=True, exist_ok=True, mode=0o700)
    return _environment(context, this_run, slots.claim(context, this_run, ports=0))


def release(context: Context, this_run: Run, outcome: Outcome) -> None:
    """Undo what was prepared for an ended run, and release its slot. A `down` that fails is recorded and ignored."""
    record = read_record(context, this_run)
    if record.owed and record.slot is not None:
        project = context.project(this_run.project)
        tree = project.worktrees.path(this_run.seat)
        _take_down(context, project, this_run, record, _environment(context, this_run, record.slot), tree)
    slots.release(context, this_run, outcome)


def kept_out(context: Board, project: ProjectContext) -> tuple[str, ...]:
    """The files that Legion puts into worktrees: they never land, whatever an agent does to the ignore files."""
    env_file = project.config.environment.env_file
    return (*((env_file,) if env_file else ()), *context.user.environment.copies(project.name))


def owner(this_run: Run) -> str:
    """A ticket by its number; an agent by its seat, which no ticket's number equals."""
    return this_run.seat if this_run.ticket is None else str(this_run.ticket)


def read_record(context: Board, this_run: Run) -> EnvironmentRecord:
    try:
        facts = json.loads(_record(context, this_run).read_bytes())
    except (FileNotFoundError, ValueError):
        return EnvironmentRecord()
    parts = {"slot": Slot, "up_result": HookRun, "down_result": HookRun}
    made = {name: part(**facts[name]) for name, part in parts.items() if facts[name]}
    return EnvironmentRecord(**{**facts, **made, "notes": tuple(facts["notes"])})


def _record(context: Board, this_run: Run) -> Path:
    return context.data.runs / this_run.name / "environment.json"


def _write_record(context: Board, this_run: Run, record: EnvironmentRecord) -> None:
    files.write_atomic(_record(context, this_run), json.dumps(asdict(record)))


def _environment(context: Board, this_run: Run, slot: Slot) -> WorkspaceEnv:
    temp = str(slots.temp(context, this_run.seat))
    named = context.user.environment.caches
    downloads = Path(temp, _DOWNLOADS)
    env = {
        **(caches.variables(context.user, downloads, installs=False) if downloads.is_dir() else {}),
        **{cache.variable: str(cache.folder) for cache in named},
        "LEGION_SLOT": str(slot.number),
        "LEGION_PORTS": str(slot.count),
        "LEGION_TMP": temp,
        "TMPDIR": temp,
    }
    if slot.count:
        env["LEGION_PORT"] = str(slot.first)
    return WorkspaceEnv(env=env, writable=(Path(temp), *(cache.folder for cache in named)))


def _make_caches(context: Board) -> None:
    for cache in context.user.environment.caches:
        try:
            cache.folder.mkdir(parents=True, exist_ok=True)
        except OSError as wrong:
            raise EnvironmentFailed(
                f"The cache {cache.folder} cannot be made ({wrong.strerror}): change `environment.caches`."
            ) from wrong


def _copy_cache(context: Trees, project: ProjectContext, this_run: Run) -> None:
    """The agent's own copy of what builds have downloaded. Without a sandbox it uses the person's."""
    place = slots.temp(context, this_run.seat) / _DOWNLOADS
    if place.exists() or not sandbox.is_on(context) or caches.is_empty(project, installs=False):
        return
    half = place.with_name(f".{_DOWNLOADS}")
    trees.remove(half)
    caches.copy_to(project, half, installs=False)
    half.rename(place)


def _copy(context: Board, project: ProjectContext, tree: Path) -> tuple[str, ...]:
    """Copy the files that the person named from their checkout. Returns notes for the person."""
    notes = []
    for path in context.user.environment.copies(project.name):
        _refuse_tracked(project, path, "`environment.copy` in your settings")
        content = safe_files.read(Path(project.record.root), path)
        if content is None:
            notes.append(f"{path} was not copied: there is no such plain file in {project.record.root}")
        else:
            _put(tree, path, content)
    if project.name in context.user.environment.worktreeinclude or _include_is_trusted(context, project):
        _copy_included(project, tree)
    elif (Path(project.record.root) / WORKTREE_INCLUDE).exists():
        notes.append(f"no file of {WORKTREE_INCLUDE} was copied: read it and run `legion trust`")
    return tuple(notes)


def include_hash(text: str) -> str:
    """What `legion trust` stores for a `.worktreeinclude`: another text has to be trusted again."""
    return hash_of(f"{WORKTREE_INCLUDE}\n{text}")


def _include_is_trusted(context: Board, project: ProjectContext) -> bool:
    raw = safe_files.read(Path(project.record.root), WORKTREE_INCLUDE)
    if raw is None:
        return False
    with context.store.read() as tx:
        return projects.is_trusted(tx, project.id, include_hash(raw.decode("utf-8", "replace")))


def _copy_included(project: ProjectContext, tree: Path) -> None:
    """As Claude Code does in its worktrees. A file that would become part of changes is not copied."""
    root = Path(project.record.root)
    for path in included_files(root):
        content = safe_files.read(root, path)
        if content is not None and is_left_out(project.hub, project.target, path):
            _put(tree, path, content)


def _write_env_file(context: Board, project: ProjectContext, this_run: Run, slot: Slot, tree: Path) -> None:
    wanted = project.config.environment
    if not wanted.env_file:
        return
    _refuse_tracked(project, wanted.env_file, "`environment.env_file` in legion.toml")
    # From the target, like legion.toml, and not from the tree, where a link could lead to any file of the person.
    template = project.hub.read_file(project.target, wanted.template) if wanted.template else b""
    if template is None:
        raise EnvironmentFailed(
            f"There is no file {wanted.template} for `environment.template` in legion.toml: commit one or change it."
        )
    values = {
        "tmp": str(slots.temp(context, this_run.seat)),
        "ticket": owner(this_run),
        "attempt": str(this_run.attempt),
        "worktree": str(tree),
    }
    try:
        text = fill_in(template.decode("utf-8", "surrogateescape"), slot.ports, values)
        lines = wanted.lines(slot.ports, values)
    except PortOutside as outside:
        raise EnvironmentFailed(
            f"{wanted.template} uses {outside}, but a run has {slot.count} ports: raise `environment.ports`."
        ) from None
    gap = "\n" if text and not text.endswith("\n") else ""
    _put(tree, wanted.env_file, f"{text}{gap}{lines}".encode("utf-8", "surrogateescape"))


def _refuse_tracked(project: ProjectContext, path: str, where: str) -> None:
    """By the target's ignore files: changes of an agent to those in its tree are judged at its end."""
    if not is_left_out(project.hub, project.target, path):
        raise EnvironmentFailed(
            f"{path} would become part of changes: add it to .gitignore, or take it out of {where}."
        )


def _put(tree: Path, path: str, content: bytes) -> None:
    try:
        safe_files.write(tree, path, content)
    except OSError as wrong:
        raise EnvironmentFailed(
            f"{path} cannot be written in {tree} ({wrong.strerror}): remove what is in its way."
        ) from wrong


def _bring_up(
    context: Context,
    project: ProjectContext,
    this_run: Run,
    record: EnvironmentRecord,
    environment: WorkspaceEnv,
    tree: Path,
) -> None:
    wanted = project.config.environment
    result, lost = _run(context, project, this_run, "up", wanted.up, wanted.timeout, environment, tree)
    record = replace(record, up_result=result)
    _write_record(context, this_run, record)
    if result.ok:
        return
    _take_down(context, project, this_run, record, environment, tree)
    if lost:
        raise EnvironmentFailed(f"The project's `up` was interrupted ({result.how}) and runs again soon.")
    raise EnvironmentFailed(
        f"The project's `up`, `{result.command}`, failed ({result.how}): fix [environment] in legion.toml; "
        f"its output ends with: {result.tail[-400:].strip() or 'nothing'}"
    )


def _take_down(
    context: Context,
    project: ProjectContext,
    this_run: Run,
    record: EnvironmentRecord,
    environment: WorkspaceEnv,
    tree: Path,
) -> None:
    """Run the `down` that belongs to the last `up`. A failure is recorded and ignored."""
    result = None
    if record.down:
        try:
            result, _ = _run(context, project, this_run, "down", record.down, record.timeout, environment, tree)
        except LegionError as trouble:
            result = HookRun(command=record.down, ok=False, how=trouble.message, tail="")
    _write_record(context, this_run, replace(record, owed=False, down_result=result))


def _run(
    context: Context,
    project: ProjectContext,
    this_run: Run,
    name: str,
    command: str,
    timeout: float,
    environment: WorkspaceEnv,
    tree: Path,
) -> tuple[HookRun, bool]:
    """How it ended, and whether it did not finish for a reason outside of it."""
    ended = commands.run(
        context,
        project,
        name=name,
        command=command,
        tree=tree,
        timeout=timeout,
        writable=environment.writable,
        env={**environment.env, "LEGION_TICKET": owner(this_run), "LEGION_ATTEMPT": str(this_run.attempt)},
    )
    ran = HookRun(command=command, ok=ended.exit_code == 0, how=ended.how, tail=ended.tail[-_TAIL:])
    return ran, ended.lost
