"""Predicts merge conflicts: while agents work, their changes are merged with each other at intervals.

Each predicted conflict is recorded as an event and shown on the board. Agents that accept messages get one message.
The results are in memory: a new daemon predicts again, and reads in the events which messages were sent.
"""

from __future__ import annotations

import functools
import logging
import time
import uuid
from collections.abc import Iterable
from dataclasses import asdict

from legion.domain.events import EventKind
from legion.domain.landing.conflicts import AT_WORK, ConflictSpan, Pair, PredictedConflict, compare
from legion.domain.projects import Project
from legion.domain.rules import Rule
from legion.domain.tickets.ticket import State, Ticket
from legion.git.merge.prediction import OpenChange, Prediction
from legion.jobs.board import Board
from legion.jobs.context import Context
from legion.jobs.loop import BackgroundLoop
from legion.jobs.trees import ProjectContext, Trees
from legion.jobs.workspace import setup_record
from legion.jobs.workspace.sandbox import live_tree
from legion.jobs.workspace.save import worktree_name
from legion.jobs.workspace.setup import is_prepared
from legion.runner import launch
from legion.runner.spec import RunnerError, read_spec
from legion.store import events
from legion.store.board import projects, races, tickets
from legion.store.work import runs

log = logging.getLogger(__name__)

_TICK = 1.0
_SHARE = 10
"""A prediction that took a second is followed by a pause of so many."""
_MOST_PLACES = 8


class ConflictPredictor(BackgroundLoop):
    def __init__(self, context: Context) -> None:
        super().__init__(context, "conflict-predictor")
        self._due: dict[int, float] = {}
        self._predictions: dict[int, Prediction] = {}
        self._known: dict[int, frozenset[Pair]] = {}

    def _repeat(self) -> None:
        while not self._stopping.wait(_TICK):
            self._attempt("conflict prediction", self._predict_all)

    def _predict_all(self) -> None:
        for project in self._with_work():
            self._attempt(f"conflict prediction for {project.name}", functools.partial(self._predict, project))

    def _with_work(self) -> list[Project]:
        with self.context.store.read() as tx:
            busy = {ticket.project for ticket in tickets.live(tx) if ticket.state in AT_WORK}
            there = projects.all(tx)
        for idle in set(self._predictions) - busy:
            self._predictions.pop(idle).forget()
            self._known.pop(idle, None)
            self.context.live.predicted_conflicts.remove([idle])
        return [project for project in there if project.id in busy]

    def _predict(self, record: Project) -> None:
        project = self.context.project_of(record)
        every = project.config.conflicts.look_every
        if not every or time.monotonic() < self._due.get(record.id, 0.0):
            return
        began = time.monotonic()
        if record.id not in self._predictions:
            self._predictions[record.id] = Prediction(project.hub, project.folder / "foresight")
            # An index of an earlier daemon may name objects that no longer exist.
            self._predictions[record.id].forget()
            self._known[record.id] = self._recorded(record.id)
        self._known[record.id] = predict(
            self.context,
            project,
            self._predictions[record.id],
            self._known[record.id],
            send_messages=project.config.conflicts.tell,
        )
        took = time.monotonic() - began
        self._due[record.id] = time.monotonic() + max(every, _SHARE * took)

    def _recorded(self, project: int) -> frozenset[Pair]:
        pairs: set[Pair] = set()
        with self.context.store.read() as tx:
            for ticket in tickets.live(tx, project=project):
                for event in events.of_ticket(tx, ticket.id):
                    other = event.data.get("with")
                    if event.kind is EventKind.CONFLICT_PREDICTED and isinstance(other, int):
                        pairs.add((ticket.id, other))
                    elif event.kind is EventKind.CONFLICT_GONE and isinstance(other, int):
                        pairs.discard((ticket.id, other))
        return frozenset(pairs)


