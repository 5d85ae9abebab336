"""Going back: which moments of a ticket's runs are kept, and what becomes of them.

The runner keeps the tree between calls (`drivers/claude/keeping.py`) in the project's own folder, where no agent can
look. At the end of a run its tree is saved as always, so the end of every run is a moment too, and a rewind can be
undone by another one.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from legion.domain.errors import Conflict, NotFound
from legion.domain.errors import TryAgain as NotYet
from legion.domain.rewinds import Kept, Moment, kept
from legion.domain.runs import Run
from legion.domain.tickets import Ground, State, Ticket
from legion.drivers.claude import points
from legion.drivers.claude.camera import Camera
from legion.git import states
from legion.jobs.saving import AUTHOR, worktree_name
from legion.jobs.world import Workshop, World
from legion.runner.journal import read_journal
from legion.store import runs, tickets

_FOLDER = "rewind"
_MOST_RUNS = 5
"""States between calls are kept of so many runs of a ticket; the ends of all of them are."""


@dataclass(frozen=True, kw_only=True)
class Goal:
    """What a rewind leads to."""

    ground: Ground
    source: str
    point: str
    words: str
    """The moment, for people."""


def camera(world: World, shop: Workshop, ticket: Ticket, this_run: Run, tree: Path) -> Camera | None:
    settings = world.user.rewind
    if not settings.on or ticket.base is None:
        return None
    folder = _folder(shop, ticket.id) / str(this_run.id)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return Camera(
        env=states.keeping(shop.hub, tree),
        tree=str(tree),
        folder=str(folder),
        base=ticket.base,
        seed=str(shop.worktrees.index(worktree_name(ticket.id))),
        most=settings.keep,
        most_bytes=int(settings.disk_mb * 2**20),
    )


def moments(world: World, shop: Workshop, run: Run) -> tuple[Kept, ...]:
    """Those of a run that can be gone back to, as far as they are still kept. Oldest first."""
    if run.ticket is None:
        return ()
    place = _folder(shop, run.ticket) / str(run.id)
    rolls = {int(roll.name) for roll in place.iterdir()} if place.is_dir() else set()
    events = read_journal(world.data.runs / run.name) if rolls else []
    found = kept((event.number, event.kind, event.facts) for event in events)
    return tuple(one for one in found if one.roll in rolls)


def goal(world: World, shop: Workshop, ticket: Ticket, moment: Moment) -> Goal:
    """Raises one sentence where the moment is unknown or not kept any more."""
    with world.store.read() as tx:
        found = [run for run in runs.of_ticket(tx, ticket.id) if run.id == moment.run]
    if not found:
        raise NotFound(f"Ticket {ticket.id} has no run {moment.run}: `legion events {ticket.id}` shows its moments.")
    (run,) = found
    return _at_the_end(shop, ticket, run) if moment.line is None else _behind_a_call(world, shop, ticket, run, moment)


def _at_the_end(shop: Workshop, ticket: Ticket, run: Run) -> Goal:
    if run.saved is None or ticket.base is None:
        raise Conflict(
            f"Nothing was saved at the end of run {run.id}: `legion events {ticket.id}` shows other moments."
        )
    base = shop.hub.merge_base(run.saved, ticket.base) or ticket.base
    ground = Ground(base=base, tree=shop.hub.tree_of(run.saved))
    source = run.conversation if points.is_there(_transcripts(shop, run), run.conversation) else ""
    return Goal(ground=ground, source=source, point="", words=f"the end of run {run.id}")


def _behind_a_call(world: World, shop: Workshop, ticket: Ticket, run: Run, moment: Moment) -> Goal:
    one = next((one for one in moments(world, shop, run) if one.line == moment.line), None)
    objects = _folder(shop, ticket.id) / str(run.id) / str(one.roll if one else "") / "objects"
    if one is None or not states.holds(shop.hub, objects, one.tree):
        raise NotFound(f"{moment} is no moment that is kept: `legion events {ticket.id}` shows those of the ticket.")
    point = points.point_after(_transcripts(shop, run), run.conversation, one.call)
    if point is None:
        raise NotYet(f"The conversation does not hold {moment} yet, or not any more: try again, or choose another.")
    states.bring_in(
        shop.hub,
        objects,
        one.tree,
        base=one.base,
        keep_as=f"rewind/{ticket.id}/{run.id}-{one.line}",
        message=f"Ticket {ticket.id} at {moment}",
        author=AUTHOR,
    )
    ground = Ground(base=one.base, tree=one.tree)
    return Goal(ground=ground, source=run.conversation, point=point, words=f"{one.tool} in run {run.id}")


def clean(world: World, shop: Workshop) -> None:
    """Whoever has landed or was dropped goes back nowhere; of the others the latest runs are kept."""
    place = shop.folder / _FOLDER
    there = {_number(ticket): ticket for ticket in place.iterdir()} if place.is_dir() else {}
    with world.store.read() as tx:
        over = {number for number, state in tickets.states_of(tx, there).items() if state is State.DONE}
        over |= tickets.dropped(tx, there)
    old = [run for place in there.values() for run in sorted(place.iterdir(), key=_number)[:-_MOST_RUNS]]
    for place in (*(there[number] for number in over), *old):
        shutil.rmtree(place, ignore_errors=True)


def _number(folder: Path) -> int:
    return int(folder.name)


def _folder(shop: Workshop, ticket: int) -> Path:
    return shop.folder / _FOLDER / str(ticket)


def _transcripts(shop: Workshop, run: Run) -> Path:
    return shop.agents / run.seat / "claude"
