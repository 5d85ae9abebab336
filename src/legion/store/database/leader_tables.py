"""The tables of leaders: notes, and how far each leader has read the board, as the last migration leaves them."""

from __future__ import annotations

from sqlalchemy import Column, Double, Integer, Table, Text

from legion.domain.leader.notes import NoteKind
from legion.store.database.columns import AnyText, Flag, metadata, one_of

notes = Table(
    "notes",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("project", Integer, nullable=False),
    Column("kind", one_of(NoteKind), nullable=False),
    Column("text", AnyText, nullable=False),
    Column("author", Text, nullable=False),
    Column("ticket", Integer),
    Column("created_at", Double, nullable=False),
    Column("closed_at", Double),
    Column("closed_by", Text, nullable=False),
    Column("outcome", AnyText, nullable=False),
)

leaders = Table(
    "leaders",
    metadata,
    Column("agent", Integer, primary_key=True, autoincrement=False),
    Column("seen", Integer, nullable=False),
    Column("shown", Integer, nullable=False),
    Column("noticed", Integer, nullable=False),
    Column("tokens", Integer, nullable=False),
    Column("compacted", Flag, nullable=False),
    Column("handovers", Integer, nullable=False),
)
