"""Small makers for the store's tests: a project, tickets that have come some way, and processes that die."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, Integer, Table, Text, cast, column, create_engine, insert, literal, select, update

from legion.domain.projects import ConfigOrigin, Project
from legion.domain.scheduling.usage import Usage
from legion.domain.tickets.spec import TicketSpec
from legion.domain.tickets.ticket import Change, Land, Propose, Prove, Start, State, Stop, Ticket
from legion.store.board import past_tickets, projects, tickets
from legion.store.database import schema
from legion.store.database.migrations import SHIPPED, Migration, parse
from legion.store.database.transactions import Store, Transaction
from legion.system import crash
from legion.system.crash import Point

DATA = Path(__file__).with_name("data")

COMMIT = "c" * 40
TREE = "d" * 40
N = column("n", Integer)
"""In the values of `add_in_bulk`: the number of each row."""
TEXT, BEFORE = cast(N, Text), cast(N - 1, Text)


def add_project(tx: Transaction, name: str = "shop", **different: Any) -> Project:
    values: dict[str, Any] = {
        "name": name,
        "root": f"/home/ada/{name}",
        "common_dir": f"/home/ada/{name}/.git",
        "branch": "main",
        "worktrees": f"/home/ada/{name}-legion",
        "config_text": "[checks.test]\nrun = 'make test'\n",
        "config_hash": "hash-1",
        "config_origin": ConfigOrigin.TARGET,
        "target": COMMIT,
    }
    return projects.add(tx, **(values | different))


def add_ticket(tx: Transaction, project: int = 1, **spec: Any) -> Ticket:
    return tickets.create(tx, project, TicketSpec(**({"title": "a title", "text": "a text"} | spec)))


def land(tx: Transaction, ticket: int) -> Ticket:
    """Take a queued ticket all the way."""
    for step in (Start(COMMIT), Propose(Change(base=COMMIT, commit=TREE)), Prove(), Land(COMMIT)):
        moved = tickets.move(tx, ticket, step)
    return moved


def stop(tx: Transaction, ticket: int) -> Ticket:
    return tickets.move(tx, ticket, Stop())


def add_many_landed(store: Store, project: int, count: int) -> None:
    """As `count` tickets that an agent had dispatched and that landed long ago, in bulk, each after the one before."""
    with store.write() as tx:
        model = land(tx, add_ticket(tx, project, context="long " * 100, dispatcher="a-1", budget=1.0).id)
    ids = range(model.id + 1, model.id + count)
    row = {
        "project": project,
        "version": model.version,
        "state": State.DONE,
        "live": False,
        "attempt": 1,
        "interrupted": False,
        "spared": 0,
        "parked": None,
        "landed": COMMIT,
        "unchecked": False,
        "created_at": 1.0,
        "feedback": "",
        "reason": "",
    } | {name: value for name, value in asdict(model.spec).items() if name in schema.tickets.c}
    with store.write() as tx:
        add_in_bulk(tx, schema.tickets, ids, row | {"id": N, "after": "[" + BEFORE + "]", "moved_at": N})
        texts = {"text": "t", "context": "long " * 100, "criteria": "", "plan": ""}
        add_in_bulk(tx, schema.ticket_details, ids, texts | {"ticket": N})
        add_in_bulk(tx, schema.edges, ids, {"ticket": N, "after": N - 1})
        request = {"scope": f"project-{project}", "answer": {"ids": [1]}, "at": 1.0}
        add_in_bulk(tx, schema.requests, ids, request | {"request": "request " + TEXT})
        run = {
            "project": project,
            "conversation": "",
            "access": "",
            "prompt": "",
            "attempt": 1,
            "generation": 1,
            "started_at": 1.0,
            "ended_at": 2.0,
            "detail": "",
            "outcome": "finished",
        }
        add_in_bulk(tx, schema.runs, ids, run | {"id": N, "ticket": N})
        spent = dict.fromkeys(Usage.__dataclass_fields__, 0) | {"provider": "p", "model": "m", "day": "2026-01-01"}
        add_in_bulk(tx, schema.usage, ids, spent | {"run": N, "usd": 0.5})
        claim = {"kind": "run", "generation": 1, "machine": "here", "active": False, "claimed_at": 1.0}
        add_in_bulk(tx, schema.claims, ids, claim | {"id": N, "subject": N})
        proof = {"project": project, "name": "", "command": "", "commit_id": "", "verdict": "green", "duration": 1.0}
        proof |= {"made_at": 1.0, "tail": "", "output": "", "digest": ""}
        add_in_bulk(tx, schema.receipts, ids, proof | {"id": N, "ticket": N, "tree": "tree-" + TEXT})
        landed = {"project": project, "base": "", "commit_id": "", "tree": "", "opened_at": 1.0, "closed_at": 2.0}
        add_in_bulk(tx, schema.landings, ids, landed | {"id": N, "tickets": [], "landed": True})
        past = {"at": 1.0, "kind": "ticket.moved", "project": project, "data": {}}
        add_in_bulk(tx, schema.events, ids, past | {"n": N + 10**6, "ticket": N})
        for counter in ("ticket", "run", "claim", "receipt", "landing"):
            tx.execute(update(schema.counters).where(schema.counters.c.name == counter).values(value=ids.stop))
        tx.execute(update(schema.counters).where(schema.counters.c.name == "event").values(value=10**6 + ids.stop))
        past_tickets.count_again(tx)


def add_in_bulk(tx: Transaction, table: Table, ids: range, values: Mapping[str, Any]) -> None:
    """A row for each number, made by the database itself: ten thousand cost Python seconds."""
    first = select(literal(ids.start).label("n")).cte("numbers", recursive=True)
    numbers = first.union_all(select(first.c.n + 1).where(first.c.n < ids.stop - 1))
    cells = [
        value if isinstance(value, ColumnElement) else literal(value, table.c[name].type)
        for name, value in values.items()
    ]
    tx.execute(insert(table).from_select(list(values), select(*cells).select_from(numbers)))


def in_a_process(work: Callable[[], None]) -> int:
    """Do the work in a forked process; its exit code, negative for a signal."""
    child = os.fork()
    if child == 0:
        code = 99
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def dies_at(point: Point, work: Callable[[], None]) -> None:
    """Do the work in a process that is killed when it reaches the point."""

    def armed() -> None:
        crash.arm(point)
        work()

    assert in_a_process(armed) == -signal.SIGKILL


def data_of(step: Migration) -> tuple[str, ...]:
    """What a database of this step's schema can hold and one of the step before cannot."""
    file = DATA / f"{step.number:04}.sql"
    return parse(file.name, file.read_text()).statements


def migrate_with_data(store: Store, url: str, last: int = len(SHIPPED)) -> None:
    """As an older Legion left its database: step by step, with the data of each."""
    engine = create_engine(url)
    for step in SHIPPED[:last]:
        store.migrate(SHIPPED[: step.number])
        with engine.begin() as connection:
            for statement in data_of(step):
                connection.exec_driver_sql(statement)
    engine.dispose()
