"""The board as plain records outside the database, and a database restored from them.

A record is a JSON file: one per ticket with its rows and events, one per question, receipt, landing and agent, and a
head that names their moment. Rows are written by column name, so new columns of a migration are included without code;
a board of an older schema is loaded into tables of that schema and then migrated like any other.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from sqlalchemy import Row, Select, Table, bindparam, column, insert, select, table, text, update
from sqlalchemy.exc import DBAPIError

from legion.domain.events import EventKind
from legion.domain.text import to_json
from legion.store import events
from legion.store.board import past_tickets
from legion.store.database import schema
from legion.store.database.errors import StoreBroken
from legion.store.database.fixed_query import FixedQuery, QueryByIds, Stored
from legion.store.database.migrations import SHIPPED
from legion.store.database.transactions import ReadTransaction, Store, Transaction, database_file

FORMAT = 1
"""The layout of the files. The schema has its own version number."""
HEAD = "board.json"
SCHEMA = SHIPPED[-1].number

NUMBERED = {"questions": "id", "receipts": "id", "landings": "id", "agents": "number", "plans": "id"}
NUMBERED |= {"notes": "id", "routines": "id"}
"""Tables with a file per row, and the column that names it."""
IN_THE_HEAD = frozenset({"projects", "trusted", "counters", "crews"})
LEFT_OUT = {
    "usage": "what was spent, except what the gateway's ledger still has",
    "usage_reports": "",
    "spending_sums": "",
    "read_positions": "",
    "limits": "",
    "mail": "mail of agents",
    "requests": "",
    "tokens": "the tokens of agents at work",
    "devices": "browsers that were let in to the page",
    "claims": "",
    "claimed_tickets": "which agent had claimed which ticket",
    "plan_rounds": "earlier rounds of plans",
    "plan_documents": "specifications of plans that have not landed",
    "epics": "budgets and gates of epics",
    "note_uses": "which briefings carried which lessons",
    "forges": "connections to forges and their tokens",
    "machines": "machines that joined: invite them again",
    "machine_invitations": "",
    "machine_runs": "",
    "machine_commands": "",
    "head_leases": "",
    "observations": "",
    "interventions": "",
}
"""What no board contains, with the note for a person; empty where no one needs it."""
LOST = (
    "projects that were removed",
    "events that belong to no ticket",
    *(words for words in LEFT_OUT.values() if words),
)
_HEADS_ONLY = {"receipts": {"tail": "", "output": ""}}
"""Long texts that are not copied, and their replacement."""
OF_TICKET = tuple(
    one for name, one in schema.metadata.tables.items() if "ticket" in one.c and name not in NUMBERED.keys() | LEFT_OUT
)
"""Tables whose rows are in the file of their ticket: its texts, edges, runs and events."""
_AT_ONCE = 500
_SHELF = 100
"""Files per folder, so that a change rewrites only small trees."""

Files = dict[str, bytes]


@dataclass(frozen=True, kw_only=True)
class BoardHead:
    """The project and the moment of a board."""

    format: int
    schema: int
    event: int
    at: float
    """When it was true."""
    project: int
    name: str
    created_at: float

    @classmethod
    def read(cls, content: bytes) -> BoardHead:
        """Raises ValueError where it is no head."""
        told = json.loads(content)
        try:
            project = told["project"]
            return cls(
                format=int(told["format"]),
                schema=int(told["schema"]),
                event=int(told["event"]),
                at=float(told["at"]),
                project=int(project["id"]),
                name=str(project["name"]),
                created_at=float(project["created_at"]),
            )
        except (KeyError, TypeError) as wrong:
            raise ValueError(f"its {HEAD} lacks {wrong}") from wrong


def files(tx: ReadTransaction, project: int, after: int | None = None) -> Files:
    """The project's board as it is now: all of it, or what may have changed since event `after`."""
    found = {HEAD: _head(tx, project)}
    changed = None if after is None else _changed(tx, project, after)
    found |= _tickets(tx, project, None if changed is None else changed["tickets"])
    for name, key in NUMBERED.items():
        found |= _numbered(tx, project, schema.metadata.tables[name], key, None if changed is None else changed[name])
    return found


def astir(tx: ReadTransaction, after: int) -> frozenset[int]:
    """The projects whose boards may have changed since event `after`: some changes have no event."""
    silent = {project for query in _SILENTLY_CHANGED for project in query.all(tx)}
    return frozenset(silent | {project for project in events.concerned(tx, after) if project is not None})


def path(kind: str, number: int) -> str:
    return f"{kind}/{number // _SHELF}/{number}.json"


def _head(tx: ReadTransaction, project: int) -> bytes:
    # Not the numbers of ended tickets, which are counted again.
    known = tx.execute(select(schema.counters).where(schema.counters.c.name.not_like(f"{past_tickets.PREFIX}%")))
    counters = {row.name: row.value for row in known}
    row = tx.execute(select(schema.projects).where(schema.projects.c.id == project)).one()
    trusted = tx.execute(select(schema.trusted).where(schema.trusted.c.project == project))
    return _json(
        {
            "format": FORMAT,
            "schema": SCHEMA,
            "event": counters["event"],
            "at": tx.now,
            "counters": counters,
            "project": _record(row),
            "trusted": sorted((_record(one) for one in trusted), key=lambda one: str(one["hash"])),
            "crews": [_record(one) for one in tx.execute(select(schema.crews).order_by(schema.crews.c.digest))],
        }
    )


