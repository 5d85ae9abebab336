"""The land job: one project's merge queue, worked off batch by batch until it is empty.

A batch is a chain of candidates; parts of it are tested until it is clear what may land and who is to blame. How the
target then moves is `target`'s business.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from legion.config.files.project import FILE, hash_of, parse
from legion.domain.checks import Receipt
from legion.domain.errors import BadInput
from legion.domain.events import EventKind
from legion.domain.landing import bisect
from legion.domain.landing.bisect import BisectProbe, BisectState
from legion.domain.scheduling.claims import Claim
from legion.domain.tickets.attempts import next_try
from legion.domain.tickets.ticket import Fail, Park, ParkReason, State, Ticket, TryAgain
from legion.git.hub.repository import TARGET
from legion.git.merge import candidates
from legion.git.merge.candidates import MergeCandidate, MergeConflict
from legion.jobs.attempts import escalation, feedback
from legion.jobs.checks import execution, held_out
from legion.jobs.checks.candidates import ChainLink, candidate, part
from legion.jobs.checks.execution import CheckedCommit, WantedCheck
from legion.jobs.checks.job import confirmed, refuse_broken, sent_back_for_conflict, sent_back_for_red
from legion.jobs.context import Context, ProjectContext
from legion.jobs.landing import baseline, target, upstream
from legion.jobs.landing.queue import MergeQueue
from legion.jobs.landing.speculation import Speculation
from legion.jobs.landing.suspects import Suspect, Suspects
from legion.jobs.workspace.save import AUTHOR
from legion.store.board import projects, tickets
from legion.store.work import claims
from legion.system import crash
from legion.system.crash import Point

_PATIENCE, _LONGEST_PATIENCE = 0.1, 1.0
"""Seconds without an arrival after which a batch is closed, and the most that the first of it waits."""


@dataclass(frozen=True, kw_only=True)
class _CheckedChain:
    """A chain, and what the checks said about its tip."""

    links: tuple[ChainLink, ...]
    tested: CheckedCommit


def land(context: Context, claim: Claim) -> None:
    """Until nothing is left to land. What arrives while the claim is being given back starts the next job."""
    target.finish_begun(context, context.workshop(claim.subject))
    _QueueWorker(context, claim.subject).clear()
    with context.store.write() as tx:
        claims.finish(tx, claim)


class _QueueWorker:
    """Works off one project's merge queue, for as long as its land job runs."""

    def __init__(self, context: Context, project: int) -> None:
        self._context = context
        self._project = project
        self._queue = MergeQueue(context, project)
        self._train = Speculation(context, self._queue)
        self._suspects = Suspects()

    def clear(self) -> None:
        try:
            while self._land_next():
                pass
        finally:
            self._train.give_up()
            for ticket in self._suspects.ids:
                self._context.aboard.pop(ticket, None)

    def _land_next(self) -> bool:
        """One batch, or one suspect. False where nothing is left, or nothing may be run."""
        project_context = self._context.workshop(self._project)
        project_context = replace(project_context, project=upstream.look(self._context, project_context))
        person_waits = project_context.project.person_waiting
        batch = _accepted(
            self._context, (() if person_waits else self._train.next(project_context)) or self._batch(project_context)
        )
        if not _trusted(self._context, project_context):
            return False
        suspect = self._suspects.next(others_wait=bool(batch) or person_waits)
        if suspect is not None:
            self._blame(project_context, suspect)
        elif batch or person_waits:
            self._queue.tell(project_context, batch, self._suspects.ids)
            self._land_batch(project_context, batch, person_waits)
        else:
            return False
        return True

    def _batch(self, project_context: ProjectContext) -> tuple[Ticket, ...]:
        _let_companions_arrive(self._context, project_context)
        with self._context.store.read() as tx:
            live = tickets.live(tx, project=self._project)
            return self._queue.first(project_context, tx, self._suspects.without(live))

    def _land_batch(self, project_context: ProjectContext, batch: tuple[Ticket, ...], person_waits: bool) -> None:
        context, start = self._context, project_context.target
        chain = _chain(context, project_context, start, batch, person_waits)
        if not chain or _refuse_nonsense(context, project_context, chain):
            return
        project_context = _under_persons_config(context, project_context, chain[0])
        taken = {*self._suspects.ids, *(ticket.id for ticket in batch)}
        with self._train.below(project_context, chain[-1].commit, taken) as begun, _shown(context, chain):
            search, tried = self._search(project_context, start, chain, begun)
        room = self._queue.room(project_context)
        self._learn(project_context, chain, search)
        landed = search.lands is None or target.move(context, project_context, start, tried[search.lands].links)
        if landed and search.culprit is not None:
            against, culprit = tried[search.convicted_by].tested, chain[search.culprit].ticket
            if culprit is None:
                _refuse_red_person(context, project_context, against)
            else:
                self._suspects.add(Suspect(ticket=culprit, against=against, alone=search.lands is None, room=room))
                context.aboard[culprit.id] = "red; that is repeated alone before anyone is blamed"

    def _learn(self, project_context: ProjectContext, chain: Sequence[ChainLink], search: BisectState) -> None:
        """The person's commits teach nothing about agents' changes."""
        changes = [link for link in chain if link.ticket is not None]
        if changes and (search.culprit is None or chain[search.culprit] in changes):
            self._queue.learn(project_context, len(changes), green=search.red is None)

    def _search(
        self, project_context: ProjectContext, start: str, chain: list[ChainLink], begun: CheckedCommit | None
    ) -> tuple[BisectState, dict[BisectProbe, _CheckedChain]]:
        """Test parts of the chain until it is clear how much of it may land and who is to blame for the rest.

        `begun` is what was said about the whole of it while it stood on a batch that has landed since.
        """
        search = BisectState(size=len(chain))
        tried: dict[BisectProbe, _CheckedChain] = {}
        slots = project_context.config.landing.checks_at_once
        # The batch below may have brought other checks; then it says nothing.
        if begun is not None and not begun.green and begun.wanted == _wanted(self._context, project_context, chain):
            self._train.give_up()
            whole = BisectProbe(len(chain))
            tried[whole] = _CheckedChain(links=tuple(chain), tested=begun)
            search = bisect.learn(search, {whole: False})
        while not search.settled:
            probes = bisect.probes(search, slots)
            with ThreadPoolExecutor(max_workers=len(probes), thread_name_prefix="probe") as pool:
                results = dict(
                    zip(
                        probes,
                        pool.map(lambda probe: _try(self._context, project_context, start, chain, probe), probes),
                        strict=True,
                    )
                )
            tried |= {probe: result for probe, result in results.items() if result is not None}
            for result in results.values():
                if result is not None:
                    refuse_broken(result.tested)
            results_told = {probe: None if result is None else result.tested.green for probe, result in results.items()}
            search = bisect.learn(search, results_told)
            if search.red is not None:
                self._train.give_up()
        return search, tried

    def _blame(self, project_context: ProjectContext, suspect: Suspect) -> None:
        """The red test is repeated with no other beside it. Where it is green then, the change stays in the queue, and
        the receipt counts."""
        try:
            with self._context.store.read() as tx:
                if tickets.get(tx, suspect.ticket.id).version != suspect.ticket.version:
                    return
            tested = confirmed(self._context, project_context, suspect.against)
            if tested.green:
                self._queue.unlearn(project_context, suspect.room)
            else:
                self._send_back(project_context, suspect.ticket, tested, alone=suspect.alone)
        finally:
            self._context.aboard.pop(suspect.ticket.id, None)

    def _send_back(
        self, project_context: ProjectContext, culprit: Ticket, tested: CheckedCommit, *, alone: bool
    ) -> None:
        context = self._context
        if alone:
            known = baseline.learn(context, project_context)
            failing = {receipt.command for receipt in known.red}
            if failing and {receipt.command for receipt in tested.red} <= failing:
                detail = f"the target itself fails {', '.join(f'`{command}`' for command in sorted(failing))}"
                _move(context, culprit, Park(ParkReason.RED_BASELINE, detail), EventKind.BASELINE_RED, tested.red)
                self._queue.forget(project_context)
                return
        before = project_context.target
        merged = candidate(context, project_context, before, culprit)
        if isinstance(merged, MergeConflict):
            _move(context, culprit, sent_back_for_conflict(culprit, before, merged), EventKind.SENT_BACK)
            return
        step = sent_back_for_red(culprit, before, merged.tree, tested)
        _move(context, culprit, step, EventKind.SENT_BACK, tested.red)


