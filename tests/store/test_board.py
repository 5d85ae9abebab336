"""The board leaves the database as records and comes back as it was."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from legion.domain.events import EventKind
from legion.domain.notes import NoteKind
from legion.domain.tickets.ticket import Stop
from legion.store import board_records, events
from legion.store.board import landings, notes, tickets
from legion.store.board_records import HEAD, IN_THE_HEAD, LEFT_OUT, NUMBERED, OF_TICKET, BoardCondition
from legion.store.database import schema
from legion.store.database.migrations import SHIPPED
from legion.store.database.transactions import Store, sqlite_url
from legion.store.work import rewinds, runs
from tests.store.making import add_project, add_ticket, migrate_with_data


@pytest.fixture
def full(database_url: str) -> Store:
    """A database with something in every table."""
    store = Store(database_url)
    migrate_with_data(store, database_url)
    return store


def files_of(store: Store, after: int | None = None) -> board_records.Files:
    with store.read() as tx:
        return board_records.files(tx, 1, after)


def plain(files: board_records.Files) -> dict[str, object]:
    """Without the moment at which it was written."""
    read = {name: json.loads(content) for name, content in files.items()}
    read[HEAD].pop("at")
    return read


def restored(folder: Path, files: board_records.Files) -> Store:
    store = Store(sqlite_url(folder / "new.db"))
    board_records.restore(store, [files])
    return store


def test_every_table_is_copied_or_left_out_on_purpose():
    copied = {"tickets", *(one.name for one in OF_TICKET), *NUMBERED, *IN_THE_HEAD}
    assert not copied & LEFT_OUT.keys()
    assert copied | LEFT_OUT.keys() == schema.metadata.tables.keys(), (
        "say in store/board_records.py what becomes of a new table"
    )


def test_a_full_board_comes_back_as_it_was(full: Store, tmp_path: Path):
    files = files_of(full)
    new = restored(tmp_path, files)
    assert plain(files_of(new)) == plain(files)
    with full.read() as old_tx, new.read() as tx:
        assert tickets.get_many(tx, (1, 2, 3)) == tickets.get_many(old_tx, (1, 2, 3))
        assert runs.of_ticket(tx, 1) == runs.of_ticket(old_tx, 1)
        assert rewinds.by_conversation(tx, "new-talk") == rewinds.by_conversation(old_tx, "new-talk")
        assert [event.kind for event in events.of_ticket(tx, 1)] == [EventKind.TICKET_CREATED]
    with new.write() as tx:
        assert add_ticket(tx).id == 4, "numbers go on"
    for store in (full, new):
        store.close()


def test_any_database_can_be_filled_with_it(tmp_path: Path, database_url: str):
    old = Store(sqlite_url(tmp_path / "old.db"))
    old.migrate()
    with old.write() as tx:
        add_project(tx)
        first = add_ticket(tx, files=("*.py",))
        add_ticket(tx, after=(first.id,))
        runs.start(tx, first.id, 1)
    files = files_of(old)
    new = Store(database_url)
    board_records.restore(new, [files])
    assert plain(files_of(new)) == plain(files)
    for store in (old, new):
        store.close()


def test_what_stays_behind_holds_what_nobody_else_may_read(full: Store):
    written = b"".join(files_of(full).values())
    assert b"00ff" not in written, "tokens"
    assert b"Mend the till" in written
    receipts = [json.loads(content) for name, content in files_of(full).items() if name.startswith("receipts/")]
    assert {(one["tail"], one["output"]) for one in receipts} == {("", "")}, "what checks printed"
    full.close()


def columns_of(number: int, folder: Path) -> dict[str, set[str]]:
    """What the tables of that schema hold."""
    file = folder / "old.db"
    store = Store(sqlite_url(file))
    store.migrate([step for step in SHIPPED if step.number <= number])
    store.close()
    with contextlib.closing(sqlite3.connect(file)) as old:
        names = [row[0] for row in old.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: {row[1] for row in old.execute(f"PRAGMA table_info({name})")} for name in names}


SINCE_35 = {"ticket_details": "wishes", "plans": "goals"}
"""Tables by their present names, as releases before that step named them."""


def older(record: dict[str, Any], name: str, known: dict[str, set[str]]) -> dict[str, Any]:
    """The record of a file as a release with these tables would have written it."""
    if name.startswith("tickets/"):
        named = {SINCE_35.get(table, table): rows for table, rows in record.items()}
        rows = {table: rows for table, rows in named.items() if table != "ticket" and table in known}
        return {
            "ticket": older(record["ticket"], "tickets", known),
            **{table: [older(row, table, known) for row in some] for table, some in rows.items()},
        }
    table = name.partition("/")[0]
    return {key: value for key, value in record.items() if key in known[table]}


def test_a_board_of_an_older_schema_is_migrated_like_a_database(full: Store, tmp_path: Path):
    known = columns_of(7, tmp_path)
    read = {name: json.loads(content) for name, content in files_of(full).items()}
    head = read.pop(HEAD)
    del head["crews"]
    there = {name: one for name, one in read.items() if name.partition("/")[0] in known}
    told = {name: older(one, name, known) for name, one in there.items()}
    told[HEAD] = {**head, "schema": 7, "project": older(head["project"], "projects", known)}
    new = restored(tmp_path, {name: json.dumps(one).encode() for name, one in told.items()})
    assert json.loads(files_of(new)[HEAD])["schema"] == SHIPPED[-1].number
    with new.read() as tx:
        assert tickets.get(tx, 3).spec.after == (1, 2)
    for store in (full, new):
        store.close()


def test_only_what_changed_is_written_again(migrated_url: str):
    store = Store(migrated_url)
    with store.write() as tx:
        add_project(tx)
        for _ in range(250):
            add_ticket(tx)
        newest = events.last(tx)
    assert len(files_of(store)) == 251
    with store.write() as tx:
        tickets.move(tx, 123, Stop())
    assert files_of(store, newest).keys() == {HEAD, "tickets/1/123.json"}
    store.close()


def test_how_a_database_is_is_seen_without_changing_it(tmp_path: Path):
    file = tmp_path / "legion.db"
    url = sqlite_url(file)
    assert board_records.condition(url) is BoardCondition.LOST
    assert not file.exists()
    file.write_bytes(b"no database at all" * 500)
    assert board_records.condition(url) is BoardCondition.DAMAGED
    file.unlink()
    store = Store(url)
    store.migrate()
    assert board_records.condition(url) is BoardCondition.EMPTY
    with store.write() as tx:
        add_project(tx)
    assert board_records.condition(url) is BoardCondition.SOUND
    store.close()
    file.unlink()
    Store(url).close()
    file.touch()
    assert board_records.condition(url) is BoardCondition.EMPTY, "not even tables"


def test_only_projects_where_something_may_have_happened_are_astir(migrated_url: str):
    store = Store(migrated_url)
    with store.write() as tx:
        for name in ("quiet", "told", "landing"):
            add_project(tx, name)
        before = events.last(tx)
        add_ticket(tx, 2)
        landings.open(tx, 3, base="a", commit="b", tree="c", tickets={}, before={})
    with store.read() as tx:
        assert events.concerned(tx, before) == {2}
        assert board_records.astir(tx, before) == {2, 3}, "of an intent no event tells"
        assert board_records.astir(tx, 0) == {1, 2, 3}
        (ticket,) = tickets.live(tx)
    with store.write() as tx:
        runs.start(tx, ticket.id, 1)
        newest = events.last(tx)
    with store.read() as tx:
        assert board_records.astir(tx, newest) == {2, 3}, "what runs at work do is told later"
    store.close()


MEMORY = {"id": 2, "project": 1, "text": "The till rings.", "files": ["till/**"], "labels": [], "ticket": None}
MEMORY |= {"created_at": 1.0, "forgotten_at": None, "lesson": False, "accepted_at": None, "accepted_by": ""}
"""As a release before notes were one table wrote it."""


@pytest.mark.parametrize("noted", [0, 7])
def test_a_memory_of_an_older_board_has_no_number_of_a_note_that_is_there(full: Store, tmp_path: Path, noted: int):
    """`noted`: the last note that was given out, in a board of another project that was written since."""
    known = columns_of(34, tmp_path)
    head = json.loads(files_of(full)[HEAD])
    project = older(head["project"], "projects", known)
    counters = {**head["counters"], "note": noted, "memory": 4}
    old = {
        HEAD: {**head, "crews": [], "schema": 34, "project": project, "counters": counters},
        "memories/0/2.json": MEMORY,
    }
    there = {**head["project"], "id": 2, "name": "app", "common_dir": "/home/ada/app/.git"}
    later = {HEAD: {**head, "crews": [], "trusted": [], "project": there, "counters": {**counters, "note": noted + 4}}}
    new = Store(sqlite_url(tmp_path / "both.db"))
    board_records.restore(
        new, [{name: json.dumps(one).encode() for name, one in each.items()} for each in (old, later)]
    )
    with new.write() as tx:
        (kept,) = notes.for_agents(tx, 1)
        assert (kept.text, kept.files, kept.author) == ("The till rings.", ("till/**",), "root")
        assert kept.id > noted
        assert notes.add(tx, 1, NoteKind.DECISION, "Tabs.").id > max(kept.id, noted + 4)
    for store in (full, new):
        store.close()
