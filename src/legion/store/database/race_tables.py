"""The table of races, as the last migration leaves it."""

from __future__ import annotations

from sqlalchemy import Column, Double, Integer, Table

from legion.store.database.columns import AnyText, Flag, metadata

race_lanes = Table(
    "race_lanes",
    metadata,
    Column("ticket", Integer, primary_key=True, autoincrement=False),
    Column("race", Integer, nullable=False),
    Column("origin", Integer, nullable=False),
    Column("label", AnyText, nullable=False),
    Column("lines", Integer),
    Column("findings", Integer),
    Column("won", Flag),
    Column("why", AnyText, nullable=False),
    Column("decided_at", Double),
)