def _trusted(context: Context, project_context: ProjectContext) -> bool:
    """The last batch may have brought a legion.toml that the person has not seen."""
    with context.store.read() as tx:
        return projects.is_trusted(tx, project_context.project.id, project_context.project.config_hash)


def _accepted(context: Context, batch: tuple[Ticket, ...]) -> tuple[Ticket, ...]:
    """Those whose held-out acceptance is there; the others wait for it."""
    waiting = {ticket.id: gone for ticket in batch if (gone := held_out.waits(context, ticket)) is not None}
    for ticket in batch:
        if ticket.id in waiting:
            _move(context, ticket, waiting[ticket.id], EventKind.WARNING)
    return tuple(ticket for ticket in batch if ticket.id not in waiting)


def _let_companions_arrive(context: Context, project_context: ProjectContext) -> None:
    """While others of the project are about to end, a moment's patience saves a whole round of checks."""
    queued = -1
    deadline = time.monotonic() + _LONGEST_PATIENCE
    while time.monotonic() < deadline:
        with context.store.read() as tx:
            states = [ticket.state for ticket in tickets.live(tx, project=project_context.project.id)]
        before, queued = queued, states.count(State.LANDING)
        if queued == before or not {State.WORKING, State.CHECKING}.intersection(states):
            return
        time.sleep(_PATIENCE)


