"""The tables of forges, as the last migration leaves them."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Double, Integer, Table, Text

from legion.domain.forge.connections import ClaimStage, ForgeKind, TokenFrom
from legion.domain.forge.pulls import CiResult, PullStage
from legion.store.database.columns import AnyText, Flag, Json, keys, metadata, one_of, optional, required

forges = Table(
    "forges",
    metadata,
    *keys(Integer, "project"),
    Column("kind", one_of(ForgeKind), nullable=False),
    *required(AnyText, "url", "repository", "branch"),
    Column("key_from", one_of(TokenFrom), nullable=False),
    *required(AnyText, "key_value", "login", "label", "milestone", "assignee"),
    Column("identity", Text, nullable=False),
    Column("problem", AnyText, nullable=False),
    *optional(Double, "problem_since", "wait_until", "synced_at"),
    Column("added_at", Double, nullable=False),
)

forge_issues = Table(
    "forge_issues",
    metadata,
    *keys(Integer, "project", "number"),
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
    *keys(Integer, "ticket"),
    Column("project", Integer, nullable=False),
    Column("stage", one_of(PullStage), nullable=False),
    Column("branch", AnyText, nullable=False),
    *required(Text, "base", "tested", "pushed"),
    Column("number", Integer),
    Column("url", AnyText, nullable=False),
    *required(Text, "wrote", "foreign_commit", "merged"),
    Column("ci", one_of(CiResult), nullable=False),
    Column("ruling", Text, nullable=False),
    Column("note", AnyText, nullable=False),
    Column("at", Double, nullable=False),
)

forge_feedback = Table(
    "forge_feedback",
    metadata,
    *keys(Integer, "project"),
    *keys(AnyText, "source"),
    Column("ticket", Integer, nullable=False),
    Column("thread", BigInteger),
    Column("answered", Flag, nullable=False),
    Column("at", Double, nullable=False),
)
