"""The lease of the one head that may write to a Postgres, and its generation, which fences earlier heads.

All times are of the database's clock. A head that could not renew its lease in time keeps it if no other head took it
meanwhile. The same holder may take its lease again at once: it names the data folder, whose lock proves that the
earlier daemon of that folder is gone.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import create_engine, select, text
from sqlalchemy.exc import DBAPIError, ProgrammingError

from legion.store.database import errors, schema
from legion.store.database.transactions import ReadTransaction, parse_url

LEASE = 15.0
"""Seconds."""
_NOW = "extract(epoch from clock_timestamp())"
_TAKE = text(
    "INSERT INTO head_leases AS mine (id, holder, generation, until)"
    f" VALUES (1, :holder, 1, {_NOW} + :seconds) ON CONFLICT (id) DO UPDATE SET holder = excluded.holder,"
    " generation = mine.generation + 1, until = excluded.until"
    f" WHERE mine.until <= {_NOW} OR mine.holder = excluded.holder RETURNING generation"
)
_RENEW = text(f"UPDATE head_leases SET until = {_NOW} + :seconds WHERE generation = :mine RETURNING id")
_RELEASE = text("UPDATE head_leases SET until = 0 WHERE generation = :mine")
_HOLDER = text(f"SELECT holder, until - {_NOW} FROM head_leases WHERE until > {_NOW}")


@dataclass(frozen=True, kw_only=True)
class LeaseHolder:
    name: str
    seconds: float
    """Until its lease lapses, if it is not renewed."""


class HeadLease:
    """Its own connection: renewing must not wait for the writer."""

    def __init__(self, url: str, holder: str, *, seconds: float = LEASE) -> None:
        self.seconds = seconds
        self._holder = holder
        self._engine = create_engine(parse_url(url), pool_size=1, max_overflow=0, isolation_level="AUTOCOMMIT")
        self._generation = 0

    def take(self) -> int | None:
        """The new generation; None while another head has the lease."""
        with self._engine.connect() as connection:
            found = connection.execute(_TAKE, {"holder": self._holder, "seconds": self.seconds}).scalar()
        self._generation = found or 0
        return found

    def renew(self) -> bool | None:
        """Whether the lease is still this head's; None where the database did not answer."""
        try:
            with self._engine.connect() as connection:
                values = {"mine": self._generation, "seconds": self.seconds}
                return connection.execute(_RENEW, values).first() is not None
        except DBAPIError:
            return None

    def close(self) -> None:
        """Release the lease if this head has it. Where the database does not answer, it lapses."""
        if self._generation:
            with suppress(DBAPIError), self._engine.connect() as connection:
                connection.execute(_RELEASE, {"mine": self._generation})
        self._engine.dispose()

    def is_held_by_other(self) -> bool:
        """Before the tables are brought up to date, which another head's release may not understand."""
        try:
            found = self.holder()
        except ProgrammingError:
            return False  # an older database, without this table
        return found is not None and found.name != self._holder

    def holder(self) -> LeaseHolder | None:
        with self._engine.connect() as connection:
            row = connection.execute(_HOLDER).first()
        return None if row is None else LeaseHolder(name=row[0], seconds=float(row[1]))


def last(tx: ReadTransaction) -> tuple[int, str]:
    """Generation and holder of the head that serves now, or served last; 0: none has served yet."""
    row = tx.execute(select(schema.head_leases.c.generation, schema.head_leases.c.holder)).first()
    return (0, "") if row is None else (row.generation, row.holder)


def holder_name(host: str, folder: Path) -> str:
    return f"{host}:{folder}"


def is_on(holder: str, host: str) -> bool:
    return holder.startswith(f"{host}:")


def held_by(lease: HeadLease) -> errors.LeaseHeld:
    """The sentence for a head that finds another one at work."""
    found = lease.holder()
    name = found.name if found is not None else "Another head"
    return errors.LeaseHeld(f"{name} serves this database: use it, or wait for its end with `legion serve --standby`.")
