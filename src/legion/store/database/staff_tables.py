"""The tables of standing agents, their mail and tokens, and of browsers, as the last migration leaves them."""

from __future__ import annotations

from sqlalchemy import Column, Double, Integer, Table, Text

from legion.domain.agents.agent import Planning, Tier
from legion.domain.agents.mail import Delivery, MessageKind
from legion.domain.tickets.attendance import AttendMode
from legion.domain.wheel import WheelStage
from legion.store.database.columns import AnyText, Flag, Json, metadata, one_of

agents = Table(
    "agents",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("id", Text, nullable=False),
    Column("project", Integer, nullable=False),
    Column("parent", Text, nullable=False),
    Column("name", AnyText, nullable=False),
    Column("role", AnyText, nullable=False),
    Column("task", AnyText, nullable=False),
    Column("model", AnyText, nullable=False),
    Column("tools", Json),
    Column("budget", Double),
    Column("headcount", Integer),
    Column("depth", Integer),
    Column("tier", one_of(Tier), nullable=False),
    Column("base", Text),
    Column("owes", Flag, nullable=False),
    Column("held_until", Double),
    Column("held_why", AnyText, nullable=False),
    Column("hired_at", Double, nullable=False),
    Column("fired_at", Double),
    Column("plan", one_of(Planning), nullable=False),
    Column("leaving", Text, nullable=False),
    Column("hirer", Text, nullable=False),
    Column("delegates", Flag, nullable=False),
    Column("driver", Text, nullable=False),
)

agent_spending = Table(
    "agent_spending",
    metadata,
    Column("agent", Text, primary_key=True),
    Column("own_usd", Double, nullable=False),
    Column("given_usd", Double, nullable=False),
)

holdings = Table(
    "holdings",
    metadata,
    Column("ticket", Integer, primary_key=True, autoincrement=False),
    Column("number", Integer, nullable=False),
    Column("agent", Text, nullable=False),
    Column("planted", Flag, nullable=False),
    Column("submitted", Flag, nullable=False),
    Column("since", Double, nullable=False),
)

mail = Table(
    "mail",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("id", Text, nullable=False),
    Column("sender", Text, nullable=False),
    Column("recipient", Text, nullable=False),
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

calls = Table(
    "calls",
    metadata,
    Column("caller", Text, primary_key=True),
    Column("request", AnyText, primary_key=True),
    Column("answer", Json, nullable=False),
    Column("at", Double, nullable=False),
)

tokens = Table(
    "tokens",
    metadata,
    Column("hash", Text, primary_key=True),
    Column("agent", Text, nullable=False),
    Column("ticket", Integer),
    Column("run", Integer, nullable=False),
    Column("issued_at", Double, nullable=False),
    Column("revoked_at", Double),
)

devices = Table(
    "devices",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("name", AnyText, nullable=False),
    Column("code_hash", Text, nullable=False),
    Column("code_ends_at", Double, nullable=False),
    Column("secret_hash", Text),
    Column("host", Text, nullable=False),
    Column("read_only", Flag, nullable=False),
    Column("made_at", Double, nullable=False),
    Column("seen_at", Double),
    Column("revoked_at", Double),
)

agent_wheels = Table(
    "agent_wheels",
    metadata,
    Column("agent", Integer, primary_key=True, autoincrement=False),
    Column("owes", Flag, nullable=False),
    Column("since", Double, nullable=False),
    Column("alone", Integer),
    Column("stage", one_of(WheelStage), nullable=False),
)

attendances = Table(
    "attendances",
    metadata,
    Column("ticket", Integer, primary_key=True, autoincrement=False),
    Column("mode", one_of(AttendMode), nullable=False),
    Column("submitted", Flag, nullable=False),
    Column("accepts", Flag, nullable=False),
    Column("since", Double, nullable=False),
    Column("alone", Integer),
    Column("stage", one_of(WheelStage), nullable=False),
)
