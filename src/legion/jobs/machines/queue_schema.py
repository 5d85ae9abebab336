"""The tables of the queue, in a Postgres schema of their own: those of Procrastinate, by its migrations, and ours."""

from __future__ import annotations

from pathlib import Path

import psycopg
from procrastinate.schema import SchemaManager

SCHEMA = "legion_jobs"
SEARCH_PATH = f"-c search_path={SCHEMA}"

_LOCK = "SELECT pg_advisory_lock(hashtext('legion.jobs'))"
_STEPS = "CREATE TABLE IF NOT EXISTS queue_steps (name text PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())"
_OURS = (
    # A worker of Procrastinate has a number and a heartbeat only. A machine keeps its number when the head restarts.
    "CREATE TABLE IF NOT EXISTS queue_machines (machine text PRIMARY KEY, worker_id bigint NOT NULL)",
    # Procrastinate's own index covers waiting jobs only.
    "CREATE INDEX IF NOT EXISTS queue_jobs_key ON procrastinate_jobs (queueing_lock)",
    "CREATE INDEX IF NOT EXISTS queue_jobs_waiting ON procrastinate_jobs (queue_name, id) WHERE status = 'todo'",
    "CREATE INDEX IF NOT EXISTS queue_jobs_taken ON procrastinate_jobs (queue_name) WHERE status = 'doing'",
)


def migrate(conninfo: str) -> tuple[str, ...]:
    """Create or update the tables; returns the names of the steps that it took. Heads that start at once take turns."""
    shipped = {file.name: file for file in Path(SchemaManager.get_migrations_path()).glob("*.sql")}
    # The session's end releases the lock.
    with psycopg.connect(conninfo, autocommit=True, options=SEARCH_PATH) as connection:
        connection.execute(_LOCK)
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
        connection.execute(_STEPS)
        (found,) = connection.execute("SELECT to_regclass('procrastinate_jobs')").fetchone() or (None,)
        if found is None:
            with connection.transaction():
                connection.execute(SchemaManager.get_schema())
                _record(connection, *shipped)
            steps = ["schema"]
        else:
            steps = sorted(shipped.keys() - _recorded(connection))
            for name in steps:
                with connection.transaction():
                    connection.execute(shipped[name].read_bytes())
                    _record(connection, name)
        for statement in _OURS:
            connection.execute(statement)
    return tuple(steps)


def _recorded(connection: psycopg.Connection[tuple[object, ...]]) -> set[object]:
    return {name for (name,) in connection.execute("SELECT name FROM queue_steps").fetchall()}


def _record(connection: psycopg.Connection[tuple[object, ...]], *names: str) -> None:
    with connection.cursor() as cursor:
        cursor.executemany("INSERT INTO queue_steps (name) VALUES (%s)", [(name,) for name in names])