def _changed(tx: ReadTransaction, project: int, after: int) -> dict[str, set[int]]:
    """Numbers by table. Agents, plans, notes and routines are few, so all of them are included."""
    found: dict[str, set[int]] = {"tickets": set(), "questions": set(), "receipts": set(), "landings": set()}
    for change in _CHANGES.all(tx, mine=project, seen=after):
        for table_name, number in change:
            found[table_name].add(number)
    found["tickets"] |= set(_AT_WORK.all(tx, mine=project))
    found["landings"] |= set(_LATE_LANDINGS.all(tx, mine=project))
    return {**found, **{name: set(query.all(tx, mine=project)) for name, query in _FEW.items()}}


def _tickets(tx: ReadTransaction, project: int, wanted: set[int] | None) -> Files:
    if wanted is None:
        mine = schema.tickets.c
        wanted = set(tx.execute(select(mine.id).where(mine.project == project)).scalars())
    found: Files = {}
    for some in _pieces(wanted):
        parts = {row.owner: [f'"ticket": {row.text}'] for row in _TICKETS.all(tx, some)}
        for name, query in _PARTS_OF_TICKETS.items():
            lines: dict[int, list[str]] = {}
            for row in query.all(tx, some):
                lines.setdefault(row.owner, []).append(row.text)
            for number, texts in lines.items():
                parts[number].append(f'"{name}": [\n{_NEXT_LINE.join(texts)}\n]')
        found |= {
            path("tickets", number): f"{{{_NEXT_LINE.join(texts)}}}\n".encode() for number, texts in parts.items()
        }
    return found


def _numbered(tx: ReadTransaction, project: int, one: Table, key: str, wanted: set[int] | None) -> Files:
    if wanted is None:
        wanted = set(tx.execute(select(one.c[key]).where(one.c.project == project)).scalars())
    query = _NUMBERED_ROWS[one.name]
    return {
        path(one.name, row.owner): f"{row.text}\n".encode() for some in _pieces(wanted) for row in query.all(tx, some)
    }


@dataclass(frozen=True)
class _RowText:
    """A row as JSON in one line, and the number of the ticket or of the row that it is filed under."""

    owner: int
    text: str


def _row_texts(one: Table, key: str, *, remember: int = 100) -> QueryByIds[_RowText]:
    """Rows by their `key`, in the order of the primary key. A row that did not change is not converted again."""
    less = _HEADS_ONLY.get(one.name, {})

    def text_of(row: Stored) -> _RowText:
        return _RowText(getattr(row, key), to_json({**_plain(vars(row)), **less}, sort_keys=True))

    return QueryByIds(select(one).order_by(*one.primary_key), one.c[key], text_of, remember=remember)


def _numbers(query: Select[Any]) -> FixedQuery[int]:
    """The only column of a query."""
    return FixedQuery(query, lambda row: next(iter(vars(row).values())), remember=_AT_ONCE)


def _changes_of(row: Stored) -> tuple[tuple[str, int], ...]:
    """What an event says about changed rows: a table and a number each."""
    found = [("tickets", row.ticket)] if row.ticket is not None else []
    if row.kind in (EventKind.QUESTION_ASKED, EventKind.QUESTION_SETTLED):
        found.append(("questions", row.data["question"]))
    elif row.kind is EventKind.RECEIPT:
        found.append(("receipts", row.data["receipt"]))
    return tuple(found)


def _plain(values: Mapping[str, object]) -> dict[str, object]:
    return {name: value.value if isinstance(value, Enum) else value for name, value in values.items()}


def _record(row: Row[Any]) -> dict[str, object]:
    return _plain(dict(row._mapping))


def _json(record: object) -> bytes:
    return to_json(record, indent=1, sort_keys=True).encode() + b"\n"


_NEXT_LINE = ",\n"
_RUNS, _EVENTS, _LANDINGS = schema.runs.c, schema.events.c, schema.landings.c
_TICKETS = _row_texts(schema.tickets, "id")
# A ticket at work has several rows in some of these tables.
_PARTS_OF_TICKETS = {one.name: _row_texts(one, "ticket", remember=200) for one in OF_TICKET}
_NUMBERED_ROWS = {name: _row_texts(schema.metadata.tables[name], key) for name, key in NUMBERED.items()}
_SILENTLY_CHANGED = (
    _numbers(select(_RUNS.project).where(_RUNS.ended_at.is_(None)).distinct()),
    _numbers(select(_LANDINGS.project).where(_LANDINGS.closed_at.is_(None)).distinct()),
    _numbers(select(schema.agents.c.project).distinct()),
)
_CHANGES = FixedQuery(
    select(_EVENTS.kind, _EVENTS.ticket, _EVENTS.data).where(
        _EVENTS.n > bindparam("seen"), _EVENTS.project == bindparam("mine")
    ),
    _changes_of,
    remember=_AT_ONCE,
)
_AT_WORK = _numbers(
    select(_RUNS.ticket).where(_RUNS.ended_at.is_(None), _RUNS.project == bindparam("mine"), _RUNS.ticket.is_not(None))
)
_LATE_LANDINGS = _numbers(
    select(_LANDINGS.id).where(_LANDINGS.project == bindparam("mine")).order_by(_LANDINGS.id.desc()).limit(_SHELF)
)
_FEW = {
    name: _numbers(select(one.c[NUMBERED[name]]).where(one.c.project == bindparam("mine")))
    for name in ("agents", "plans", "notes", "routines")
    for one in (schema.metadata.tables[name],)
}


