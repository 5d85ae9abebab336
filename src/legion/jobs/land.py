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

from legion.config.project import FILE, hash_of, parse
from legion.domain import landing
from legion.domain.attempts import next_try
from legion.domain.checks import Receipt
from legion.domain.errors import BadInput
from legion.domain.events import Kind
from legion.domain.jobs import Claim
from legion.domain.landing import Probe, Search
from legion.domain.tickets import Fail, Park, ParkReason, State, Ticket, TryAgain
from legion.git import merging
from legion.git.hub import TARGET
from legion.git.merging import Candidate, Conflict
from legion.jobs import acceptance, baseline, checking, climbing, feedback, person, target
from legion.jobs.candidates import candidate, part
from legion.jobs.check import refuse_broken, sent_back_for_conflict, sent_back_for_red, told
from legion.jobs.checking import Tested, Wanted
from legion.jobs.queue import Queue
from legion.jobs.saving import AUTHOR
from legion.jobs.suspects import Suspect, Suspects
from legion.jobs.target import Link
from legion.jobs.train import Train
from legion.jobs.world import Workshop, World
from legion.store import jobs, projects, tickets
from legion.system import crash
from legion.system.crash import Point

_PATIENCE, _LONGEST_PATIENCE = 0.1, 1.0
"""Seconds without an arrival after which a batch is closed, and the most that the first of it waits."""


@dataclass(frozen=True, kw_only=True)
class _Tried:
    """A chain, and what the checks said about its tip."""

    links: tuple[Link, ...]
    tested: Tested


def land(world: World, claim: Claim) -> None:
    """Until nothing is left to land. What arrives while the claim is being given back starts the next job."""
    target.finish_begun(world, world.workshop(claim.subject))
    _Lander(world, claim.subject).clear()
    with world.store.write() as tx:
        jobs.finish(tx, claim)


class _Lander:
    """Works off one project's merge queue, for as long as its land job runs."""

    def __init__(self, world: World, project: int) -> None:
        self._world = world
        self._project = project
        self._queue = Queue(world, project)
        self._train = Train(world, self._queue)
        self._suspects = Suspects()

    def clear(self) -> None:
        try:
            while self._land_next():
                pass
        finally:
            self._train.give_up()
            for ticket in self._suspects.ids:
                self._world.aboard.pop(ticket, None)

    def _land_next(self) -> bool:
        """One batch, or one suspect. False where nothing is left, or nothing may be run."""
        shop = self._world.workshop(self._project)
        shop = replace(shop, project=person.look(self._world, shop))
        person_waits = shop.project.person_waiting
        batch = _accepted(self._world, (() if person_waits else self._train.next(shop)) or self._batch(shop))
        if not _trusted(self._world, shop):
            return False
        suspect = self._suspects.next(others_wait=bool(batch) or person_waits)
        if suspect is not None:
            self._blame(shop, suspect)
        elif batch or person_waits:
            self._queue.tell(shop, batch, self._suspects.ids)
            self._land_batch(shop, batch, person_waits)
        else:
            return False
        return True

    def _batch(self, shop: Workshop) -> tuple[Ticket, ...]:
        _let_companions_arrive(self._world, shop)
        with self._world.store.read() as tx:
            live = tickets.live(tx, project=self._project)
            return self._queue.first(shop, tx, self._suspects.without(live))

    def _land_batch(self, shop: Workshop, batch: tuple[Ticket, ...], person_waits: bool) -> None:
        world, start = self._world, shop.target
        chain = _chain(world, shop, start, batch, person_waits)
        if not chain or _refuse_nonsense(world, shop, chain):
            return
        shop = _under_persons_config(world, shop, chain[0])
        taken = {*self._suspects.ids, *(ticket.id for ticket in batch)}
        with self._train.below(shop, chain[-1].commit, taken) as begun, _shown(world, chain):
            search, tried = self._search(shop, start, chain, begun)
        room = self._queue.room(shop)
        self._learn(shop, chain, search)
        landed = search.lands is None or target.move(world, shop, start, tried[search.lands].links)
        if landed and search.culprit is not None:
            against, culprit = tried[search.convicted_by].tested, chain[search.culprit].ticket
            if culprit is None:
                _refuse_red_person(world, shop, against)
            else:
                self._suspects.add(Suspect(ticket=culprit, against=against, alone=search.lands is None, room=room))
                world.aboard[culprit.id] = "red; that is repeated alone before anyone is blamed"

    def _learn(self, shop: Workshop, chain: Sequence[Link], search: Search) -> None:
        """The person's commits teach nothing about agents' changes."""
        changes = [link for link in chain if link.ticket is not None]
        if changes and (search.culprit is None or chain[search.culprit] in changes):
            self._queue.learn(shop, len(changes), green=search.red is None)

    def _search(
        self, shop: Workshop, start: str, chain: list[Link], begun: Tested | None
    ) -> tuple[Search, dict[Probe, _Tried]]:
        """Test parts of the chain until it is clear how much of it may land and who is to blame for the rest.

        `begun` is what was said about the whole of it while it stood on a batch that has landed since.
        """
        search = Search(size=len(chain))
        tried: dict[Probe, _Tried] = {}
        slots = shop.config.landing.checks_at_once
        # The batch below may have brought other checks; then it says nothing.
        if begun is not None and not begun.green and begun.wanted == _wanted(self._world, shop, chain):
            self._train.give_up()
            whole = Probe(len(chain))
            tried[whole] = _Tried(links=tuple(chain), tested=begun)
            search = landing.learn(search, {whole: False})
        while not search.settled:
            probes = landing.probes(search, slots)
            with ThreadPoolExecutor(max_workers=len(probes), thread_name_prefix="probe") as pool:
                results = dict(
                    zip(
                        probes,
                        pool.map(lambda probe: _try(self._world, shop, start, chain, probe), probes),
                        strict=True,
                    )
                )
            tried |= {probe: result for probe, result in results.items() if result is not None}
            for result in results.values():
                if result is not None:
                    refuse_broken(result.tested)
            results_told = {probe: None if result is None else result.tested.green for probe, result in results.items()}
            search = landing.learn(search, results_told)
            if search.red is not None:
                self._train.give_up()
        return search, tried

    def _blame(self, shop: Workshop, suspect: Suspect) -> None:
        """The red test is repeated with no other beside it. Where it is green then, the change stays in the queue, and
        the receipt counts."""
        try:
            with self._world.store.read() as tx:
                if tickets.get(tx, suspect.ticket.id).version != suspect.ticket.version:
                    return
            tested = told(self._world, shop, suspect.against)
            if tested.green:
                self._queue.unlearn(shop, suspect.room)
            else:
                self._send_back(shop, suspect.ticket, tested, alone=suspect.alone)
        finally:
            self._world.aboard.pop(suspect.ticket.id, None)

    def _send_back(self, shop: Workshop, culprit: Ticket, tested: Tested, *, alone: bool) -> None:
        world = self._world
        if alone:
            known = baseline.learn(world, shop)
            failing = {receipt.command for receipt in known.red}
            if failing and {receipt.command for receipt in tested.red} <= failing:
                detail = f"the target itself fails {', '.join(f'`{command}`' for command in sorted(failing))}"
                _move(world, culprit, Park(ParkReason.RED_BASELINE, detail), Kind.BASELINE_RED, tested.red)
                self._queue.forget(shop)
                return
        before = shop.target
        merged = candidate(world, shop, before, culprit)
        if isinstance(merged, Conflict):
            _move(world, culprit, sent_back_for_conflict(culprit, before, merged), Kind.SENT_BACK)
            return
        step = sent_back_for_red(culprit, before, merged.tree, tested)
        _move(world, culprit, step, Kind.SENT_BACK, tested.red)


