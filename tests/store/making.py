"""Small makers for the store's tests: a project, tickets that have come some way, and processes that die."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sqlalchemy import create_engine, insert, update

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
        tx.execute(insert(schema.tickets), [row | {"id": n, "after": [n - 1], "moved_at": float(n)} for n in ids])
        texts = {"text": "t", "context": "long " * 100, "criteria": "", "plan": ""}
        tx.execute(insert(schema.ticket_details), [texts | {"ticket": n} for n in ids])
        tx.execute(insert(schema.edges), [{"ticket": n, "after": n - 1} for n in ids])
        request = {"scope": f"project-{project}", "answer": {"ids": [1]}, "at": 1.0}
        tx.execute(insert(schema.requests), [request | {"request": f"request {n}"} for n in ids])
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
        tx.execute(insert(schema.runs), [run | {"id": n, "ticket": n} for n in ids])
        spent = dict.fromkeys(Usage.__dataclass_fields__, 0) | {"provider": "p", "model": "m", "day": "2026-01-01"}
        tx.execute(insert(schema.usage), [spent | {"run": n, "usd": 0.5} for n in ids])
        claim = {"kind": "run", "generation": 1, "machine": "here", "active": False, "claimed_at": 1.0}
        tx.execute(insert(schema.claims), [claim | {"id": n, "subject": n} for n in ids])
        proof = {"project": project, "name": "", "command": "", "commit_id": "", "verdict": "green", "duration": 1.0}
        proof |= {"made_at": 1.0, "tail": "", "output": "", "digest": ""}
        tx.execute(insert(schema.receipts), [proof | {"id": n, "ticket": n, "tree": f"tree-{n}"} for n in ids])
        landed = {"project": project, "base": "", "commit_id": "", "tree": "", "opened_at": 1.0, "closed_at": 2.0}
        tx.execute(insert(schema.landings), [landed | {"id": n, "tickets": [], "landed": True} for n in ids])
        past = {"at": 1.0, "kind": "ticket.moved", "project": project, "data": {}}
        tx.execute(insert(schema.events), [past | {"n": 10**6 + n, "ticket": n} for n in ids])
        for counter in ("ticket", "run", "claim", "receipt", "landing"):
            tx.execute(update(schema.counters).where(schema.counters.c.name == counter).values(value=ids.stop))
        tx.execute(update(schema.counters).where(schema.counters.c.name == "event").values(value=10**6 + ids.stop))
        past_tickets.count_again(tx)


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
