"""Rebuilds a lost or damaged database from the boards in the hubs. No daemon runs meanwhile.

A new file is filled and then replaces the old one, which is kept next to it; until then nothing has changed. Progress
after the last copy is found in the hub: a ticket whose commit is in the target has landed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from legion.domain.errors import LegionError, StateConflict
from legion.domain.events import EventKind
from legion.domain.questions import SettledBy
from legion.domain.rules import Rule
from legion.domain.runs import Outcome
from legion.domain.tickets.ticket import (
    Approve,
    Change,
    Land,
    Propose,
    Prove,
    Resume,
    Start,
    State,
    Step,
    Ticket,
    Unpark,
)
from legion.git.core.errors import BoardUnreadable
from legion.git.core.history import trailer
from legion.git.hub.board_ref import BoardRef
from legion.git.hub.objects import read_commit
from legion.git.hub.repository import Hub
from legion.jobs.landing.target import with_landed_config
from legion.runner import launch
from legion.runner.launch import LivingRun
from legion.runner.spec import RunnerError
from legion.store import board_records
from legion.store.board import landings, projects, questions, tickets
from legion.store.board_records import BoardCondition
from legion.store.database.errors import StoreTooNew
from legion.store.database.transactions import Store, Transaction, database_file, sqlite_url
from legion.store.work import runs
from legion.system import crash
from legion.system.crash import Point
from legion.system.paths import DataDir

_SEAT = re.compile(r"ticket-(\d+)(?:-.*)?")
_RUN = re.compile(r".*-run-(\d+)")
_WHY = "the database was lost while its agent worked; the attempt resumes with what it left"
_GRACE = 5.0
_MARGIN = 1000
"""Event numbers that may have been used after the last copy; a reader must not see one of them twice."""


class NothingToRebuild(StateConflict):
    code = "nothing_to_rebuild"


class BoardDamaged(LegionError):
    code = "board_damaged"


class BoardTooNew(LegionError):
    code = "board_too_new"


@dataclass(frozen=True, kw_only=True)
class FoundBoard:
    """A board in a hub."""

    hub: Hub
    head: board_records.BoardHead
    files: dict[str, bytes]

    @property
    def tickets(self) -> int:
        return sum(name.startswith("tickets/") for name in self.files)


@dataclass(frozen=True, kw_only=True)
class Rebuilt:
    kept: Path | None
    """Where the damaged file is kept."""
    resumed: int
    """Tickets whose agents were at work."""
    landed: int
    """Tickets that had landed after the last copy."""


def boards(data: DataDir) -> tuple[FoundBoard, ...]:
    """The boards in all hubs. Raises where one of them cannot be used: no project may be left out silently."""
    return tuple(_read(place) for place in _places(data))


def can_rebuild(data: DataDir) -> bool:
    return bool(_places(data))


def _places(data: DataDir) -> list[Path]:
    there = data.projects.glob("*/hub.git") if data.projects.is_dir() else ()
    return sorted((place for place in there if BoardRef(place).exists), key=lambda place: place.parent.name.zfill(9))


def _read(place: Path) -> FoundBoard:
    without = f"move {place.parent} away to rebuild without that project"
    try:
        files = BoardRef(place).read()
        head = board_records.BoardHead.read(files.get(board_records.HEAD, b""))
        if head.format > board_records.FORMAT or head.schema > board_records.SCHEMA:
            raise BoardTooNew(
                f"The board of {head.name} was written by a newer Legion (format {head.format}, schema {head.schema}): "
                f"update Legion, or {without}."
            )
        for content in files.values():
            json.loads(content)
    except (BoardUnreadable, ValueError) as damage:
        raise BoardDamaged(f"The board in {place} is damaged ({damage}): {without}.") from damage
    return FoundBoard(hub=Hub(place), head=head, files=files)


def refuse_sound(url: str) -> BoardCondition:
    """What is wrong with the database. Raises NothingToRebuild for a sound one."""
    found = board_records.condition(url)
    if found is BoardCondition.SOUND:
        file = database_file(url)
        name = "The database" if file is None else f"The database {file}"
        raise NothingToRebuild(f"{name} is sound: move it away first if you want to rebuild it from the hubs.")
    return found


def rebuild(data: DataDir, url: str, found: tuple[FoundBoard, ...], now: float) -> Rebuilt:
    """The caller holds the daemon's lock and has checked that the database is not sound."""
    _end_runners(data)
    file = database_file(url)
    if file is None:
        try:
            resumed, landed = _fill(url, data, found)
        except StoreTooNew as filled:
            raise StateConflict(
                "Your database has newer tables than the boards: make an empty one, then try again."
            ) from filled
        return Rebuilt(kept=None, resumed=resumed, landed=landed)
    half = file.with_name(f"{file.name}.rebuilding")
    _remove(half)
    resumed, landed = _fill(sqlite_url(half), data, found)
    crash.reach(Point.REBUILD_BEFORE_ASIDE)
    kept = _keep_old(file, f"{file.name}.damaged-{int(now)}")
    crash.reach(Point.REBUILD_BEFORE_PUBLISH)
    half.rename(file)
    crash.reach(Point.REBUILD_AFTER_PUBLISH)
    return Rebuilt(kept=kept, resumed=resumed, landed=landed)


