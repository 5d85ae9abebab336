"""The tables of forges, as the last migration leaves them."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Double, Integer, Table, Text

from legion.domain.forge.connections import ClaimStage, ForgeKind, TokenFrom
from legion.domain.forge.pulls import CiResult, PullStage
from legion.store.database.columns import AnyText, Flag, Json, metadata, one_of

forges = Table(
    "forges",
    metadata,
    Column("project", Integer, primary_key=True, autoincrement=False),
    Column("kind", one_of(ForgeKind), nullable=False),
    Column("url", AnyText, nullable=False),
    Column("repository", AnyText, nullable=False),
    Column("branch", AnyText, nullable=False),
    Column("key_from", one_of(TokenFrom), nullable=False),
    Column("key_value", AnyText, nullable=False),
    Column("login", AnyText, nullable=False),
    Column("label", AnyText, nullable=False),
    Column("milestone", AnyText, nullable=False),
    Column("assignee", AnyText, nullable=False),
    Column("identity", Text, nullable=False),
    Column("problem", AnyText, nullable=False),
    Column("problem_since", Double),
    Column("wait_until", Double),
    Column("synced_at", Double),
    Column("added_at", Double, nullable=False),
)

forge_issues = Table(
    "forge_issues",
    metadata,
    Column("project", Integer, primary_key=True, autoincrement=False),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("ticket", Integer),
    Column("stage", one_of(ClaimStage), nullable=False),
    Column("branch", AnyText, nullable=False),
    Column("claim", Text, nullable=False),
    Column("comment", BigInteger),
    Column("wrote", Text, nullable=False),
    Column("request", Json, nullable=False),
    Column("why", AnyText, nullable=False),
    Column("at", Double, nullable=False),
)

forge_pulls = Table(
    "forge_pulls",
    metadata,
    Column("ticket", Integer, primary_key=True, autoincrement=False),
    Column("project", Integer, nullable=False),
    Column("stage", one_of(PullStage), nullable=False),
    Column("branch", AnyText, nullable=False),
    Column("base", Text, nullable=False),
    Column("tested", Text, nullable=False),
    Column("pushed", Text, nullable=False),
    Column("number", Integer),
    Column("url", AnyText, nullable=False),
    Column("wrote", Text, nullable=False),
    Column("foreign_commit", Text, nullable=False),
    Column("merged", Text, nullable=False),
    Column("ci", one_of(CiResult), nullable=False),
    Column("ruling", Text, nullable=False),
    Column("note", AnyText, nullable=False),
    Column("at", Double, nullable=False),
)

forge_feedback = Table(
    "forge_feedback",
    metadata,
    Column("project", Integer, primary_key=True, autoincrement=False),
    Column("source", AnyText, primary_key=True),
    Column("ticket", Integer, nullable=False),
    Column("thread", BigInteger),
    Column("answered", Flag, nullable=False),
    Column("at", Double, nullable=False),
)

forge_deliveries = Table(
    "forge_deliveries",
    metadata,
    Column("id", AnyText, primary_key=True),
    Column("at", Double, nullable=False),
)
