"""The scheduler's view, and what it costs when many tickets have ended."""

from __future__ import annotations

import importlib
import pkgutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, Dialect, Engine, Enum, Float, Integer, create_engine, event, text
from sqlalchemy.types import TypeEngine

import legion.store
from legion.domain.checks import CheckResult
from legion.domain.projects import Project
from legion.domain.runs import Outcome
from legion.domain.scheduling.decide import BoardSnapshot, JobKind, ProjectView
from legion.domain.scheduling.usage import Spending, Usage
from legion.domain.tickets.ticket import Change, Land, Propose, Prove, Start, State
from legion.store import events, snapshot
from legion.store.board import landings, projects, receipts, tickets
from legion.store.database.columns import Flag
from legion.store.database.fixed_query import FixedQuery, QueryByIds
from legion.store.database.prepared import PreparedStatement
from legion.store.database.transactions import Store, sqlite_url
from legion.store.staff import agents
from legion.store.work import claims, runs, usage
from tests.store.making import COMMIT, TREE, add_many_landed, add_project, add_ticket, land, stop


def test_a_snapshot_shows_live_tickets_jobs_and_what_ended_before_them(store, project):
    with store.write() as tx:
        other = add_project(tx, "other")
        gone = add_project(tx, "gone")
        for after in ((), (), (1, 2), (3,)):
            add_ticket(tx, project.id, after=after)
        add_ticket(tx, other.id)
        add_ticket(tx, gone.id)
        land(tx, 1)
        stop(tx, 2)
        projects.trust(tx, project.id, project.config_hash)
        projects.trust(tx, other.id, "another hash")
        projects.save(tx, replace(gone, removed_at=tx.now))
        claims.claim(tx, JobKind.LAND, project.id, "here")
        finished = claims.claim(tx, JobKind.RUN, 3, "here")
        claims.finish(tx, finished)
        runs.end(tx, runs.start(tx, 3, 1).id, Outcome.LOST)
        runs.start(tx, 4, 1)
    with store.read() as tx:
        seen = snapshot.load(tx, 3, {project.id: 2})
        live = tickets.live(tx)
    view = ProjectView(
        id=project.id,
        parallel=2,
        paused=False,
        trusted=True,
        baseline_known=False,
        baseline_red=False,
        upstream_pending=False,
    )
    assert seen == BoardSnapshot(
        projects=(view, replace(view, id=other.id, parallel=3, trusted=False)),
        tickets=live[:3],
        ended={1: State.DONE, 2: State.STOPPED},
        jobs=frozenset({(JobKind.LAND, project.id)}),
        slots=3,
        open_runs=frozenset({4}),
        at={(JobKind.LAND, project.id): "here"},
        open_at={(JobKind.RUN, 4): ""},
    )
    assert [ticket.id for ticket in seen.tickets] == [3, 4, 5]


def view_of(store: Store, project: Project, **changed) -> ProjectView:
    with store.write() as tx:
        projects.save(tx, replace(projects.get(tx, project.id), **changed))
    with store.read() as tx:
        (view,) = snapshot.load(tx, 1, {}).projects
    return view


def test_the_baseline_is_known_only_for_the_target_as_it_is(store, project):
    known = view_of(store, project, baseline_commit=COMMIT, baseline_verdict=CheckResult.GREEN)
    assert (known.baseline_known, known.baseline_red) == (True, False)
    red = view_of(store, project, baseline_verdict=CheckResult.RED)
    assert (red.baseline_known, red.baseline_red) == (True, True)
    moved = view_of(store, project, target=TREE)
    assert (moved.baseline_known, moved.baseline_red) == (False, False)
    unheard = view_of(store, project, baseline_commit=TREE, baseline_verdict=None)
    assert not unheard.baseline_known


def test_a_landing_is_begun_until_it_is_closed(store, project):
    assert not view_of(store, project).landing_open
    with store.write() as tx:
        intent = landings.open(tx, project.id, base=COMMIT, commit=TREE, tree=TREE, tickets={})
    assert view_of(store, project).landing_open
    with store.write() as tx:
        landings.close(tx, intent.id, landed=False)
    assert not view_of(store, project).landing_open


@pytest.mark.parametrize(
    ("changed", "waits"),
    [
        ({"person_tip": None}, False),
        ({"person_tip": "new"}, True),
        ({"person_tip": COMMIT}, False),
        ({"person_tip": "new", "person_absorbed": "new"}, False),
        ({"person_tip": "new", "person_refused": "new"}, False),
        ({"person_tip": "newer", "person_absorbed": "new", "person_refused": "old"}, True),
        ({"person_tip": "new", "paused": True}, True),
    ],
)
def test_the_person_waits_until_their_tip_is_absorbed_or_refused(store, project, changed, waits):
    view = view_of(store, project, **changed)
    assert view.upstream_pending is waits
    assert view.paused is changed.get("paused", False)