def _pieces(numbers: Iterable[int]) -> Iterable[list[int]]:
    ordered = sorted(numbers)
    return (ordered[start : start + _AT_ONCE] for start in range(0, len(ordered), _AT_ONCE))


def restore(store: Store, boards: Sequence[Mapping[str, bytes]]) -> None:
    """Fill an empty database with these records. Raises ValueError for an invalid one."""
    try:
        _restore(store, [{name: json.loads(content) for name, content in one.items()} for one in boards])
    except (KeyError, TypeError, AttributeError, DBAPIError) as wrong:
        raise ValueError(" ".join(str(wrong).split())[:200]) from wrong


def _restore(store: Store, read: Sequence[Mapping[str, Any]]) -> None:
    for number in sorted({one[HEAD]["schema"] for one in read}):
        store.migrate([step for step in SHIPPED if step.number <= number])
        with store.write() as tx:
            for one in read:
                if one[HEAD]["schema"] == number:
                    _put(tx, one)
            # Before later steps: one may give out new numbers, which no board of a later schema may have.
            _raise_counters(tx, read)
    store.migrate()
    with store.write() as tx:
        _raise_counters(tx, read)
        past_tickets.count_again(tx)


def _raise_counters(tx: Transaction, read: Sequence[Mapping[str, Any]]) -> None:
    for one in read:
        for name, value in one[HEAD]["counters"].items():
            raise_counter(tx, name, value)


def raise_counter(tx: Transaction, name: str, value: int) -> None:
    """Never give out numbers up to this one again."""
    mine = schema.counters.c
    tx.execute(update(schema.counters).where(mine.name == name, mine.value < value).values(value=value))


class BoardCondition(Enum):
    LOST = "lost"
    """There is no file."""
    DAMAGED = "damaged"
    EMPTY = "empty"
    """It never contained a project."""
    SOUND = "sound"


def condition(url: str) -> BoardCondition:
    """The state of the database, read without changing it."""
    file = database_file(url)
    if file is not None and not file.exists():
        return BoardCondition.LOST
    store = Store(url)
    try:
        with store.read() as tx:
            if file is not None and [row[0] for row in tx.execute(text("PRAGMA quick_check(1)"))] != ["ok"]:
                return BoardCondition.DAMAGED
        return BoardCondition.EMPTY if is_empty(store) else BoardCondition.SOUND
    except StoreBroken:
        return BoardCondition.DAMAGED
    except DBAPIError:
        # No fault of the file: the table does not exist.
        return BoardCondition.EMPTY
    finally:
        store.close()


def is_empty(store: Store) -> bool:
    """Was no project ever written into it?"""
    with store.read() as tx:
        return tx.execute(select(schema.projects.c.id).limit(1)).one_or_none() is None


def _put(tx: Transaction, board: Mapping[str, Any]) -> None:
    """In the order of the references between rows."""
    head = board[HEAD]
    _insert(tx, "projects", [head["project"]])
    _insert(tx, "trusted", head["trusted"])
    if crews := head.get("crews"):
        # Shared by projects, and every board contains all of them.
        there = set(tx.execute(select(schema.crews.c.digest)).scalars())
        _insert(tx, "crews", [one for one in crews if one["digest"] not in there])
    by_kind: dict[str, list[Any]] = {}
    for name, record in board.items():
        if name != HEAD:
            by_kind.setdefault(name.partition("/")[0], []).append(record)
    whole = by_kind.pop("tickets", [])
    _insert(tx, "agents", by_kind.pop("agents", []))
    _insert(tx, "tickets", [one["ticket"] for one in whole])
    # Runs first: other rows refer to them.
    for name in sorted({name for one in whole for name in one} - {"ticket"}, key=lambda name: (name != "runs", name)):
        _insert(tx, name, [row for one in whole for row in one.get(name, ())])
    for name, records in by_kind.items():
        _insert(tx, name, records)


def _insert(tx: Transaction, name: str, rows: Sequence[Mapping[str, object]]) -> None:
    """By the column names of the rows: the tables may be older than this release's."""
    for row in rows[:1]:
        values = [{key: _raw(value) for key, value in one.items()} for one in rows]
        tx.execute(insert(table(name, *(column(key) for key in row))), values)


def _raw(value: object) -> object:
    """As stored in a column: flags are 0 and 1, lists and mappings are JSON."""
    if isinstance(value, bool):
        return int(value)
    return to_json(value) if isinstance(value, list | dict) else value
