"""Tables that became one: what was in them keeps its meaning."""

from __future__ import annotations

from legion.domain.notes import NoteKind
from legion.store.board import notes
from legion.store.database.transactions import Store
from legion.store.work import idempotency
from tests.store.making import migrate_with_data


def test_notes_keep_their_numbers_and_no_memory_gets_a_number_that_meant_another(database_url):
    store = Store(database_url)
    migrate_with_data(store, database_url, 34)
    store.migrate()
    with store.write() as tx:
        assert [one.id for one in notes.for_leaders(tx, 1, closed=True)] == [1]
        memory, lesson = notes.for_agents(tx, 1)
        assert (memory.id, lesson.id) == (3, 4), "1 and 2 were its numbers, and 1 is that of a promise"
        assert notes.users(tx, lesson.id) == {2}
        assert notes.add(tx, 1, NoteKind.MEMORY, "x").id == 5
    store.close()


def test_a_repeated_request_is_known_after_its_tables_became_one(database_url):
    store = Store(database_url)
    migrate_with_data(store, database_url, 34)
    store.migrate()
    with store.write() as tx:
        assert idempotency.recall(tx, 1, "again") == {"ids": [3]}
        assert idempotency.starting_with(tx, "aga") == [(1, "again")]
        assert idempotency.recall(tx, "again", "again") is None
        assert not idempotency.is_new_delivery(tx, "d-1") or tx.now - 2004.0 > 604_800
    store.close()