def life_of_a_ticket(store: Store, project: int, after: tuple[int, ...] = ()) -> None:
    """Everything that is done per ticket, from dispatch to landed."""
    with store.write() as tx:
        ticket = add_ticket(tx, project, after=after).id
    with store.read() as tx:
        snapshot.load(tx, 3, {})
    with store.write() as tx:
        tickets.move(tx, ticket, Start(COMMIT))
        runs.start(tx, ticket, 1)
        claim = claims.claim(tx, JobKind.RUN, ticket, "here")
    with store.read() as tx:
        run = runs.latest(tx, ticket)
        assert run is not None
        runs.active(tx)
    with store.write() as tx:
        assert claims.still_mine(tx, claim)
        runs.end(tx, run.id, Outcome.FINISHED)
        tickets.move(tx, ticket, Propose(Change(base=COMMIT, commit=TREE)))
        tickets.move(tx, ticket, Prove())
        claims.finish(tx, claim)
    with store.write() as tx:
        usage.add(tx, [Spending(run=run.id, provider="p", model="m", day="2026-01-02", usage=Usage(usd=1.0))])
        agents.all_means(tx)
        receipts.for_tree(tx, project, f"tree-{ticket}")
        intent = landings.open(tx, project, base=COMMIT, commit=TREE, tree=TREE, tickets={ticket: TREE})
    with store.write() as tx:
        landings.open_ones(tx, project)
        landings.close(tx, intent.id, landed=True)
        tickets.move(tx, ticket, Land(COMMIT))
        projects.save(tx, projects.get(tx, project))
    with store.read() as tx:
        tickets.recent(tx, project, 20, before=tickets.recent(tx, project, 20)[-1])
        tickets.recent(tx, None, 20)
        tickets.states_of(tx, (ticket,))
        tickets.dependants(tx, ticket)
        events.of_ticket(tx, ticket)
        events.after(tx, events.last(tx) - 3)


@contextmanager
def spied(watch: Callable[..., None]) -> Iterator[None]:
    event.listen(Engine, "before_cursor_execute", watch)
    yield
    event.remove(Engine, "before_cursor_execute", watch)


def test_no_statement_in_the_life_of_a_ticket_walks_through_what_has_ended(migrated_url, store, project):
    """The database's own plan for each statement: only through an index, or over tables that stay small."""
    with store.write() as tx:
        projects.trust(tx, project.id, project.config_hash)
    add_many_landed(store, project.id, 3000)
    if migrated_url.startswith("postgres"):
        with store.write() as tx:
            tx.execute(text("ANALYZE"))
    said: dict[str, object] = {}

    def remember(_c: Connection, _cursor: object, statement: str, parameters: object, *_rest: object) -> None:
        if statement.startswith(("SELECT", "UPDATE")):
            said[statement] = parameters

    with spied(remember):
        life_of_a_ticket(store, project.id, after=(1,))
    engine = create_engine(migrated_url)
    prepared = {id(one): one for one in prepared_statements()}.values()
    said |= dict(one.bound(engine.dialect, placeholders(one, engine.dialect)) for one in prepared)
    said = {statement: values for statement, values in said.items() if statement.startswith(("SELECT", "UPDATE"))}
    assert len(said) > 40
    walked = [(statement, line) for statement, values in said.items() for line in plan(engine, statement, values)]
    engine.dispose()
    assert not walked


def prepared_statements() -> Iterator[PreparedStatement]:
    """Statements that go to the driver directly, where nothing can listen."""
    for module in pkgutil.walk_packages(legion.store.__path__, "legion.store."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, PreparedStatement):
                yield value
            elif isinstance(value, FixedQuery):
                yield value._prepared
            elif isinstance(value, QueryByIds):
                yield value._statement_for(1)
                yield value._statement_for(8)


def placeholders(statement: PreparedStatement, dialect: Dialect) -> dict[str, Any]:
    """A value of the right type for every name, beyond what is stored."""
    binds = statement._compile_plain(dialect).binds
    return {name: placeholder(bind.type) for name, bind in binds.items() if bind.required}


def placeholder(type: TypeEngine[Any]) -> Any:
    if isinstance(type, Enum):
        assert type.enum_class is not None
        return next(iter(type.enum_class))
    return 1_000_000_000 if isinstance(type, Integer | Float | Flag) else "none"


BIG = ("tickets", "later", "wishes", "edges", "runs", "usage", "claims", "events", "receipts", "landings", "requests")


def plan(engine: Engine, statement: str, values: object) -> list[str]:
    """The lines of the plan that read one of the big tables from end to end."""
    explain = "EXPLAIN " if engine.dialect.name == "postgresql" else "EXPLAIN QUERY PLAN "
    with engine.connect() as connection:
        rows = connection.exec_driver_sql(explain + statement, values)  # type: ignore[arg-type]
        lines = [str(row[-1]).strip() for row in rows]
    return [
        line
        for line in lines
        if any(
            line.startswith((f"Seq Scan on {table} ", f"->  Seq Scan on {table} ")) or line == f"SCAN {table}"
            for table in BIG
        )
    ]


def steps_of(work: Callable[[], None], connections: list[sqlite3.Connection]) -> int:
    """How many instructions SQLite's machine took: the same on every computer, however busy."""
    count = 0

    def tick() -> int:
        nonlocal count
        count += 1
        return 0

    for connection in connections:
        connection.set_progress_handler(tick, 1)
    work()
    for connection in connections:
        connection.set_progress_handler(None, 1)
    return count


@pytest.mark.slow
def test_a_ticket_costs_the_same_after_many_have_ended(tmp_path: Path):
    connections: list[sqlite3.Connection] = []

    def remember(connection: sqlite3.Connection, _record: object) -> None:
        connections.append(connection)

    event.listen(Engine, "connect", remember)
    try:
        costs = []
        for count in (100, 2000):
            connections.clear()
            store = Store(sqlite_url(tmp_path / f"{count}.db"))
            store.migrate()
            with store.write() as tx:
                add_project(tx)
            add_many_landed(store, 1, count)
            life_of_a_ticket(store, 1)  # opens the connections
            costs.append(steps_of(partial(life_of_a_ticket, store, 1), connections))
            store.close()
    finally:
        event.remove(Engine, "connect", remember)
    few, many = costs
    assert few > 1000
    assert many <= 1.2 * few
