"""The merge queue's order and room are found again in what is stored: landings, events, and the changes themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from legion.domain.events import Kind
from legion.domain.queue import PATIENCE
from legion.domain.tickets import Change, Land, Propose, Prove, Start, Stop, Ticket
from legion.git.hub import Hub
from legion.jobs.queue import Queue, standing
from legion.jobs.world import Workshop
from legion.store import events, landings, tickets
from tests.jobs.office import Office
from tests.store.making import add_ticket
from tests.support.repository import Repository

SIZES = (1, 5, 40)


class Yard:
    """A project whose changes of one, five and forty lines can be put into the queue."""

    def __init__(self, folder: Path) -> None:
        self.office = Office(folder / "office")
        self.world = self.office.world
        theirs = Repository(folder / "theirs")
        base = theirs.head()
        self.changes: dict[int, Change] = {}
        for size in SIZES:
            theirs.git("checkout", "--quiet", "--detach", base)
            commit = theirs.commit(f"{size} lines", {"a.txt": "x\n" * size})
            theirs.git("branch", f"lines-{size}", commit)
            self.changes[size] = Change(base=base, commit=commit)
        Hub.create(theirs.root / ".git", self.world.data.project(1) / "hub.git")

    @property
    def shop(self) -> Workshop:
        return self.world.workshop(1)

    def enters(self, size: int, **wish: object) -> int:
        with self.world.store.write() as tx:
            ticket = add_ticket(tx, 1, **wish).id
            for step in (Start(self.changes[size].base), Propose(self.changes[size]), Prove()):
                tickets.move(tx, ticket, step)
        return ticket

    def lands(self, *numbers: int) -> None:
        with self.world.store.write() as tx:
            batch = tickets.get_many(tx, numbers)
            since = {ticket.id: ticket.moved_at for ticket in batch}
            members = dict.fromkeys(numbers, "c")
            opened = landings.open(tx, 1, base="b", commit="c", tree="t", tickets=members, since=since)
            landings.close(tx, opened.id, landed=True)
            for number in numbers:
                tickets.move(tx, number, Land("c"))

    def order(self) -> list[int]:
        with self.world.store.read() as tx:
            return [one.ticket for one in standing(self.world, tx, 1, tickets.live(tx, project=1))]

    def said(self, kind: Kind) -> Sequence[dict[str, object]]:
        with self.world.store.read() as tx:
            return [dict(event.data) for event in events.after(tx, 0) if event.kind is kind]


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    made = Yard(tmp_path)
    yield made
    made.office.close()


def whole(yard: Yard, *numbers: int) -> tuple[Ticket, ...]:
    with yard.world.store.read() as tx:
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
    queue = Queue(yard.world, 1)
    big = yard.enters(40)
    queue.tell(yard.shop, whole(yard, big), ())
    assert yard.said(Kind.BATCH) == []
    small, aside = yard.enters(1), yard.enters(5)
    queue.tell(yard.shop, whole(yard, small), {aside})
    (told,) = yard.said(Kind.BATCH)
    assert told["tickets"] == [small]
    assert told["lines"] == [1]
    assert (told["waiting"], told["overdue"], told["rule"]) == (1, [], "small-first")


def test_what_was_learned_survives_a_restart_and_bows_to_the_settings(yard: Yard):
    ids = [yard.enters(1) for _ in range(6)]
    queue = Queue(yard.world, 1)
    most = yard.shop.config.landing.batch
    assert queue.room(yard.shop) == most
    queue.learn(yard.shop, 4, green=True)
    assert yard.said(Kind.BATCH_SIZE) == [], "nothing new is learned from it"
    queue.learn(yard.shop, 20, green=False)
    queue.learn(yard.shop, 19, green=True)
    queue.learn(yard.shop, 20, green=False)
    assert yard.said(Kind.BATCH_SIZE) == [], "nor from a red one alone"
    # The next job of the project goes on counting.
    queue = Queue(yard.world, 1)
    queue.learn(yard.shop, 6, green=False)
    (said,) = yard.said(Kind.BATCH_SIZE)
    words = "2 batches in a row were red, the last of 6"
    assert said == {"from": most, "to": 3, "why": words, "rule": "batch-learns"}
    again = Queue(yard.world, 1)
    assert again.room(yard.shop) == 3
    with yard.world.store.read() as tx:
        assert [one.id for one in again.first(yard.shop, tx, tickets.live(tx, project=1))] == ids[:3]
    narrow = replace(yard.shop, config=replace(yard.shop.config, landing=replace(yard.shop.config.landing, batch=2)))
    assert again.room(narrow) == 2
    again.unlearn(yard.shop, 2)
    assert again.room(yard.shop) == 3, "what was flaky takes no room away"
    again.unlearn(yard.shop, 8)
    assert Queue(yard.world, 1).room(yard.shop) == 8
    again.forget(yard.shop)
    assert Queue(yard.world, 1).room(yard.shop) == most
    assert Queue(yard.world, 2).room(yard.shop) == most, "what one project learned is not another's"


def test_who_left_the_queue_is_in_no_batch(yard: Yard):
    gone, stays = yard.enters(1), yard.enters(40)
    with yard.world.store.write() as tx:
        tickets.move(tx, gone, Stop())
    assert yard.order() == [stays]
