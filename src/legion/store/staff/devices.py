"""Browsers that may use the page: one row each, from its one-time code to its end. Codes and secrets are hashes."""

from __future__ import annotations

import hashlib
import secrets

from sqlalchemy import Row, delete, insert, select, update

from legion.domain.devices import Device
from legion.store.database import schema
from legion.store.database.transactions import ReadTransaction, Transaction

_TABLE = schema.devices.c


def offer(tx: Transaction, *, name: str, read_only: bool, seconds: float) -> str:
    """A code that makes one browser a device, once and within `seconds`."""
    tx.execute(delete(schema.devices).where(_TABLE.secret_hash.is_(None), _TABLE.code_ends_at <= tx.now))
    code = secrets.token_urlsafe(16)
    row = {
        "id": tx.next("device"),
        "name": name,
        "code_hash": _hash(code),
        "code_ends_at": tx.now + seconds,
        "secret_hash": None,
        "host": "",
        "read_only": read_only,
        "made_at": tx.now,
        "seen_at": None,
        "revoked_at": None,
    }
    tx.execute(insert(schema.devices), [row])
    return code


def accept(tx: Transaction, code: str, *, name: str, host: str) -> tuple[str, Device] | None:
    """The secret of the browser that sends this code; None where the code is unknown, used or too old."""
    secret = secrets.token_urlsafe(32)
    offered = (
        update(schema.devices)
        .where(_TABLE.code_hash == _hash(code), _TABLE.secret_hash.is_(None), _TABLE.code_ends_at > tx.now)
        .values(secret_hash=_hash(secret), host=host, seen_at=tx.now)
    )
    if tx.execute(offered).rowcount != 1:
        return None
    if name:
        unnamed = update(schema.devices).where(_TABLE.secret_hash == _hash(secret), _TABLE.name == "")
        tx.execute(unnamed.values(name=name))
    device = of_secret(tx, secret)
    assert device is not None
    return secret, device


def of_secret(tx: ReadTransaction, secret: str) -> Device | None:
    row = tx.execute(select(schema.devices).where(_TABLE.secret_hash == _hash(secret))).one_or_none()
    return None if row is None else _device(row)


def note_seen(tx: Transaction, id: int) -> None:
    tx.execute(update(schema.devices).where(_TABLE.id == id).values(seen_at=tx.now))


def accepted(tx: ReadTransaction) -> tuple[Device, ...]:
    """Every device that is not revoked, in the order of its code."""
    found = select(schema.devices).where(_TABLE.secret_hash.is_not(None), _TABLE.revoked_at.is_(None))
    return tuple(_device(row) for row in tx.execute(found.order_by(_TABLE.id)))


def revoke(tx: Transaction, id: int | None = None) -> int:
    """Revoke this device, or all. Codes that wait are withdrawn with all. Returns how many were revoked."""
    held = update(schema.devices).where(_TABLE.secret_hash.is_not(None), _TABLE.revoked_at.is_(None))
    if id is not None:
        held = held.where(_TABLE.id == id)
    else:
        tx.execute(delete(schema.devices).where(_TABLE.secret_hash.is_(None)))
    return tx.execute(held.values(revoked_at=tx.now)).rowcount


def _device(row: Row[tuple[object, ...]]) -> Device:
    fields = row._mapping
    return Device(**{name: fields[name] for name in Device.__dataclass_fields__})


def _hash(secret: str) -> str:
    """A plain hash is enough: 128 random bits cannot be guessed from it."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()
