"""Rewind points: the stored states of a ticket's runs, and how a rewind to one of them starts.

The runner stores the tree between tool calls (`drivers/claude/journal.py`) in the project's own folder, hidden
from every agent. The tree at the end of each run is saved anyway, so every end is a rewind point too, and one rewind
can be undone by another.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from legion.domain.errors import NotFound, Retryable, StateConflict
from legion.domain.runs import KEPT_BY, KeptState, RewindMoment, Run, kept
from legion.domain.tickets.spec import StartPoint
from legion.domain.tickets.ticket import State, Ticket
from legion.drivers import registry
from legion.drivers.profile import DriverProfile
from legion.drivers.tree_states import StateStore
from legion.git.hub import states
from legion.git.trees.live import Quarantine
from legion.git.trees.staged_files import passes_a_filter_by
from legion.jobs.board import Board
from legion.jobs.trees import ProjectContext, Trees
from legion.jobs.workspace.sandbox import live_tree
from legion.jobs.workspace.save import AUTHOR, worktree_name
from legion.runner.journal import read_journal
from legion.runner.spec import UnreadableSpec, read_spec
from legion.store.board import tickets
from legion.store.work import runs

_FOLDER = "rewind"
_READER = "reader"
"""Next to the states: the repository of the git that reads the tree."""
_MOST_RUNS = 5
"""States between calls are kept for so many runs of a ticket; the ends of all runs are kept."""


@dataclass(frozen=True, kw_only=True)
class RewindGoal:
    """What a rewind leads to."""

    ground: StartPoint
    source: str
    point: str
    words: str
    """The moment, for people."""


def state_store(
    context: Trees, project: ProjectContext, ticket: Ticket, this_run: Run, tree: Path
) -> StateStore | None:
    settings = context.user.rewind
    # A filter may run code of the tree, and would write where the runner does: only the ends of runs are kept then.
    if not settings.on or ticket.base is None or project.hub.filters(ticket.base) is not None:
        return None
    folder = _folder(project, ticket.id) / str(this_run.id)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    place = Quarantine(project.hub, folder / _READER)
    prefix, env = place.prefix(live_tree(context, project, tree), store=folder)
    return StateStore(
        prefix=prefix,
        env=env,
        folder=str(folder),
        base=ticket.base,
        seed=str(project.worktrees.index(worktree_name(ticket.id))),
        most=settings.keep,
        most_bytes=int(settings.disk_mb * 2**20),
    )


def moments(context: Board, project: ProjectContext, run: Run) -> tuple[KeptState, ...]:
    """The states of a run that are still stored, oldest first."""
    if run.ticket is None:
        return ()
    place = _folder(project, run.ticket) / str(run.id)
    rolls = {int(roll.name) for roll in place.iterdir() if roll.name.isdecimal()} if place.is_dir() else set()
    events = read_journal(context.data.runs / run.name, kinds=KEPT_BY) if rolls else []
    found = kept((event.number, event.kind, event.facts) for event in events)
    return tuple(one for one in found if one.roll in rolls)


def tree_at(context: Board, project: ProjectContext, ticket: Ticket, moment: RewindMoment) -> str:
    """The tree of that moment, which the hub then has. Raises NotFound or StateConflict."""
    run = _run_of(context, ticket, moment)
    if moment.line is None:
        return project.hub.tree_of(_saved(ticket, run))
    return _bring_in(context, project, ticket, run, moment).tree


def goal(context: Board, project: ProjectContext, ticket: Ticket, moment: RewindMoment) -> RewindGoal:
    """Raises NotFound, StateConflict or Retryable if the moment is unknown or no longer stored."""
    run = _run_of(context, ticket, moment)
    return (
        _at_the_end(context, project, ticket, run)
        if moment.line is None
        else _behind_a_call(context, project, ticket, run, moment)
    )


def _run_of(context: Board, ticket: Ticket, moment: RewindMoment) -> Run:
    with context.store.read() as tx:
        found = [run for run in runs.of_ticket(tx, ticket.id) if run.id == moment.run]
    if not found:
        raise NotFound(
            f"Ticket {ticket.id} has no run {moment.run}: `legion status events {ticket.id}` shows its moments."
        )
    return found[0]


def _saved(ticket: Ticket, run: Run) -> str:
    """The commit that was saved at the end of the run."""
    if run.saved is None or ticket.base is None:
        raise StateConflict(
            f"Nothing was saved at the end of run {run.id}: `legion status events {ticket.id}` shows other moments."
        )
    return run.saved


def _at_the_end(context: Board, project: ProjectContext, ticket: Ticket, run: Run) -> RewindGoal:
    saved = _saved(ticket, run)
    assert ticket.base is not None, "a saved run has a base"
    base = project.hub.merge_base(saved, ticket.base) or ticket.base
    ground = StartPoint(base=base, tree=project.hub.tree_of(saved))
    state = project.agents / run.seat
    source = run.conversation if _driver(context, run).has_conversation(state, run.conversation) else ""
    return RewindGoal(ground=ground, source=source, point="", words=f"the end of run {run.id}")


def _behind_a_call(
    context: Board, project: ProjectContext, ticket: Ticket, run: Run, moment: RewindMoment
) -> RewindGoal:
    one = _bring_in(context, project, ticket, run, moment)
    state = project.agents / run.seat
    point = _driver(context, run).resume_point(state, run.conversation, one.call)
    if point is None:
        raise Retryable(f"The conversation does not contain {moment} yet, or no longer: try again, or choose another.")
    ground = StartPoint(base=one.base, tree=one.tree)
    return RewindGoal(ground=ground, source=run.conversation, point=point, words=f"{one.tool} in run {run.id}")


def _bring_in(context: Board, project: ProjectContext, ticket: Ticket, run: Run, moment: RewindMoment) -> KeptState:
    """Copy the state into the hub. The same again changes nothing."""
    one = next((one for one in moments(context, project, run) if one.line == moment.line), None)
    objects = _folder(project, ticket.id) / str(run.id) / str(one.roll if one else "") / "objects"
    if one is None or not states.holds(project.hub, objects, one.tree):
        raise NotFound(f"{moment} is not stored: `legion status events {ticket.id}` shows those of the ticket.")
    if passes_a_filter_by(project.hub, objects, one.tree, base=one.base):
        raise StateConflict(
            f"{moment} was stored without the git filters that its files go through: choose the end of a run, which "
            f"has them. `legion status events {ticket.id}` shows those."
        )
    states.bring_in(
        project.hub,
        objects,
        one.tree,
        base=one.base,
        keep_as=f"rewind/{ticket.id}/{run.id}-{one.line}",
        message=f"Ticket {ticket.id} at {moment}",
        author=AUTHOR,
    )
    return one


def clean(context: Board, project: ProjectContext) -> None:
    """Remove the states of landed and dropped tickets, and of all but the latest runs of the others."""
    place = project.folder / _FOLDER
    there = {_number(ticket): ticket for ticket in place.iterdir()} if place.is_dir() else {}
    with context.store.read() as tx:
        over = {number for number, state in tickets.states_of(tx, there).items() if state is State.DONE}
        over |= tickets.dropped(tx, there)
    old = [run for place in there.values() for run in sorted(place.iterdir(), key=_number)[:-_MOST_RUNS]]
    for place in (*(there[number] for number in over), *old):
        shutil.rmtree(place, ignore_errors=True)


def _number(folder: Path) -> int:
    return int(folder.name)


def _folder(project: ProjectContext, ticket: int) -> Path:
    return project.folder / _FOLDER / str(ticket)


def _driver(context: Board, run: Run) -> DriverProfile:
    try:
        return read_spec(context.data.runs / run.name).profile
    except UnreadableSpec:
        return registry.default()
