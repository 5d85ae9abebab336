"""Conflicts seen early: while agents work, their changes are merged with each other now and then.

What was seen is an event and stands on the board; agents that hear are told, once. The results are in memory alone:
a new daemon looks again, and finds in the events what it need not tell twice.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Iterable
from dataclasses import asdict

from legion.domain.errors import LegionError
from legion.domain.events import EventKind
from legion.domain.landing.conflicts import AT_WORK, ConflictSpan, Pair, PredictedConflict, compare
from legion.domain.projects import Project
from legion.domain.rules import Rule
from legion.domain.tickets.ticket import State, Ticket
from legion.git.merge.prediction import OpenChange, Prediction
from legion.jobs.context import Context, ProjectContext
from legion.jobs.workspace.save import worktree_name
from legion.runner import launch
from legion.runner.spec import RunnerError, read_spec
from legion.store import events
from legion.store.board import projects, tickets
from legion.store.work import runs

log = logging.getLogger(__name__)

_TICK = 1.0
_SHARE = 10
"""A look that took a second is followed by so many of rest."""
_MOST_TOLD = 8


class ConflictPredictor:
    def __init__(self, context: Context) -> None:
        self.context = context
        self._stopping = threading.Event()
        self._due: dict[int, float] = {}
        self._predictions: dict[int, Prediction] = {}
        self._known: dict[int, frozenset[Pair]] = {}
        self._thread = threading.Thread(target=self._watch, name="foresight", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()

    def _watch(self) -> None:
        while not self._stopping.wait(_TICK):
            try:
                for project in self._under_way():
                    self._look(project)
            except (LegionError, OSError) as trouble:
                log.warning("nobody looks for conflicts at the moment: %s", trouble)

    def _under_way(self) -> list[Project]:
        with self.context.store.read() as tx:
            busy = {ticket.project for ticket in tickets.live(tx) if ticket.state in AT_WORK}
            there = projects.all(tx)
        for idle in set(self._predictions) - busy:
            self._predictions.pop(idle).forget()
            self._known.pop(idle, None)
            self.context.clashes.pop(idle, None)
        return [project for project in there if project.id in busy]

    def _look(self, project: Project) -> None:
        project_context = self.context.workshop_of(project)
        every = project_context.config.conflicts.look_every
        if not every or time.monotonic() < self._due.get(project.id, 0.0):
            return
        began = time.monotonic()
        if project.id not in self._predictions:
            self._predictions[project.id] = Prediction(project_context.hub, project_context.folder / "foresight")
            # Of the daemon before us; its index may name what is not there any more.
            self._predictions[project.id].forget()
            self._known[project.id] = self._told_before(project.id)
        self._known[project.id] = look(
            self.context,
            project_context,
            self._predictions[project.id],
            self._known[project.id],
            tell=project_context.config.conflicts.tell,
        )
        took = time.monotonic() - began
        self._due[project.id] = time.monotonic() + max(every, _SHARE * took)

    def _told_before(self, project: int) -> frozenset[Pair]:
        pairs: set[Pair] = set()
        with self.context.store.read() as tx:
            for ticket in tickets.live(tx, project=project):
                for event in events.of_ticket(tx, ticket.id):
                    other = event.data.get("with")
                    if event.kind is EventKind.CLASH_SEEN and isinstance(other, int):
                        pairs.add((ticket.id, other))
                    elif event.kind is EventKind.CLASH_GONE and isinstance(other, int):
                        pairs.discard((ticket.id, other))
        return frozenset(pairs)


def look(
    context: Context,
    project_context: ProjectContext,
    prediction: Prediction,
    known: frozenset[Pair],
    *,
    tell: bool = True,
) -> frozenset[Pair]:
    """One round. `known` are the pairs that were told before; answers with those that are now."""
    # Before the tickets: what lands between the two is not in the target yet, instead of in it and at work.
    target = project_context.target
    with context.store.read() as tx:
        at_work = {ticket.id: ticket for ticket in tickets.live(tx, project=project_context.project.id)}
    at_work = {id: ticket for id, ticket in at_work.items() if ticket.state in AT_WORK}
    in_work = [one for ticket in at_work.values() if (one := _in_work(project_context, ticket)) is not None]
    found = prediction.look(in_work, target)
    clashes = tuple(PredictedConflict(mine=one, theirs=other, places=places) for (one, other), places in found.items())
    states = {id: ticket.state for id, ticket in at_work.items()}
    now = compare(clashes, known, seen={one.id for one in in_work}, at_work=states)
    # Before the events: whoever hears of it looks at the board.
    context.clashes[project_context.project.id] = clashes
    _record(context, project_context, now.new, now.gone)
    if tell:
        for clash in now.new:
            for ticket in clash.pair:
                if states.get(ticket) is State.WORKING:
                    _tell(context, at_work, clash.seen_from(ticket))
    return now.known


def _in_work(project_context: ProjectContext, ticket: Ticket) -> OpenChange | None:
    if ticket.change is not None and ticket.state is not State.WORKING:
        return OpenChange(id=ticket.id, base=ticket.change.base, commit=ticket.change.commit)
    tree = project_context.worktrees.path(worktree_name(ticket.id))
    # A tree that still waits for its new ground holds the last attempt.
    if ticket.base is None or ticket.plant is not None or not tree.is_dir():
        return None
    index = project_context.worktrees.index(worktree_name(ticket.id))
    return OpenChange(id=ticket.id, base=ticket.base, tree=tree, index=index)


def _record(
    context: Context, project_context: ProjectContext, new: Iterable[PredictedConflict], gone: Iterable[Pair]
) -> None:
    rows = [
        (EventKind.CLASH_SEEN, clash.mine, {"with": clash.theirs, "places": [asdict(place) for place in clash.places]})
        for clash in new
    ]
    rows += [(EventKind.CLASH_GONE, mine, {"with": theirs}) for mine, theirs in sorted(gone)]
    if not rows:
        return
    with context.store.write() as tx:
        for kind, ticket, data in rows:
            tx.record(
                kind, project=project_context.project.id, ticket=ticket, data={**data, "rule": Rule.CLASH_IS_TOLD.value}
            )


def _tell(context: Context, at_work: dict[int, Ticket], clash: PredictedConflict) -> None:
    """In the middle of its work, if its program can hear."""
    with context.store.read() as tx:
        run = runs.latest(tx, clash.mine)
    if run is None or run.ended_at is not None:
        return
    folder = context.data.runs / run.name
    try:
        if read_spec(folder).profile.capabilities.talks:
            launch.tell(folder, str(uuid.uuid4()), words(clash, at_work.get(clash.theirs)))
    except (RunnerError, OSError) as deaf:
        log.debug("the agent of ticket %s was not told of a conflict: %s", clash.mine, deaf)


def words(clash: PredictedConflict, other: Ticket | None) -> str:
    """What an agent is told."""
    who = "Code that has landed since you began" if other is None else f"The agent of ticket {other.id}"
    about = f" ({other.spec.title})" if other is not None else ""
    listed = "\n".join(f"- {place_words(place)}" for place in clash.places[:_MOST_TOLD])
    return (
        f"{who}{about} changes lines that you change too:\n\n{listed}\n\n"
        "Whoever lands second will have to merge by hand. Go on with your ticket, but keep your change in these "
        "places as small as you can, and leave alone there what your ticket does not need."
    )


def place_words(place: ConflictSpan) -> str:
    first, last = place.mine
    if not first:
        return place.path
    return f"{place.path}, line {first}" if first == last else f"{place.path}, lines {first} to {last}"
