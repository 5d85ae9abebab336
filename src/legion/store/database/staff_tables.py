"""The tables of standing agents, their mail and tokens, and of browsers, as the last migration leaves them."""

from __future__ import annotations

from sqlalchemy import Column, Double, Integer, Table, Text

from legion.domain.agents.agent import Planning, Tier
from legion.domain.agents.mail import Delivery, MessageKind
from legion.domain.takeovers import TakeoverMode, TakeoverStage
from legion.store.database.columns import AnyText, Flag, Json, keys, metadata, one_of, optional, required

agents = Table(
    "agents",
    metadata,
    *keys(Integer, "number"),
    Column("id", Text, nullable=False),
    Column("project", Integer, nullable=False),
    Column("parent", Text, nullable=False),
    *required(AnyText, "name", "role", "task", "model"),
    Column("tools", Json),
    Column("budget", Double),
    *optional(Integer, "headcount", "depth"),
    Column("tier", one_of(Tier), nullable=False),
    Column("base", Text),
    Column("owes", Flag, nullable=False),
    Column("held_until", Double),
    Column("held_why", AnyText, nullable=False),
    Column("hired_at", Double, nullable=False),
    Column("fired_at", Double),
    Column("plan", one_of(Planning), nullable=False),
    *required(Text, "leaving", "hirer"),
    Column("delegates", Flag, nullable=False),
    Column("driver", Text, nullable=False),
    *(Column(name, Integer, nullable=False, server_default="0") for name in ("seen", "shown", "noticed", "tokens")),
    Column("compacted", Flag, nullable=False, server_default="0"),
    Column("handovers", Integer, nullable=False, server_default="0"),
)

claimed_tickets = Table(
    "claimed_tickets",
    metadata,
    *keys(Integer, "ticket"),
    Column("number", Integer, nullable=False),
    Column("agent", Text, nullable=False),
    *required(Flag, "planted", "submitted"),
    Column("since", Double, nullable=False),
)

mail = Table(
    "mail",
    metadata,
    *keys(Integer, "number"),
    *required(Text, "id", "sender", "recipient"),
    Column("kind", one_of(MessageKind), nullable=False),
    Column("text", AnyText, nullable=False),
    Column("sent_at", Double, nullable=False),
    Column("delivery", one_of(Delivery), nullable=False),
    Column("batch", Text, nullable=False),
    Column("heard_at", Double),
    Column("about", Text, nullable=False),
    Column("reply_to", Integer),
    Column("archived_at", Double),
)

tokens = Table(
    "tokens",
    metadata,
    *keys(Text, "hash"),
    Column("agent", Text, nullable=False),
    Column("ticket", Integer),
    Column("run", Integer, nullable=False),
    Column("issued_at", Double, nullable=False),
    Column("revoked_at", Double),
)

devices = Table(
    "devices",
    metadata,
    *keys(Integer, "id"),
    Column("name", AnyText, nullable=False),
    Column("code_hash", Text, nullable=False),
    Column("code_ends_at", Double, nullable=False),
    Column("secret_hash", Text),
    Column("host", Text, nullable=False),
    Column("read_only", Flag, nullable=False),
    Column("made_at", Double, nullable=False),
    *optional(Double, "seen_at", "revoked_at"),
)

takeovers = Table(
    "takeovers",
    metadata,
    *keys(Integer, "ticket", "agent"),
    Column("mode", one_of(TakeoverMode), nullable=False),
    *required(Flag, "submitted", "accepts", "owes"),
    Column("since", Double, nullable=False),
    Column("alone", Integer),
    Column("stage", one_of(TakeoverStage), nullable=False),
)
