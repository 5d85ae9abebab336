"""The merge queue's order and room are found again in what is stored: landings, events, and the changes themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from legion.domain.events import EventKind
from legion.domain.landing.queue import PATIENCE
from legion.domain.tickets.ladder import next_try_after_conflict
from legion.domain.tickets.spec import StartPoint
from legion.domain.tickets.ticket import Change, Land, Propose, Prove, Retry, Start, Stop, Ticket
from legion.git.hub.repository import Hub
from legion.jobs.landing.queue import MergeQueue, waiting_entries
from legion.jobs.trees import ProjectContext
from legion.store import events
from legion.store.board import landings, tickets
from tests.jobs.office import Office
from tests.store.making import add_ticket
from tests.support.repository import Repository

SIZES = (1, 5, 40)


class Yard:
    """A project whose changes of one, five and forty lines can be put into the queue."""

    def __init__(self, folder: Path) -> None:
        self.office = Office(folder / "office")
        self.context = self.office.context
        theirs = Repository(folder / "theirs")
        base = theirs.head()
        self.changes: dict[int, Change] = {}
        for size in SIZES:
            theirs.git("checkout", "--quiet", "--detach", base)
            commit = theirs.commit(f"{size} lines", {"a.txt": "x\n" * size})
            theirs.git("branch", f"lines-{size}", commit)
            self.changes[size] = Change(base=base, commit=commit)
        Hub.create(theirs.root / ".git", self.context.data.project(1) / "hub.git")

    @property
    def project(self) -> ProjectContext:
        return self.context.project(1)

    def enters(self, size: int, **spec: object) -> int:
        with self.context.store.write() as tx:
            ticket = add_ticket(tx, 1, **spec).id
            for step in (Start(self.changes[size].base), Propose(self.changes[size]), Prove()):
                tickets.move(tx, ticket, step)
        return ticket

    def lands(self, *numbers: int) -> None:
        with self.context.store.write() as tx:
            batch = tickets.get_many(tx, numbers)
            since = {ticket.id: ticket.moved_at for ticket in batch}
            members = dict.fromkeys(numbers, "c")
            opened = landings.open(tx, 1, base="b", commit="c", tree="t", tickets=members, since=since)
            landings.close(tx, opened.id, landed=True)
            for number in numbers:
                tickets.move(tx, number, Land("c"))

    def order(self) -> list[int]:
        with self.context.store.read() as tx:
            return [one.ticket for one in waiting_entries(self.context, tx, 1, tickets.live(tx, project=1))]

    def said(self, kind: EventKind) -> Sequence[dict[str, object]]:
        with self.context.store.read() as tx:
            return [dict(event.data) for event in events.after(tx, 0) if event.kind is kind]


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    made = Yard(tmp_path)
    yield made
    made.office.close()


def whole(yard: Yard, *numbers: int) -> tuple[Ticket, ...]:
    with yard.context.store.read() as tx:
        return tickets.get_many(tx, numbers)


def test_small_ones_go_first_until_newcomers_have_passed_a_big_one_by(yard: Yard):
    big, middle, small = (yard.enters(size) for size in (40, 5, 1))
    urgent = yard.enters(40, priority=1)
    assert yard.order() == [urgent, small, middle, big]
    yard.lands(urgent, small, middle)
    # Those came later than the big one, which makes one landing.
    for passed in range(1, PATIENCE):
        newcomer = yard.enters(1)
        assert yard.order() == [newcomer, big], f"passed by {passed} times"
        yard.lands(newcomer)
    last = yard.enters(1)
    assert yard.order() == [big, last]


def test_a_batch_is_told_in_its_order_where_others_wait(yard: Yard):
    queue = MergeQueue(yard.context, 1)
    big = yard.enters(40)
    queue.record_batch(yard.project, whole(yard, big), ())
    assert yard.said(EventKind.BATCH) == []
    small, aside = yard.enters(1), yard.enters(5)
    queue.record_batch(yard.project, whole(yard, small), {aside})
    (told,) = yard.said(EventKind.BATCH)
    assert told["tickets"] == [small]
    assert told["lines"] == [1]
    assert (told["waiting"], told["overdue"], told["rule"]) == (1, [], "small-first")


def test_what_was_learned_survives_a_restart_and_bows_to_the_settings(yard: Yard):
    ids = [yard.enters(1) for _ in range(6)]
    queue = MergeQueue(yard.context, 1)
    most = yard.project.config.landing.batch
    assert queue.room(yard.project) == most
    queue.learn(yard.project, 4, green=True)
    assert yard.said(EventKind.BATCH_SIZE) == [], "nothing new is learned from it"
    queue.learn(yard.project, 20, green=False)
    queue.learn(yard.project, 19, green=True)
    queue.learn(yard.project, 20, green=False)
    assert yard.said(EventKind.BATCH_SIZE) == [], "nor from a red one alone"
    # The next job of the project goes on counting.
    queue = MergeQueue(yard.context, 1)
    queue.learn(yard.project, 6, green=False)
    (said,) = yard.said(EventKind.BATCH_SIZE)
    words = "2 batches in a row were red, the last of 6"
    assert said == {"from": most, "to": 3, "why": words, "rule": "batch-learns"}
    again = MergeQueue(yard.context, 1)
    assert again.room(yard.project) == 3
    project = yard.project
    with yard.context.store.read() as tx:
        assert [one.id for one in again.first(project, tx, tickets.live(tx, project=1))] == ids[:3]
    narrow = replace(
        yard.project, config=replace(yard.project.config, landing=replace(yard.project.config.landing, batch=2))
    )
    assert again.room(narrow) == 2
    again.unlearn(yard.project, 2)
    assert again.room(yard.project) == 3, "what was flaky takes no room away"
    again.unlearn(yard.project, 8)
    assert MergeQueue(yard.context, 1).room(yard.project) == 8
    again.forget(yard.project)
    assert MergeQueue(yard.context, 1).room(yard.project) == most
    assert MergeQueue(yard.context, 2).room(yard.project) == most, "what one project learned is not another's"


def test_who_left_the_queue_is_in_no_batch(yard: Yard):
    gone, stays = yard.enters(1), yard.enters(40)
    with yard.context.store.write() as tx:
        tickets.move(tx, gone, Stop())
    assert yard.order() == [stays]


def test_a_change_that_lost_a_conflict_lands_before_smaller_ones_until_a_person_takes_it_up_again(yard: Yard):
    loser = yard.enters(40)
    with yard.context.store.write() as tx:
        lost = tickets.get(tx, loser)
        ground = StartPoint(base=yard.changes[40].base, tree="t")
        tickets.move(tx, loser, next_try_after_conflict(lost, "it conflicts", "", ground))
        for step in (Start(yard.changes[40].base), Propose(yard.changes[40]), Prove()):
            tickets.move(tx, loser, step)
    other = yard.enters(1)
    assert yard.order() == [loser, other]
    with yard.context.store.write() as tx:
        tickets.move(tx, loser, Stop())
        tickets.move(tx, loser, Retry())
        for step in (Start(yard.changes[40].base), Propose(yard.changes[40]), Prove()):
            tickets.move(tx, loser, step)
    assert yard.order() == [other, loser]