def _trusted(world: World, shop: Workshop) -> bool:
    """The last batch may have brought a legion.toml that the person has not seen."""
    with world.store.read() as tx:
        return projects.is_trusted(tx, shop.project.id, shop.project.config_hash)


def _accepted(world: World, batch: tuple[Ticket, ...]) -> tuple[Ticket, ...]:
    """Those whose held-out acceptance is there; the others wait for it."""
    waiting = {ticket.id: gone for ticket in batch if (gone := acceptance.waits(world, ticket)) is not None}
    for ticket in batch:
        if ticket.id in waiting:
            _move(world, ticket, waiting[ticket.id], Kind.WARNING)
    return tuple(ticket for ticket in batch if ticket.id not in waiting)


def _let_companions_arrive(world: World, shop: Workshop) -> None:
    """While others of the project are about to end, a moment's patience saves a whole round of checks."""
    queued = -1
    deadline = time.monotonic() + _LONGEST_PATIENCE
    while time.monotonic() < deadline:
        with world.store.read() as tx:
            states = [ticket.state for ticket in tickets.live(tx, project=shop.project.id)]
        before, queued = queued, states.count(State.LANDING)
        if queued == before or not {State.WORKING, State.CHECKING}.intersection(states):
            return
        time.sleep(_PATIENCE)


@contextlib.contextmanager
def _shown(world: World, chain: Sequence[Link]) -> Iterator[None]:
    """Who looks at the board sees that they are in test."""
    aboard = [link.ticket.id for link in chain if link.ticket is not None]
    world.aboard |= dict.fromkeys(aboard, "in test" if len(chain) == 1 else f"in test, {len(chain)} changes together")
    try:
        yield
    finally:
        for ticket in aboard:
            world.aboard.pop(ticket, None)


def _chain(world: World, shop: Workshop, start: str, batch: tuple[Ticket, ...], person_waits: bool) -> list[Link]:
    """Each change on top of the one before. Who conflicts with the target goes back; who conflicts only with a
    companion waits for the next batch, when it is known which of them landed."""
    chain: list[Link] = []
    tip = start
    if person_waits:
        link = _persons_link(world, shop, start)
        if link is not None:
            chain.append(link)
            tip = link.commit
    for ticket in batch:
        merged = candidate(world, shop, tip, ticket)
        if isinstance(merged, Candidate):
            chain.append(Link(ticket=ticket, commit=merged.commit, tree=merged.tree))
            tip = merged.commit
            continue
        by_itself = merged if tip == start else candidate(world, shop, start, ticket)
        if isinstance(by_itself, Conflict):
            _move(world, ticket, sent_back_for_conflict(ticket, start, by_itself), Kind.SENT_BACK)
    return chain


