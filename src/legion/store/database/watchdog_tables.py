"""The tables of the watchdog, as the last migration leaves them."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Double, Integer, Table, Text

from legion.domain.rules import Rule
from legion.domain.watchdog.diagnosis import WatchdogStep
from legion.store.database.columns import AnyText, metadata, one_of

watches = Table(
    "watches",
    metadata,
    Column("run", Integer, primary_key=True, autoincrement=False),
    Column("tree", Text, nullable=False),
    Column("tree_since", Integer, nullable=False),
    Column("tree_at", Double, nullable=False),
    Column("idle_since", Double),
    Column("cpu", Double, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("processes", Text, nullable=False),
)

helps = Table(
    "helps",
    metadata,
    Column("run", Integer, primary_key=True, autoincrement=False),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("action", one_of(WatchdogStep), nullable=False),
    Column("rule", one_of(Rule), nullable=False),
    Column("sign", AnyText, nullable=False),
    Column("why", AnyText, nullable=False),
    Column("advice", AnyText, nullable=False),
    Column("message", Text, nullable=False),
    Column("after", Integer, nullable=False),
    Column("at", Double, nullable=False),
    Column("taken_at", Double),
)