@contextlib.contextmanager
def _shown(context: Context, chain: Sequence[ChainLink]) -> Iterator[None]:
    """Who looks at the board sees that they are in test."""
    aboard = [link.ticket.id for link in chain if link.ticket is not None]
    context.aboard |= dict.fromkeys(aboard, "in test" if len(chain) == 1 else f"in test, {len(chain)} changes together")
    try:
        yield
    finally:
        for ticket in aboard:
            context.aboard.pop(ticket, None)


def _chain(
    context: Context, project_context: ProjectContext, start: str, batch: tuple[Ticket, ...], person_waits: bool
) -> list[ChainLink]:
    """Each change on top of the one before. Who conflicts with the target goes back; who conflicts only with a
    companion waits for the next batch, when it is known which of them landed."""
    chain: list[ChainLink] = []
    tip = start
    if person_waits:
        link = _persons_link(context, project_context, start)
        if link is not None:
            chain.append(link)
            tip = link.commit
    for ticket in batch:
        merged = candidate(context, project_context, tip, ticket)
        if isinstance(merged, MergeCandidate):
            chain.append(ChainLink(ticket=ticket, commit=merged.commit, tree=merged.tree))
            tip = merged.commit
            continue
        by_itself = merged if tip == start else candidate(context, project_context, start, ticket)
        if isinstance(by_itself, MergeConflict):
            _move(context, ticket, sent_back_for_conflict(ticket, start, by_itself), EventKind.SENT_BACK)
    return chain


def _under_persons_config(context: Context, project_context: ProjectContext, first: ChainLink) -> ProjectContext:
    """A legion.toml that the person wrote and trusts holds for their own commits already, or they could never mend it.

    A change of an agent is always tested by the target's.
    """
    text = project_context.hub.read_file(first.commit, FILE) if first.ticket is None else None
    if text is None:
        return project_context
    words = text.decode("utf-8", "replace")
    with context.store.read() as tx:
        trusted = projects.is_trusted(tx, project_context.project.id, hash_of(words))
    return replace(project_context, config=parse(words)) if trusted else project_context