def _under_persons_config(world: World, shop: Workshop, first: Link) -> Workshop:
    """A legion.toml that the person wrote and trusts holds for their own commits already, or they could never mend it.

    A change of an agent is always tested by the target's.
    """
    text = shop.hub.read_file(first.commit, FILE) if first.ticket is None else None
    if text is None:
        return shop
    words = text.decode("utf-8", "replace")
    with world.store.read() as tx:
        trusted = projects.is_trusted(tx, shop.project.id, hash_of(words))
    return replace(shop, config=parse(words)) if trusted else shop


def _refuse_nonsense(world: World, shop: Workshop, chain: list[Link]) -> bool:
    """A legion.toml that cannot be read would stop everything once it is the target's: who brings it goes back."""
    if _nonsense(shop, chain[-1]) is None:
        return False
    link, wrong = next((link, wrong) for link in chain if (wrong := _nonsense(shop, link)) is not None)
    if link.ticket is None:
        why = f"your {FILE} cannot be read ({wrong.rstrip('.')})"
        _refuse_person(world, shop, why, "mend that and commit again")
    else:
        step = next_try(link.ticket, f"its {FILE} cannot be read", feedback.nonsense(wrong))
        _move(world, link.ticket, step, Kind.SENT_BACK)
    return True


def _nonsense(shop: Workshop, link: Link) -> str | None:
    """What is wrong with the legion.toml that would be in force."""
    text = shop.hub.read_file(link.commit, FILE)
    try:
        parse("" if text is None else text.decode("utf-8", "replace"))
    except BadInput as wrong:
        return wrong.message
    return None


def _persons_link(world: World, shop: Workshop, start: str) -> Link | None:
    tip = shop.project.person_tip
    assert tip is not None, "somebody who waits has a tip"
    if start == shop.project.person_absorbed:
        # Nothing but their own commits is there, so they may rewrite them as they like.
        return Link(ticket=None, commit=tip, tree=shop.hub.tree_of(tip))
    merged = merging.merge_person(
        shop.hub, start, tip, message=f"Merge {shop.project.branch}", author=AUTHOR, when=int(world.clock())
    )
    if isinstance(merged, Candidate):
        return Link(ticket=None, commit=merged.commit, tree=merged.tree)
    if isinstance(merged, Conflict):
        named = ", ".join(file.path for file in merged.files[:3])
        _refuse_person(
            world,
            shop,
            f"your commits conflict with landed changes in {named}",
            f"run `git fetch {shop.hub.path} {TARGET}` and `git merge FETCH_HEAD`, settle it and commit",
        )
    return None


def _try(world: World, shop: Workshop, start: str, chain: list[Link], probe: Probe) -> _Tried | None:
    """The project's checks and the proofs of every ticket in it, on the tip of what the probe asks for."""
    links = part(world, shop, start, chain, probe)
    if links is None:
        return None
    crash.reach(Point.LAND_BEFORE_TEST)
    tested = checking.test(world, shop, links[-1].commit, _wanted(world, shop, links))
    return _Tried(links=links, tested=tested)


def _wanted(world: World, shop: Workshop, links: Sequence[Link]) -> tuple[Wanted, ...]:
    return acceptance.of_batch(world, shop, [link.ticket for link in links if link.ticket is not None])


def _refuse_red_person(world: World, shop: Workshop, against: Tested) -> None:
    """At once, by the settings that they were tested with: they are never a suspect among others."""
    tested = told(world, shop, against)
    if not tested.green:
        failed = ", ".join(f"`{receipt.command}`" for receipt in tested.red)
        _refuse_person(world, shop, f"your commits fail {failed}", "mend that and commit again")


def _move(
    world: World, ticket: Ticket, step: TryAgain | Fail | Park, kind: Kind, because: Sequence[Receipt] = ()
) -> None:
    """Unless a person was faster."""
    with world.store.write() as tx:
        if tickets.get(tx, ticket.id).version != ticket.version:
            return
        why, rule = climbing.take(world, tx, ticket, step)
        data = {"why": why, "receipts": [receipt.id for receipt in because], "rule": rule.value}
        tx.record(kind, project=ticket.project, ticket=ticket.id, data=data)


def _refuse_person(world: World, shop: Workshop, why: str, remedy: str) -> None:
    with world.store.write() as tx:
        project = projects.get(tx, shop.project.id)
        refused = replace(project, person_refused=shop.project.person_tip)
        data = {"tip": shop.project.person_tip, "why": why, "remedy": remedy}
        projects.save(tx, refused, Kind.NOT_ABSORBED, data)