def _parts(file: Path) -> list[Path]:
    """SQLite's log and its index belong to the file: without them the last commits would be lost."""
    return [file, *(file.with_name(f"{file.name}{rest}") for rest in ("-wal", "-shm"))]


def _remove(file: Path) -> None:
    for part in _parts(file):
        part.unlink(missing_ok=True)


def _keep_old(file: Path, name: str) -> Path | None:
    kept = None
    while any(place.exists() for place in _parts(file.with_name(name))):
        name += "-again"
    # The file itself last: after a kill here the database is still found to be unsound.
    for part, place in reversed(list(zip(_parts(file), _parts(file.with_name(name)), strict=True))):
        if part.exists():
            kept = part.rename(place)
    return kept


def _end_runners(data: DataDir) -> None:
    """Their tokens are lost, and the next daemon may not know them: no other run may use their worktrees meanwhile."""
    for folder in data.runs.iterdir() if data.runs.is_dir() else ():
        if isinstance(launch.settle(folder), LivingRun):
            try:
                launch.stop(folder, grace=_GRACE)
                launch.wait(folder)
            except RunnerError as silent:
                raise StateConflict(
                    f"The run in {folder} cannot be ended ({silent.message}): end it, then try again."
                ) from silent


def _fill(url: str, data: DataDir, found: tuple[FoundBoard, ...]) -> tuple[int, int]:
    store = Store(url)
    try:
        try:
            board_records.restore(store, [one.files for one in found])
        except ValueError as damage:
            raise BoardDamaged(f"The boards in {data.projects} do not make a database ({damage}).") from damage
        with store.write() as tx:
            _raise_counters(tx, data, found)
            resumed = _hand_back(tx)
            landed = sum(_catch_up(tx, one) for one in found)
            for one in found:
                facts = {"event": one.head.event, "at": one.head.at, "resumed": resumed}
                tx.record(EventKind.REBUILT, project=one.head.project, data=facts)
        return resumed, landed
    finally:
        store.close()


def _raise_counters(tx: Transaction, data: DataDir, found: Iterable[FoundBoard]) -> None:
    """Folder names are never reused, also those that were created after the last copy."""
    names = [place.name for place in (data.runs.iterdir() if data.runs.is_dir() else ())]
    ran = [int(run[1]) for name in names if (run := _RUN.fullmatch(name))]
    for one in found:
        worktrees = Path(projects.get(tx, one.head.project).worktrees)
        names += [place.name for place in (worktrees.iterdir() if worktrees.is_dir() else ())]
        board_records.raise_counter(tx, "event", one.head.event + _MARGIN)
    seats = [int(seat[1]) for name in names if (seat := _SEAT.fullmatch(name))]
    board_records.raise_counter(tx, "run", max(ran, default=0))
    board_records.raise_counter(tx, "ticket", max(seats, default=0))