def _refuse_nonsense(context: Context, project_context: ProjectContext, chain: list[ChainLink]) -> bool:
    """A legion.toml that cannot be read would stop everything once it is the target's: who brings it goes back."""
    if _nonsense(project_context, chain[-1]) is None:
        return False
    link, wrong = next((link, wrong) for link in chain if (wrong := _nonsense(project_context, link)) is not None)
    if link.ticket is None:
        why = f"your {FILE} cannot be read ({wrong.rstrip('.')})"
        _refuse_person(context, project_context, why, "mend that and commit again")
    else:
        step = next_try(link.ticket, f"its {FILE} cannot be read", feedback.nonsense(wrong))
        _move(context, link.ticket, step, EventKind.SENT_BACK)
    return True


def _nonsense(project_context: ProjectContext, link: ChainLink) -> str | None:
    """What is wrong with the legion.toml that would be in force."""
    text = project_context.hub.read_file(link.commit, FILE)
    try:
        parse("" if text is None else text.decode("utf-8", "replace"))
    except BadInput as wrong:
        return wrong.message
    return None


def _persons_link(context: Context, project_context: ProjectContext, start: str) -> ChainLink | None:
    tip = project_context.project.person_tip
    assert tip is not None, "somebody who waits has a tip"
    if start == project_context.project.person_absorbed:
        # Nothing but their own commits is there, so they may rewrite them as they like.
        return ChainLink(ticket=None, commit=tip, tree=project_context.hub.tree_of(tip))
    merged = candidates.merge_person(
        project_context.hub,
        start,
        tip,
        message=f"Merge {project_context.project.branch}",
        author=AUTHOR,
        when=int(context.clock()),
    )
    if isinstance(merged, MergeCandidate):
        return ChainLink(ticket=None, commit=merged.commit, tree=merged.tree)
    if isinstance(merged, MergeConflict):
        named = ", ".join(file.path for file in merged.files[:3])
        _refuse_person(
            context,
            project_context,
            f"your commits conflict with landed changes in {named}",
            f"run `git fetch {project_context.hub.path} {TARGET}` and `git merge FETCH_HEAD`, settle it and commit",
        )
    return None


def _try(
    context: Context, project_context: ProjectContext, start: str, chain: list[ChainLink], probe: BisectProbe
) -> _CheckedChain | None:
    """The project's checks and the proofs of every ticket in it, on the tip of what the probe asks for."""
    links = part(context, project_context, start, chain, probe)
    if links is None:
        return None
    crash.reach(Point.LAND_BEFORE_TEST)
    tested = execution.test(context, project_context, links[-1].commit, _wanted(context, project_context, links))
    return _CheckedChain(links=links, tested=tested)


def _wanted(context: Context, project_context: ProjectContext, links: Sequence[ChainLink]) -> tuple[WantedCheck, ...]:
    return held_out.of_batch(context, project_context, [link.ticket for link in links if link.ticket is not None])


def _refuse_red_person(context: Context, project_context: ProjectContext, against: CheckedCommit) -> None:
    """At once, by the settings that they were tested with: they are never a suspect among others."""
    tested = confirmed(context, project_context, against)
    if not tested.green:
        failed = ", ".join(f"`{receipt.command}`" for receipt in tested.red)
        _refuse_person(context, project_context, f"your commits fail {failed}", "mend that and commit again")


def _move(
    context: Context, ticket: Ticket, step: TryAgain | Fail | Park, kind: EventKind, because: Sequence[Receipt] = ()
) -> None:
    """Unless a person was faster."""
    with context.store.write() as tx:
        if tickets.get(tx, ticket.id).version != ticket.version:
            return
        why, rule = escalation.apply_step(context, tx, ticket, step)
        data = {"why": why, "receipts": [receipt.id for receipt in because], "rule": rule.value}
        tx.record(kind, project=ticket.project, ticket=ticket.id, data=data)


def _refuse_person(context: Context, project_context: ProjectContext, why: str, remedy: str) -> None:
    with context.store.write() as tx:
        project = projects.get(tx, project_context.project.id)
        refused = replace(project, person_refused=project_context.project.person_tip)
        data = {"tip": project_context.project.person_tip, "why": why, "remedy": remedy}
        projects.save(tx, refused, EventKind.NOT_ABSORBED, data)
