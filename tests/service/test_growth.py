"""What is read often costs the same however many tickets have ended, in steps of the database and in bytes."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, Engine, event, text

from legion.service.plain_operations import PERSON
from legion.store.database.transactions import Store
from legion.wire.operations import OPERATIONS
from tests.store.making import add_many_landed
from tests.support.board import Board
from tests.support.migrated import migrated_database

FEW, MANY = 1_500, 10_000
"""Both above the constants by which answers are cut."""
OFTEN = (
    "status", "graph", "projects", "numbers", "merge_queue", "inbox", "history", "stretch", "ticket", "plans", "agents",
    "machines", "notes", "preview_collect",
)  # fmt: skip
"""The operations that a screen, a status line or a script asks again and again."""
ARGUMENTS: Mapping[str, Any] = {
    **dict.fromkeys(("ticket", "run", "hours")),
    **dict.fromkeys(("all", "everything"), False),
    **dict.fromkeys(("after", "kinds", "since", "until"), ""),
    "id": 5,
    "last": 20,
}


def ask(board: Board, name: str) -> object:
    return board.callers.perform(PERSON, OPERATIONS[name], {"cwd": board.cwd, **ARGUMENTS})


@contextmanager
def steps_of_sqlite() -> Iterator[Callable[[Callable[[], object]], int]]:
    """Gives a function that counts the instructions of SQLite's machine: the same on every computer, however busy."""
    connections: list[sqlite3.Connection] = []

    def remember(connection: sqlite3.Connection, _record: object) -> None:
        connections.append(connection)

    def watch(handler: Callable[[], int] | None) -> None:
        for one in connections:
            with suppress(sqlite3.ProgrammingError):  # one that was closed
                one.set_progress_handler(handler, 1)

    def steps(work: Callable[[], object]) -> int:
        count = 0

        def tick() -> int:
            nonlocal count
            count += 1
            return 0

        watch(tick)
        work()
        watch(None)
        return count

    event.listen(Engine, "connect", remember)
    try:
        yield steps
    finally:
        event.remove(Engine, "connect", remember)


@contextmanager
def rows_of_postgres() -> Iterator[Callable[[Callable[[], object]], int]]:
    """Gives a function that counts the rows which Postgres reads for the statements of some work."""
    seen: list[tuple[str, object]] = []
    engines: set[Engine] = set()

    def remember(connection: Connection, _cursor: object, said: str, values: object, *_more: object) -> None:
        if said.startswith("SELECT"):
            seen.append((said, values))
            engines.add(connection.engine)

    def rows(work: Callable[[], object]) -> int:
        seen.clear()
        event.listen(Engine, "before_cursor_execute", remember)
        try:
            work()
        finally:
            event.remove(Engine, "before_cursor_execute", remember)
        with next(iter(engines)).connect() as connection:
            plans = [
                connection.exec_driver_sql(f"EXPLAIN (ANALYZE, FORMAT JSON) {said}", values).scalar_one()  # type: ignore[arg-type]
                for said, values in seen
            ]
        return sum(_read(plan[0]["Plan"]) for plan in plans)

    yield rows


def _read(node: Mapping[str, Any]) -> int:
    below = sum(_read(one) for one in node.get("Plans", ()))
    if "Relation Name" not in node:
        return below
    passed = node["Actual Rows"] + node.get("Rows Removed by Filter", 0) + node.get("Rows Removed by Index Recheck", 0)
    return int(passed * node["Actual Loops"]) + below


def costs(board: Board, count: Callable[[Callable[[], object]], int]) -> dict[str, tuple[int, int]]:
    found = {}
    for name in OFTEN:
        answer = ask(board, name)  # opens connections, fills caches
        size = len(json.dumps(asdict(answer), default=str))  # type: ignore[call-overload]
        found[name] = (count(lambda name=name: ask(board, name)), size)  # type: ignore[misc]
    return found


def grown(few: Mapping[str, tuple[int, int]], many: Mapping[str, tuple[int, int]]) -> dict[str, object]:
    """Numbers of tickets become longer, and times are printed with more or fewer digits: a twentieth is allowed."""
    return {
        name: {"few": few[name], "many": many[name]}
        for name in few
        if any(later > 1.05 * first + 40 for first, later in zip(few[name], many[name], strict=True))
    }


@pytest.mark.slow
@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_what_is_asked_often_costs_the_same_after_many_tickets_have_ended(database: str, tmp_path: Path):
    found = []
    for count in (FEW, MANY):
        folder = tmp_path / str(count)
        folder.mkdir()
        with measured(database, folder) as (board, counting):
            board.put(1, "a live one")
            add_many_landed(board.store, 1, count)
            if database == "postgres":
                with board.store.write() as tx:
                    tx.execute(text("ANALYZE"))  # as it does by itself in time
            found.append(costs(board, counting))
    few, many = found
    assert many["status"][0] > 10
    assert grown(few, many) == {}


@contextmanager
def measured(database: str, folder: Path) -> Iterator[tuple[Board, Callable[[Callable[[], object]], int]]]:
    if database == "sqlite":
        with steps_of_sqlite() as counting:
            board = Board(folder)
            yield board, counting
            board.close()
        return
    with migrated_database() as url, rows_of_postgres() as counting:
        store = Store(url)
        board = Board(folder, store=store)
        yield board, counting
        board.close()
