"""Predicts merge conflicts: while agents work, their changes are merged with each other at intervals.

Each predicted conflict is recorded as an event and shown on the board. Agents that accept messages get one message.
The results are in memory: a new daemon predicts again, and reads in the events which messages were sent.
"""

from __future__ import annotations

import functools
import logging
import re
import time
import uuid
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict

from legion.config.files.project import ProjectConfig
from legion.domain.errors import LegionError
from legion.domain.events import EventKind
from legion.domain.landing import definitions
from legion.domain.landing.conflicts import AT_WORK, ConflictSpan, Pair, PredictedConflict, compare
from legion.domain.landing.definitions import Named
from legion.domain.projects import Project
from legion.domain.rules import Rule
from legion.domain.tickets.ticket import State, Ticket
from legion.git.core.errors import GitProblem
from legion.git.hub.repository import Hub
from legion.git.merge.prediction import OpenChange, Prediction
from legion.jobs.board import Board
from legion.jobs.context import Context
from legion.jobs.loop import BackgroundLoop
from legion.jobs.trees import ProjectContext, Trees
from legion.jobs.workspace import kept_outputs
from legion.jobs.workspace.sandbox import live_tree
from legion.jobs.workspace.save import worktree_name
from legion.jobs.workspace.setup import is_prepared
from legion.runner import launch
from legion.runner.spec import RunnerError, read_spec
from legion.store import events
from legion.store.board import projects, races, tickets
from legion.store.database.transactions import ReadTransaction
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
    edited = kept_outputs.edited(project, tree)
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


# The first guess: what tickets that have not started will change, by the names in their texts that the target defines.
#
# A git process starts only where two live tickets name the same, so others never wait for it.

_MOST_LIVE = 300
"""Tickets of a project whose texts are compared."""
_MOST_READ, _MOST_KNOWN = 40, 500
"""Files."""
_LONGEST = 1 << 20
_DEFINES = r"^[[:space:]]*(async def|def|class)[[:space:]]+({})[^A-Za-z0-9_]"
_NO_CODE = re.compile(r"(?:^|/)(?:tests?|docs?|examples?)/|(?:^|/)test_[^/]*$|\.(?:md|toml|json)$")
"""Paths whose definitions are not guessed: most texts that name them mean something else."""

_Texts = dict[Project, dict[int, Named]]


class Guesses:
    """Of all projects. For the scheduler's thread."""

    def __init__(self, context: Trees) -> None:
        self._context = context
        self._named: dict[int, tuple[int, Named]] = {}
        self._found: dict[int, tuple[object, dict[int, frozenset[str]]]] = {}
        self._known: dict[str, tuple[str, ...]] = {}
        """By the id of a file's content."""

    def read(self, tx: ReadTransaction, live: Iterable[Ticket], configs: Mapping[int, ProjectConfig]) -> _Texts:
        """What the texts of live tickets name, in projects where one could still wait for another."""
        by_project: dict[int, list[Ticket]] = {}
        for ticket in live:
            if not ticket.spec.checkpoint and ticket.spec.undoes is None:
                by_project.setdefault(ticket.project, []).append(ticket)
        found: _Texts = {}
        for record in projects.all(tx):
            mine = by_project.get(record.id, [])[:_MOST_LIVE]
            waits = any(one.state is State.QUEUED and one.attempt == 0 for one in mine)
            if waits and len(mine) > 1 and record.id in configs and configs[record.id].conflicts.order:
                found[record] = self._read(tx, mine)
        kept = {id for named in found.values() for id in named}
        self._named = {id: one for id, one in self._named.items() if id in kept}
        return found

    def _read(self, tx: ReadTransaction, mine: Iterable[Ticket]) -> dict[int, Named]:
        # A text can change only while its ticket has not started.
        seen = {id: version for id, (version, _) in self._named.items()}
        new = [
            one.id
            for one in mine
            if seen.get(one.id, -1) != one.version and (one.state is State.QUEUED or one.id not in seen)
        ]
        for ticket in tickets.get_many(tx, new):
            spec = ticket.spec
            words = "\n".join((spec.title, spec.text, spec.context, spec.criteria, spec.plan, *spec.files))
            self._named[ticket.id] = (ticket.version, definitions.named_in(words))
        return {one.id: self._named[one.id][1] for one in mine}

    def of(self, texts: _Texts) -> dict[int, frozenset[str]]:
        """By ticket: what it claims. Empty for most."""
        found: dict[int, frozenset[str]] = {}
        for record, named in texts.items():
            key = (record.target, tuple(named.items()))
            if record.id not in self._found or self._found[record.id][0] != key:
                self._found[record.id] = (key, self._guess(record, named))
            found |= self._found[record.id][1]
        return found

    def _guess(self, record: Project, named: Mapping[int, Named]) -> dict[int, frozenset[str]]:
        many = Counter(word for one in named.values() for word in _parts(one))
        shared = {word for word, times in many.items() if times > 1}
        if not shared:
            return {}
        try:
            files = self._index(self._context.project_of(record).hub, record.target, shared)
        except (GitProblem, LegionError) as unknown:
            log.debug("%s: no guess of what tickets will change: %s", record.name, unknown)
            return {}
        guesses = {id: definitions.claims(one, files) for id, one in named.items()}
        return {id: claims for id, claims in guesses.items() if claims}

    def _index(self, hub: Hub, target: str, shared: Collection[str]) -> dict[str, tuple[str, ...]]:
        """By path: what is defined there, of files that are named, or that define what is."""
        paths = tuple(f"/{word}" for word in shared if "." in word)
        words = sorted(word for word in shared if word.isidentifier())
        there = hub.blobs(target)
        found = [path for path in there if f"/{path}".endswith(paths)]
        if words:
            found += hub.files_with(target, _DEFINES.format("|".join(words)))
        code = [path for path in dict.fromkeys(found) if not _NO_CODE.search(path) and path in there][:_MOST_READ]
        return {path: self._names(hub, path, there[path]) for path in code}

    def _names(self, hub: Hub, path: str, blob: str) -> tuple[str, ...]:
        if blob not in self._known:
            text = hub.content(blob)[:_LONGEST].decode("utf-8", "replace")
            self._known[blob] = tuple(one.name for one in definitions.definitions(path, text))
            while len(self._known) > _MOST_KNOWN:
                self._known.pop(next(iter(self._known)))
        return self._known[blob]


def _parts(named: Named) -> set[str]:
    """What two tickets have to share for a guess: a path, or a part of a name."""
    return {part for word in named.words for part in word.split(".")} | named.paths
