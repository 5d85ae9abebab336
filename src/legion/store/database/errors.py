"""Database errors, translated into sentences for a person.

LegionError
├── UnknownDatabase    exit 2    the URL names no database that Legion can use
├── StoreTooNew        exit 1    written by a newer Legion
├── StoreReadOnly      exit 4    the file or its folder cannot be written
├── StoreBroken        exit 1    damaged, or not a database at all
├── StaleClaim         exit 5    the job belongs to a later generation
├── LeaseHeld          exit 5    another head serves this database
├── HeadReplaced       exit 5    another head has taken over
├── StoreBusy          exit 75   another writer held it for too long
├── StoreFull          exit 75   no room on the disk
└── StoreUnreachable   exit 75   the server does not answer
"""

from __future__ import annotations

import sqlite3

from sqlalchemy.exc import DBAPIError, OperationalError

from legion.domain.errors import BadInput, LegionError, NotAllowed, NotFound, Retryable, StateConflict


class UnknownDatabase(BadInput):
    code = "unknown_database"


class StoreTooNew(LegionError):
    code = "store_too_new"


class StoreReadOnly(NotAllowed):
    code = "store_read_only"


class StoreBroken(LegionError):
    code = "store_broken"


class StaleClaim(StateConflict):
    code = "stale_claim"


class LeaseHeld(StateConflict):
    """Another head has the lease of this database."""


class HeadReplaced(StateConflict):
    """Another head has taken over, so this one may write no longer."""

    code = "head_replaced"


class StoreBusy(Retryable):
    code = "store_busy"


class StoreFull(Retryable):
    code = "store_full"


class StoreUnreachable(Retryable):
    code = "store_unreachable"


def translate(error: DBAPIError, place: str) -> LegionError | None:
    """The error for what the database reported; None where it is a bug of ours."""
    if isinstance(error.orig, sqlite3.Error):
        return _from_sqlite(error.orig, place)
    return _from_postgres(error, place)


def _from_sqlite(error: sqlite3.Error, place: str) -> LegionError | None:
    primary = getattr(error, "sqlite_errorcode", 0) & 0xFF
    match primary:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return busy(place)
        case sqlite3.SQLITE_FULL:
            return full(place)
        case sqlite3.SQLITE_READONLY:
            return StoreReadOnly(
                f"The database {place} is read-only: make it and its folder writable, or name another."
            )
        case sqlite3.SQLITE_CANTOPEN:
            return StoreReadOnly(
                f"The database {place} cannot be opened: check that its folder exists and is writable."
            )
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return StoreBroken(
                f"The file {place} is damaged or no database ({error}): `legion doctor --rebuild` restores it from "
                "the hubs, or restore it from a backup."
            )
        case sqlite3.SQLITE_IOERR if error.sqlite_errorcode == sqlite3.SQLITE_IOERR_SHMSIZE:
            # Its WAL file could not grow.
            return full(place)
        case sqlite3.SQLITE_IOERR:
            return StoreBroken(
                f"The disk failed under the database {place} ({error}): check the disk, then start again."
            )
        case _:
            return None


def _from_postgres(error: DBAPIError, place: str) -> LegionError | None:
    state: str | None = getattr(error.orig, "sqlstate", None)
    if state is None:
        # Only a failure outside of a statement has no state: no connection, or a lost one.
        return unreachable(error, place) if isinstance(error, OperationalError) else None
    if state in _NOT_NOW:
        return busy(place)
    if state == "53100":
        return full(place)
    if state == "25006":
        return StoreReadOnly(f"The database {place} is read-only: name one that can be written.")
    if state.startswith(("08", "53", "57P", "58")):
        return unreachable(error, place)
    if state == "22003":
        return NotFound("Nothing in Legion has a number as large as one in this request.")
    if state.startswith("XX"):
        return StoreBroken(f"The database {place} is damaged ({_reason(error)}): restore it from a backup.")
    return None


_NOT_NOW = ("55P03", "40001", "40P01")
"""Lock not available, serialization failure, deadlock."""


def busy(place: str) -> StoreBusy:
    return StoreBusy(f"The database {place} was locked for too long: try again.")


def full(place: str) -> StoreFull:
    return StoreFull(f"The disk that holds the database {place} is full: free some space and try again.")


def unreachable(error: DBAPIError, place: str) -> StoreUnreachable:
    return StoreUnreachable(
        f"The database {place} does not answer ({_reason(error)}): check that it runs and try again."
    )


def _reason(error: DBAPIError) -> str:
    lines = str(error.orig).strip().splitlines()
    return lines[0] if lines else type(error.orig).__name__
