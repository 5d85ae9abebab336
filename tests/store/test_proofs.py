"""Receipts, landings and remembered requests."""

from __future__ import annotations

import pytest
from sqlalchemy.exc import IntegrityError

from legion.domain.checks import CheckResult, Receipt
from legion.domain.errors import StateConflict
from legion.domain.events import EventKind
from legion.domain.landing.queue import LandingIntent
from legion.store import events
from legion.store.board import landings, receipts
from legion.store.database.transactions import Transaction
from legion.store.work import idempotency
from tests.store.making import add_project, add_ticket


def add_receipt(tx: Transaction, **different) -> Receipt:
    values = {
        "project": 1,
        "ticket": None,
        "name": "test",
        "command": "make test",
        "commit": "c1",
        "tree": "t1",
        "verdict": CheckResult.GREEN,
        "exit_code": 0,
        "duration": 1.25,
        "tail": "ok",
        "output": "runs/1/output",
        "digest": "d",
    }
    return receipts.add(tx, **(values | different))


def test_a_receipt_comes_back_as_it_was_made_and_is_told(store, project):
    with store.write() as tx:
        add_ticket(tx, project.id)
        made = add_receipt(tx, ticket=1, verdict=CheckResult.RED, exit_code=2)
    with store.read() as tx:
        assert receipts.of_ticket(tx, 1) == (made,)
        last = events.after(tx, 0)[-1]
    assert (made.id, made.made_at, made.verdict) == (1, last.at, CheckResult.RED)
    assert (last.kind, last.project, last.ticket) == (EventKind.RECEIPT, project.id, 1)
    assert last.data == {
        "receipt": 1,
        "name": "test",
        "verdict": "red",
        "exit_code": 2,
        "duration": 1.25,
        "commit": "c1",
    }


def test_receipts_are_found_by_tree_commit_ticket_and_command(store, project):
    with store.write() as tx:
        other = add_project(tx, "other")
        add_ticket(tx, project.id)
        first = add_receipt(tx)
        proof = add_receipt(tx, ticket=1, command="make proof")
        again = add_receipt(tx, commit="c2", verdict=CheckResult.RED)
        add_receipt(tx, tree="t2", commit="c3", exit_code=None, verdict=CheckResult.BROKEN)
        foreign = add_receipt(tx, project=other.id)
    with store.read() as tx:
        assert receipts.for_tree(tx, project.id, "t1") == (first, proof, again)
        assert receipts.for_tree(tx, other.id, "t1") == (foreign,)
        assert receipts.for_commit(tx, project.id, "c1") == (first, proof)
        assert receipts.of_ticket(tx, 1) == (proof,)
        assert receipts.get_many(tx, (again.id, first.id, 99)) == (first, again)


def test_output_that_is_no_text_does_not_stop_a_receipt(store, project):
    with store.write() as tx:
        made = add_receipt(tx, tail="\x00\x1b[31m \udc80")
    with store.read() as tx:
        assert receipts.for_tree(tx, project.id, "t1") == (made,)
    assert made.tail == "\N{REPLACEMENT CHARACTER}\x1b[31m \N{REPLACEMENT CHARACTER}"


def test_an_open_landing_is_seen_until_it_is_closed(store, project):
    with store.write() as tx:
        first = landings.open(tx, project.id, base="b", commit="c1", tree="t1", tickets={2: "m2", 1: "c1"})
        add_project(tx, "other")
    assert first == LandingIntent(
        id=1, project=project.id, base="b", commit="c1", tree="t1", tickets={2: "m2", 1: "c1"}, opened_at=tx.now
    )
    with store.read() as tx:
        assert landings.open_ones(tx, project.id) == (first,)
        assert landings.open_ones(tx, 2) == ()
    with store.write() as tx:
        closed = landings.close(tx, first.id, landed=True)
        second = landings.open(tx, project.id, base="c1", commit="c2", tree="t2", tickets={})
        given_up = landings.close(tx, second.id, landed=False)
    assert (closed.landed, closed.closed_at, given_up.landed) == (True, tx.now, False)
    with store.read() as tx:
        assert landings.open_ones(tx, project.id) == ()
        assert landings.history(tx, project.id, 9) == (given_up, closed)
        assert landings.history(tx, project.id, 1) == (given_up,)


def test_a_landing_is_closed_once(store, project):
    with store.write() as tx:
        landings.open(tx, project.id, base="b", commit="c", tree="t", tickets={})
        landings.close(tx, 1, landed=True)
    for unknown in (1, 2):
        with pytest.raises(StateConflict, match="is not open"), store.write() as tx:
            landings.close(tx, unknown, landed=False)


def test_a_repeated_request_finds_its_first_answer(store, project):
    with store.write() as tx:
        other = add_project(tx, "other")
        assert idempotency.recall(tx, project.id, "r") is None
        idempotency.remember(tx, project.id, "r", {"ids": [1, 2], "keys": {"a": 1}})
    with store.read() as tx:
        assert idempotency.recall(tx, project.id, "r") == {"ids": [1, 2], "keys": {"a": 1}}
        assert idempotency.recall(tx, project.id, "R") is None
        assert idempotency.recall(tx, other.id, "r") is None
    with pytest.raises(IntegrityError), store.write() as tx:
        idempotency.remember(tx, project.id, "r", {})


def test_events_are_read_by_number_project_and_ticket(store, project):
    with store.write() as tx:
        other = add_project(tx, "other")
        add_ticket(tx, project.id)
        add_ticket(tx, other.id)
        tx.record(EventKind.WARNING, data={"why": "disk"})
    with store.read() as tx:
        everything = events.after(tx, 0)
        assert [event.n for event in everything] == [1, 2, 3, 4, 5]
        assert events.last(tx) == 5
        assert events.after(tx, 5) == ()
        assert events.after(tx, 2, limit=2) == everything[2:4]
        assert [event.n for event in events.after(tx, 0, project=project.id)] == [1, 3]
        assert [event.n for event in events.after(tx, 0, ticket=2)] == [4]
        assert events.of_ticket(tx, 1) == (everything[2],)
    assert (everything[4].project, everything[4].ticket, everything[4].data) == (None, None, {"why": "disk"})


def test_the_latest_events_of_a_ticket_come_oldest_first(store, project):
    with store.write() as tx:
        add_ticket(tx, project.id)
        for number in range(5):
            tx.record(EventKind.WARNING, ticket=1, data={"number": number})
    with store.read() as tx:
        assert [event.data["number"] for event in events.of_ticket(tx, 1, limit=3)] == [2, 3, 4]
