"""A place to work in: slot, temp folder, env file, copies, caches, `up` before the agent and `down` after it.

`prepare` and `release` may each be cut off anywhere and repeated. What was done stands in the run's folder, so that
`down` follows on every `up`, also where the daemon that began it is gone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from legion.config.environment import PortOutside, fill_in
from legion.domain.errors import LegionError
from legion.domain.runs import Outcome, Run
from legion.git.ignoring import is_left_out
from legion.jobs import commands, inside, quota, slots
from legion.jobs.slots import Slot
from legion.jobs.world import Workshop, World
from legion.store import runs
from legion.system import files

_TAIL = 2000


class EnvironmentFailed(LegionError):
    """The project's [environment] or the person's does not work here: no agent is to blame."""


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What a run finds beside its worktree."""

    env: Mapping[str, str]
    writable: tuple[Path, ...]


@dataclass(frozen=True, kw_only=True)
class Ran:
    """How `up` or `down` ended."""

    command: str
    ok: bool
    how: str
    tail: str


@dataclass(frozen=True, kw_only=True)
class Record:
    """What was done for a run."""

    slot: Slot | None = None
    down: str = ""
    """The command that undoes it, as it was when it was done."""
    timeout: float = 0.0
    owed: bool = False
    """Something may be there that `down` has to remove."""
    up_result: Ran | None = None
    down_result: Ran | None = None
    notes: tuple[str, ...] = ()


def prepare(world: World, shop: Workshop, this_run: Run, tree: Path) -> Surroundings:
    """Everything that this run has to itself. Raises EnvironmentFailed where that cannot be had."""
    wanted = shop.config.environment
    with world.store.read() as tx:
        earlier = [run for run in runs.of_seat(tx, this_run) if run.id < this_run.id]
    folder = world.data.runs / this_run.name
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    quota.allow_rest(world, this_run, earlier[-1:], tree)
    slot = slots.claim(world, this_run, ports=wanted.ports)
    surroundings = _surroundings(world, this_run, slot)
    _make_caches(world)
    notes = _copy(world, shop, tree)
    _write_env_file(world, shop, this_run, slot, tree)
    record = read_record(world, this_run)
    if record.up_result is not None and record.up_result.ok and record.up_result.command == wanted.up and record.owed:
        return surroundings
    if record.owed:
        # An `up` that was cut off left who knows what.
        _take_down(world, shop, this_run, record, surroundings, tree)
    owed = bool(wanted.up or wanted.down)
    new = Record(slot=slot, down=wanted.down, timeout=wanted.timeout, owed=owed, notes=notes)
    # Most projects have neither command, and their runs start without waiting for a disk.
    if owed or notes or record != Record():
        _write_record(world, this_run, new)
    if wanted.up:
        _bring_up(world, shop, this_run, new, surroundings, tree)
    return surroundings


def bare(world: World, this_run: Run) -> Surroundings:
    """For a run that starts nothing of the project: a temp folder of its own, and no more."""
    (world.data.runs / this_run.name).mkdir(parents=True, exist_ok=True, mode=0o700)
    return _surroundings(world, this_run, slots.claim(world, this_run, ports=0))


def release(world: World, this_run: Run, outcome: Outcome) -> None:
    """The run has ended: undo what was done for it, and give its slot back. A `down` that fails stops nobody."""
    record = read_record(world, this_run)
    if record.owed and record.slot is not None:
        shop = world.workshop(this_run.project)
        tree = shop.worktrees.path(this_run.seat)
        _take_down(world, shop, this_run, record, _surroundings(world, this_run, record.slot), tree)
    slots.release(world, this_run, outcome)


def kept_out(world: World, shop: Workshop) -> tuple[str, ...]:
    """The files that we put into worktrees: whatever an agent does to the ignore files, they never land."""
    env_file = shop.config.environment.env_file
    return (*((env_file,) if env_file else ()), *world.user.environment.copies(shop.project.name))


def whose(this_run: Run) -> str:
    """A ticket by its number, as ever; an agent by its seat, which is no ticket's number."""
    return this_run.seat if this_run.ticket is None else str(this_run.ticket)


def read_record(world: World, this_run: Run) -> Record:
    try:
        facts = json.loads(_record(world, this_run).read_bytes())
    except (FileNotFoundError, ValueError):
        return Record()
    parts = {"slot": Slot, "up_result": Ran, "down_result": Ran}
    made = {name: part(**facts[name]) for name, part in parts.items() if facts[name]}
    return Record(**{**facts, **made, "notes": tuple(facts["notes"])})


def _record(world: World, this_run: Run) -> Path:
    return world.data.runs / this_run.name / "environment.json"


def _write_record(world: World, this_run: Run, record: Record) -> None:
    files.write_whole(_record(world, this_run), json.dumps(asdict(record)))


def _surroundings(world: World, this_run: Run, slot: Slot) -> Surroundings:
    temp = str(slots.temp(world, this_run.seat))
    caches = world.user.environment.caches
    env = {
        **{cache.variable: str(cache.folder) for cache in caches},
        "LEGION_SLOT": str(slot.number),
        "LEGION_PORTS": str(slot.count),
        "LEGION_TMP": temp,
        "TMPDIR": temp,
    }
    if slot.count:
        env["LEGION_PORT"] = str(slot.first)
    return Surroundings(env=env, writable=(Path(temp), *(cache.folder for cache in caches)))


