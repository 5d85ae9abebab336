"""The tables of plans, epics, races, notes and routines, as the last migration leaves them."""

from __future__ import annotations

from sqlalchemy import Column, Double, Integer, Table, Text

from legion.domain.notes import NoteKind
from legion.domain.plans.plan import PlanAuthor, PlanSource, PlanState
from legion.domain.plans.specification import SpecStage
from legion.domain.tickets.policy import LandingGate
from legion.store.database.columns import AnyText, Flag, Json, keys, metadata, one_of, optional, required

plans = Table(
    "plans",
    metadata,
    *keys(Integer, "id"),
    *required(Integer, "project", "version"),
    Column("state", one_of(PlanState), nullable=False),
    Column("source", one_of(PlanSource), nullable=False),
    *required(AnyText, "goal", "epic", "team", "model"),
    Column("budget", Double),
    Column("may_ask", Flag, nullable=False),
    Column("about", Integer),
    *required(Integer, "rounds", "tries"),
    Column("draft", Json),
    *required(Json, "findings", "asked"),
    *required(AnyText, "guidance", "reason"),
    Column("held_until", Double),
    *required(Text, "conversation", "dispatcher"),
    *required(Double, "created_at", "moved_at"),
    *required(Flag, "spec", "keep_docs"),
)

plan_documents = Table(
    "plan_documents",
    metadata,
    *keys(Integer, "plan"),
    Column("stage", one_of(SpecStage), primary_key=True),
    Column("text", AnyText, nullable=False),
    Column("run", Integer),
    Column("at", Double, nullable=False),
)

plan_rounds = Table(
    "plan_rounds",
    metadata,
    *keys(Integer, "plan", "number"),
    Column("author", one_of(PlanAuthor), nullable=False),
    Column("run", Integer),
    Column("usable", Flag, nullable=False),
    Column("findings", Json, nullable=False),
    Column("message", AnyText, nullable=False),
    Column("at", Double, nullable=False),
)

plan_tickets = Table(
    "plan_tickets",
    metadata,
    *keys(Integer, "plan"),
    *keys(Text, "key"),
    Column("ticket", Integer, nullable=False),
    *optional(Double, "usd", "seconds"),
    Column("at", Double, nullable=False),
)

epics = Table(
    "epics",
    metadata,
    *keys(Integer, "project"),
    *keys(AnyText, "name"),
    Column("budget", Double),
    Column("gate", one_of(LandingGate)),
)

race_lanes = Table(
    "race_lanes",
    metadata,
    *keys(Integer, "ticket"),
    *required(Integer, "race", "origin"),
    Column("label", AnyText, nullable=False),
    *optional(Integer, "lines", "findings"),
    Column("won", Flag),
    Column("why", AnyText, nullable=False),
    Column("decided_at", Double),
)

notes = Table(
    "notes",
    metadata,
    *keys(Integer, "id"),
    Column("project", Integer, nullable=False),
    Column("kind", one_of(NoteKind), nullable=False),
    Column("text", AnyText, nullable=False),
    Column("author", Text, nullable=False),
    Column("ticket", Integer),
    Column("created_at", Double, nullable=False),
    Column("closed_at", Double),
    Column("closed_by", Text, nullable=False),
    Column("outcome", AnyText, nullable=False),
    *required(Json, "files", "labels"),
    Column("pinned", Flag, nullable=False),
    Column("accepted_at", Double),
    Column("accepted_by", Text, nullable=False),
)

note_uses = Table(
    "note_uses",
    metadata,
    *keys(Integer, "note", "ticket"),
    Column("at", Double, nullable=False),
)

routines = Table(
    "routines",
    metadata,
    *keys(Integer, "id"),
    *required(Integer, "project", "version"),
    Column("starts", AnyText, nullable=False),
    Column("template", Text, nullable=False),
    Column("text", AnyText, nullable=False),
    Column("variables", Json, nullable=False),
    Column("team", AnyText, nullable=False),
    Column("budget", Double),
    Column("created_at", Double, nullable=False),
    *optional(Double, "removed_at", "due_at"),
    Column("seen", Integer, nullable=False),
    *required(Json, "tags", "last_tickets"),
    Column("last_at", Double),
    Column("last_result", AnyText, nullable=False),
    Column("runs", Integer, nullable=False),
)
