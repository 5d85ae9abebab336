"""Statements that are compiled once give what SQLAlchemy gives, and never an outdated record."""

from __future__ import annotations

import gc
import weakref

from sqlalchemy import select, update

from legion.domain.tickets.spec import TicketSpec
from legion.domain.tickets.ticket import Start
from legion.store.board import tickets
from legion.store.database import schema
from legion.store.database.fixed_query import FixedQuery
from legion.store.database.transactions import Store
from tests.store.making import add_project


def test_a_record_is_made_again_only_where_its_row_changed(store: Store):
    with store.write() as tx:
        home = add_project(tx)
        first, second = (
            tickets.create(tx, home.id, TicketSpec(title=f"t{n}", text="", labels=("a",))) for n in range(2)
        )
    with store.read() as tx:
        before = tickets.live(tx)
        assert [ticket.id for ticket in before] == [first.id, second.id]
    with store.write() as tx:
        moved = tickets.move(tx, first.id, Start("0" * 40))
        # No version counts this one.
        tickets.note(tx, second.id, "a note")
        after = tickets.live(tx, home.id)
    assert after[0].state is moved.state
    assert after[1].reason == "a note"
    with store.read() as tx:
        again = tickets.live(tx)
        assert [ticket.reason for ticket in again] == ["", "a note"]
        assert tickets.live(tx)[0] is again[0]
        assert tickets.live(tx, home.id + 1) == ()


def test_of_a_long_list_only_the_last_answer_is_kept(store: Store):
    whole = FixedQuery(
        select(schema.tickets.c.id, schema.tickets.c.title).order_by(schema.tickets.c.id),
        lambda row: _Line(row.title),
        remember=None,
    )
    with store.write() as tx:
        home = add_project(tx)
        made = [tickets.create(tx, home.id, TicketSpec(title=f"t{n}", text="")) for n in range(3)]
        first = whole.all(tx)
        assert all(mine is again for mine, again in zip(first, whole.all(tx), strict=True))
        lost = weakref.ref(first[0])
        del first
        tx.execute(update(schema.tickets).where(schema.tickets.c.id == made[0].id).values(title="other"))
        assert [line.title for line in whole.all(tx)] == ["other", "t1", "t2"]
    gc.collect()
    assert lost() is None


def test_the_last_answer_is_kept_for_each_question(store: Store):
    with store.write() as tx:
        homes = [add_project(tx, name) for name in ("one", "two")]
        for home in homes:
            tickets.create(tx, home.id, TicketSpec(title=f"of {home.name}", text=""))
        before = [tickets.live(tx, home.id)[0] for home in homes]
        assert [ticket.spec.title for ticket in before] == ["of one", "of two"]
        assert all(tickets.live(tx, home.id)[0] is seen for home, seen in zip(homes, before, strict=True))


class _Line:
    def __init__(self, title: str) -> None:
        self.title = title


def test_the_columns_are_those_of_the_table(store: Store):
    with store.write() as tx:
        home = add_project(tx)
        made = tickets.create(tx, home.id, TicketSpec(title="t", text="long", files=("a", "b"), budget=1.5, tools=()))
        row = tx.execute(select(schema.tickets).where(schema.tickets.c.id == made.id)).one()
        assert tickets.live(tx) == (tickets._ticket(row),)
        assert tickets.get(tx, made.id) == tickets.get_many(tx, [made.id])[0] == made