def _make_caches(world: World) -> None:
    for cache in world.user.environment.caches:
        try:
            cache.folder.mkdir(parents=True, exist_ok=True)
        except OSError as wrong:
            raise EnvironmentFailed(
                f"The cache {cache.folder} cannot be made ({wrong.strerror}): change `environment.caches`."
            ) from wrong


def _copy(world: World, shop: Workshop, tree: Path) -> tuple[str, ...]:
    """The files that the person named, from their checkout. Returns what a person should know about them."""
    notes = []
    for path in world.user.environment.copies(shop.project.name):
        _refuse_tracked(shop, path, "`environment.copy` in your settings")
        content = inside.read(Path(shop.project.root), path)
        if content is None:
            notes.append(f"{path} was not copied: there is no such plain file in {shop.project.root}")
        else:
            _put(tree, path, content)
    return tuple(notes)


def _write_env_file(world: World, shop: Workshop, this_run: Run, slot: Slot, tree: Path) -> None:
    wanted = shop.config.environment
    if not wanted.env_file:
        return
    _refuse_tracked(shop, wanted.env_file, "`environment.env_file` in legion.toml")
    # From the target, as legion.toml is, and not from the tree, where a link could lead to any file of the person's.
    template = shop.hub.read_file(shop.target, wanted.template) if wanted.template else b""
    if template is None:
        raise EnvironmentFailed(
            f"There is no file {wanted.template} for `environment.template` in legion.toml: commit one or change it."
        )
    words = {
        "tmp": str(slots.temp(world, this_run.seat)),
        "ticket": whose(this_run),
        "attempt": str(this_run.attempt),
        "worktree": str(tree),
    }
    try:
        text = fill_in(template.decode("utf-8", "surrogateescape"), slot.ports, words)
        lines = wanted.lines(slot.ports, words)
    except PortOutside as outside:
        raise EnvironmentFailed(
            f"{wanted.template} uses {outside}, but a run has {slot.count} ports: raise `environment.ports`."
        ) from None
    gap = "\n" if text and not text.endswith("\n") else ""
    _put(tree, wanted.env_file, f"{text}{gap}{lines}".encode("utf-8", "surrogateescape"))


def _refuse_tracked(shop: Workshop, path: str, where: str) -> None:
    """By the target's ignore files: what an agent did to those in its tree is judged when it is through."""
    if not is_left_out(shop.hub, shop.target, path):
        raise EnvironmentFailed(
            f"{path} would become part of changes: add it to .gitignore, or take it out of {where}."
        )


def _put(tree: Path, path: str, content: bytes) -> None:
    try:
        inside.write(tree, path, content)
    except OSError as wrong:
        raise EnvironmentFailed(
            f"{path} cannot be written in {tree} ({wrong.strerror}): remove what is in its way."
        ) from wrong


def _bring_up(
    world: World, shop: Workshop, this_run: Run, record: Record, surroundings: Surroundings, tree: Path
) -> None:
    wanted = shop.config.environment
    result, lost = _run(world, shop, this_run, "up", wanted.up, wanted.timeout, surroundings, tree)
    record = replace(record, up_result=result)
    _write_record(world, this_run, record)
    if result.ok:
        return
    _take_down(world, shop, this_run, record, surroundings, tree)
    if lost:
        raise EnvironmentFailed(f"The project's `up` was cut off ({result.how}); it is run again in a moment.")
    raise EnvironmentFailed(
        f"The project's `up`, `{result.command}`, failed ({result.how}): mend [environment] in legion.toml; "
        f"its output ends with: {result.tail[-400:].strip() or 'nothing'}"
    )


def _take_down(
    world: World, shop: Workshop, this_run: Run, record: Record, surroundings: Surroundings, tree: Path
) -> None:
    """Run the `down` that belongs to the last `up`. That it fails is told, and stops nobody."""
    result = None
    if record.down:
        try:
            result, _ = _run(world, shop, this_run, "down", record.down, record.timeout, surroundings, tree)
        except LegionError as trouble:
            result = Ran(command=record.down, ok=False, how=trouble.message, tail="")
    _write_record(world, this_run, replace(record, owed=False, down_result=result))


def _run(
    world: World,
    shop: Workshop,
    this_run: Run,
    name: str,
    command: str,
    timeout: float,
    surroundings: Surroundings,
    tree: Path,
) -> tuple[Ran, bool]:
    """How it ended, and whether that says nothing about the command."""
    ended = commands.run(
        world,
        shop,
        name=name,
        command=command,
        tree=tree,
        timeout=timeout,
        writable=surroundings.writable,
        env={
            **surroundings.env,
            "LEGION_TICKET": whose(this_run),
            "LEGION_ATTEMPT": str(this_run.attempt),
        },
    )
    ran = Ran(command=command, ok=ended.exit_code == 0, how=ended.how, tail=ended.tail[-_TAIL:])
    return ran, ended.lost