def _hand_back(tx: Transaction) -> int:
    """End all active runs; their tickets are queued again."""
    for run in runs.active(tx):
        runs.end(tx, run.id, Outcome.LOST, "the database was lost")
        for question in questions.open_ones(tx, run=run.id):
            questions.settle(tx, question.id, question.fallback, "its run ended", by=SettledBy.END)
    at_work = [ticket for ticket in tickets.live(tx) if ticket.state is State.WORKING]
    for ticket in at_work:
        tickets.move(tx, ticket.id, Resume(_WHY))
    return len(at_work)


def _catch_up(tx: Transaction, found: FoundBoard) -> int:
    """Take over the hub's target. Tickets whose commits it contains have landed, whatever the copy says."""
    project = projects.get(tx, found.head.project)
    target = found.hub.target()
    intents = landings.open_ones(tx, project.id)
    if target is None or target == project.target or any(intent.commit == target for intent in intents):
        # The next daemon completes the open intents.
        return 0
    for intent in intents:
        landings.close(tx, intent.id, landed=False)
    landed = _landed_since(found.hub, project.target, target)
    live = {ticket.id: ticket for ticket in tickets.live(tx, project=project.id) if ticket.state in _ON_THE_WAY}
    mine = {number: landed[number] for number in landed.keys() & live.keys()}
    if mine:
        intent = landings.open(
            tx,
            project.id,
            base=project.target,
            commit=target,
            tree=found.hub.tree_of(target),
            tickets={number: commit for number, (commit, _) in mine.items()},
            before={number: under for number, (_, under) in mine.items()},
        )
        landings.close(tx, intent.id, landed=True)
    for number, (commit, under) in mine.items():
        _land(tx, live[number], commit, target)
        facts = {"commit": commit, "before": under, "tested": target, "receipts": [], "rule": Rule.GREEN_LANDS.value}
        tx.record(EventKind.LANDED, project=project.id, ticket=number, data=facts)
    data = {"commit": target, "tickets": sorted(mine)}
    moved = with_landed_config(found.hub, replace(projects.get(tx, project.id), target=target))
    projects.save(tx, moved, EventKind.TARGET_MOVED, data)
    return len(mine)


def _landed_since(hub: Hub, old: str, target: str) -> dict[int, tuple[str, str]]:
    """By ticket: its landed commit and the parent. Only commits that Legion wrote have all of these trailers."""
    landed: dict[int, tuple[str, str]] = {}
    below = old
    for commit in hub.first_parents(old, target):
        message = read_commit(hub, commit).message
        named = trailer(message, "Ticket")
        if named.isdigit() and trailer(message, "Agent") and trailer(message, "Attempts").isdigit():
            landed[int(named)] = (commit, landed.get(int(named), ("", below))[1])
        below = commit
    return landed


_ON_THE_WAY = frozenset({State.QUEUED, State.WORKING, State.CHECKING, State.REVIEWING, State.LANDING, State.PARKED})


def _land(tx: Transaction, ticket: Ticket, commit: str, target: str) -> None:
    """Repeat the steps that the copy does not contain."""
    while ticket.state is not State.DONE:
        steps: dict[State, Step] = {
            State.PARKED: Unpark(),
            State.QUEUED: Start(target),
            State.WORKING: Propose(Change(base=ticket.base or target, commit=commit)),
            State.CHECKING: Prove(),
            State.REVIEWING: Approve(),
            State.LANDING: Land(commit),
        }
        ticket = tickets.move(tx, ticket.id, steps[ticket.state])
