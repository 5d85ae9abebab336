"""The steps from an empty database to the present one, each in one transaction.

A step is a file `NNNN_name.sql` in this folder, the same for both databases. Steps are never changed after a
release: the next change is the next file. `legion.store.database.schema` describes what the last step leaves behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

from sqlalchemy import Connection, Engine, text

from legion.domain.errors import StateConflict
from legion.store.database.errors import StoreTooNew
from legion.system import crash
from legion.system.crash import Point


@dataclass(frozen=True, kw_only=True)
class Migration:
    number: int
    name: str
    statements: tuple[str, ...]


def parse(file_name: str, content: str) -> Migration:
    number, _, name = file_name.removesuffix(".sql").partition("_")
    code = "".join(f"{line}\n" for line in content.splitlines() if not line.startswith("--"))
    statements = tuple(statement.strip() for statement in code.split(";\n") if statement.strip())
    return Migration(number=int(number), name=name, statements=statements)


def _shipped() -> tuple[Migration, ...]:
    found = [file for file in files(__name__).iterdir() if file.name.endswith(".sql")]
    return tuple(parse(file.name, file.read_text()) for file in sorted(found, key=lambda file: file.name))


SHIPPED = _shipped()


def apply(engine: Engine, steps: Sequence[Migration], place: str, now: float) -> tuple[Migration, ...]:
    """Bring the database up to the last step; says which steps it took. A newer database is refused untouched."""
    taken = []
    known = 0
    for step in steps:
        if step.number <= known:
            continue
        with engine.begin() as connection:
            known = _version(connection)
            if known > steps[-1].number:
                raise _too_new(known, steps, place)
            if step.number <= known:
                continue
            for statement in step.statements:
                connection.exec_driver_sql(statement)
            connection.execute(
                text("INSERT INTO schema_version (number, name, applied_at) VALUES (:number, :name, :now)"),
                {"number": step.number, "name": step.name, "now": now},
            )
            crash.reach(Point.STORE_MIGRATION_BEFORE_COMMIT)
        crash.reach(Point.STORE_MIGRATION_AFTER_COMMIT)
        taken.append(step)
    return tuple(taken)


def refuse_other(engine: Engine, steps: Sequence[Migration], place: str) -> None:
    """Raises unless the database is exactly at the last step, without changing it."""
    with engine.begin() as connection:
        known = _version(connection)
    if known > steps[-1].number:
        raise _too_new(known, steps, place)
    if known < steps[-1].number:
        raise StateConflict(
            f"The database {place} is of an older Legion (schema {known}, this one needs {steps[-1].number}): start "
            "the head with this release first, with `legion up`."
        )


def _too_new(known: int, steps: Sequence[Migration], place: str) -> StoreTooNew:
    return StoreTooNew(
        f"The database {place} was written by a newer Legion (schema {known}, this one knows"
        f" {steps[-1].number}): update Legion, or name another data folder."
    )


def _version(connection: Connection) -> int:
    """The last step taken. The caller holds the database until the end of the transaction."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtext('legion.schema_version'))")
    connection.exec_driver_sql(
        "CREATE TABLE IF NOT EXISTS schema_version ("
        "number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at DOUBLE PRECISION NOT NULL)"
    )
    version: int = connection.execute(text("SELECT coalesce(max(number), 0) FROM schema_version")).scalar_one()
    return version