def predict(
    context: Trees,
    project: ProjectContext,
    prediction: Prediction,
    known: frozenset[Pair],
    *,
    send_messages: bool = True,
) -> frozenset[Pair]:
    """One prediction. `known` are the recorded pairs; returns those that are predicted now."""
    # Before the tickets: a change that lands between the two reads then counts as open, and not as both.
    target = project.target
    with context.store.read() as tx:
        at_work = {ticket.id: ticket for ticket in tickets.live(tx, project=project.id)}
        starting = {run.ticket for run in runs.active(tx) if not is_prepared(context, run)}
        copies = {one.ticket for lanes in races.undecided(tx).values() for one in lanes if one.ticket != one.origin}
    # Only one lane of a race lands, so they cannot conflict with each other.
    at_work = {id: ticket for id, ticket in at_work.items() if ticket.state in AT_WORK and id not in copies}
    # What [setup] writes before the agent starts is not the agent's change.
    visible = [ticket for ticket in at_work.values() if ticket.id not in starting]
    open_changes = [one for ticket in visible if (one := _open_change(context, project, ticket)) is not None]
    found = prediction.look(open_changes, target)
    conflicts = tuple(
        PredictedConflict(mine=one, theirs=other, places=places) for (one, other), places in found.items()
    )
    states = {id: ticket.state for id, ticket in at_work.items()}
    now = compare(conflicts, known, seen={one.id for one in open_changes}, at_work=states)
    # Before the events: their readers read the board.
    context.live.predicted_conflicts.update({project.id: conflicts})
    _record(context, project, now.new, now.gone)
    if send_messages:
        for conflict in now.new:
            for ticket in conflict.pair:
                if states.get(ticket) is State.WORKING:
                    _send_message(context, at_work, conflict.seen_from(ticket))
    return now.known


def _open_change(context: Trees, project: ProjectContext, ticket: Ticket) -> OpenChange | None:
    if ticket.change is not None and ticket.state is not State.WORKING:
        return OpenChange(id=ticket.id, base=ticket.change.base, commit=ticket.change.commit)
    tree = project.worktrees.path(worktree_name(ticket.id))
    # A worktree that still waits for its new start point holds the last attempt.
    if ticket.base is None or ticket.plant is not None or not tree.is_dir():
        return None
    index = project.worktrees.index(worktree_name(ticket.id))
    edited = setup_record.edited(project, tree)
    live = live_tree(context, project, tree)
    return OpenChange(id=ticket.id, base=ticket.base, tree=live, index=index, edited=edited)


def _record(context: Board, project: ProjectContext, new: Iterable[PredictedConflict], gone: Iterable[Pair]) -> None:
    rows = [
        (
            EventKind.CONFLICT_PREDICTED,
            one.mine,
            {"with": one.theirs, "places": [asdict(place) for place in one.places]},
        )
        for one in new
    ]
    rows += [(EventKind.CONFLICT_GONE, mine, {"with": theirs}) for mine, theirs in sorted(gone)]
    if not rows:
        return
    with context.store.write() as tx:
        for kind, ticket, data in rows:
            tx.record(kind, project=project.id, ticket=ticket, data={**data, "rule": Rule.CONFLICT_WARNING.value})


def _send_message(context: Board, at_work: dict[int, Ticket], conflict: PredictedConflict) -> None:
    """To the agent at work, if its program accepts messages."""
    with context.store.read() as tx:
        run = runs.latest(tx, conflict.mine)
    if run is None or run.ended_at is not None:
        return
    folder = context.data.runs / run.name
    try:
        if read_spec(folder).profile.capabilities.talks:
            launch.tell(folder, str(uuid.uuid4()), message(conflict, at_work.get(conflict.theirs)))
    except (RunnerError, OSError) as unreachable:
        log.debug("ticket %s: the message about a conflict was not delivered: %s", conflict.mine, unreachable)


def message(conflict: PredictedConflict, other: Ticket | None) -> str:
    """For the agent of one of the two changes."""
    source = "Code that has landed since you started" if other is None else f"The agent of ticket {other.id}"
    about = f" ({other.spec.title})" if other is not None else ""
    listed = "\n".join(f"- {_describe(place)}" for place in conflict.places[:_MOST_PLACES])
    return (
        f"{source}{about} changes lines that you change too:\n\n{listed}\n\n"
        "The change that lands second will have to be merged by hand. Continue with your ticket, but keep your change "
        "in these places as small as you can, and leave alone there what your ticket does not need."
    )


def _describe(place: ConflictSpan) -> str:
    first, last = place.mine
    if not first:
        return place.path
    lines = f"line {first}" if first == last else f"lines {first} to {last}"
    return f"{place.path}, {lines}{f' ({place.name})' if place.name else ''}"
