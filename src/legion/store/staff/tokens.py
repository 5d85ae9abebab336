"""Tokens with which agents call Legion: opaque, stored as a hash, valid for one run of one agent or ticket.

A token is invalid once its run has ended, even if it was not revoked.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass

from sqlalchemy import insert, select, update

from legion.store.database import schema
from legion.store.database.transactions import ReadTransaction, Transaction

PREFIX = "legion-agent-"
"""Distinguishes an agent's token from the person's, and identifies it to secret scanners."""

_TABLE = schema.tokens.c


@dataclass(frozen=True, kw_only=True)
class TokenOwner:
    """The agent or ticket that a token was issued to."""

    agent: str
    """A standing agent's id; empty for the agent of a ticket."""
    ticket: int | None
    run: int
    revoked: bool
    ended: bool
    """Has its run ended?"""

    @property
    def valid(self) -> bool:
        return not (self.revoked or self.ended)


def issue(tx: Transaction, *, run: int, agent: str = "", ticket: int | None = None) -> str:
    """A new token for this run. A run has one: the previous one is revoked."""
    if (not agent) == (ticket is None):
        raise ValueError("A token is for a standing agent or for a ticket's.")
    revoke(tx, run=run)
    token = PREFIX + secrets.token_urlsafe(32)
    row = {"hash": _hash(token), "agent": agent, "ticket": ticket, "run": run, "issued_at": tx.now, "revoked_at": None}
    tx.execute(insert(schema.tokens), [row])
    return token


def revoke(tx: Transaction, *, run: int | None = None, agent: str = "") -> None:
    """Of this run, or all of this agent."""
    if run is None and not agent:
        raise ValueError("Name the run or the agent whose tokens are revoked.")
    held = update(schema.tokens).where(_TABLE.revoked_at.is_(None))
    if run is not None:
        held = held.where(_TABLE.run == run)
    if agent:
        held = held.where(_TABLE.agent == agent)
    tx.execute(held.values(revoked_at=tx.now))


def bearer(tx: ReadTransaction, token: str) -> TokenOwner | None:
    """Its owner, present or past; None for a token that was never issued."""
    if not token.startswith(PREFIX):
        return None
    found = (
        select(_TABLE.agent, _TABLE.ticket, _TABLE.run, _TABLE.revoked_at, schema.runs.c.ended_at)
        .select_from(schema.tokens.outerjoin(schema.runs, schema.runs.c.id == _TABLE.run))
        .where(_TABLE.hash == _hash(token))
    )
    row = tx.execute(found).one_or_none()
    if row is None:
        return None
    return TokenOwner(
        agent=row.agent,
        ticket=row.ticket,
        run=row.run,
        revoked=row.revoked_at is not None,
        ended=row.ended_at is not None,
    )


def _hash(token: str) -> str:
    """A plain hash is enough: 256 random bits cannot be guessed from it."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
