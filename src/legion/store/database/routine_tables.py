"""The table of routines, as the last migration leaves it."""

from __future__ import annotations

from sqlalchemy import Column, Double, Integer, Table, Text

from legion.store.database.columns import AnyText, Json, metadata

routines = Table(
    "routines",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("project", Integer, nullable=False),
    Column("version", Integer, nullable=False),
    Column("starts", AnyText, nullable=False),
    Column("template", Text, nullable=False),
    Column("text", AnyText, nullable=False),
    Column("variables", Json, nullable=False),
    Column("team", AnyText, nullable=False),
    Column("budget", Double),
    Column("created_at", Double, nullable=False),
    Column("removed_at", Double),
    Column("due_at", Double),
    Column("seen", Integer, nullable=False),
    Column("tags", Json, nullable=False),
    Column("last_tickets", Json, nullable=False),
    Column("last_at", Double),
    Column("last_result", AnyText, nullable=False),
    Column("runs", Integer, nullable=False),
)
