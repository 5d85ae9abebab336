"""The tables of plans, memories and adoptions, as the last migration leaves them."""

from __future__ import annotations

from sqlalchemy import Column, Double, Integer, Table, Text

from legion.domain.plans.conditions import StepResult
from legion.domain.plans.plan import PlanAuthor, PlanSource, PlanState
from legion.domain.plans.specification import SpecStage
from legion.domain.tickets.policy import LandingGate
from legion.store.database.columns import AnyText, Flag, Json, metadata, one_of

goals = Table(
    "goals",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("project", Integer, nullable=False),
    Column("version", Integer, nullable=False),
    Column("state", one_of(PlanState), nullable=False),
    Column("source", one_of(PlanSource), nullable=False),
    Column("goal", AnyText, nullable=False),
    Column("epic", AnyText, nullable=False),
    Column("team", AnyText, nullable=False),
    Column("model", AnyText, nullable=False),
    Column("budget", Double),
    Column("may_ask", Flag, nullable=False),
    Column("about", Integer),
    Column("rounds", Integer, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("draft", Json),
    Column("findings", Json, nullable=False),
    Column("asked", Json, nullable=False),
    Column("guidance", AnyText, nullable=False),
    Column("reason", AnyText, nullable=False),
    Column("held_until", Double),
    Column("conversation", Text, nullable=False),
    Column("dispatcher", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("moved_at", Double, nullable=False),
    Column("spec", Flag, nullable=False),
    Column("keep_docs", Flag, nullable=False),
)

goal_documents = Table(
    "goal_documents",
    metadata,
    Column("plan", Integer, primary_key=True, autoincrement=False),
    Column("stage", one_of(SpecStage), primary_key=True),
    Column("text", AnyText, nullable=False),
    Column("run", Integer),
    Column("at", Double, nullable=False),
)

conditions = Table(
    "conditions",
    metadata,
    Column("ticket", Integer, primary_key=True, autoincrement=False),
    Column("about", Json, nullable=False),
    Column("result", one_of(StepResult), nullable=False),
    Column("word", AnyText, nullable=False),
    Column("negated", Flag, nullable=False),
)

epics = Table(
    "epics",
    metadata,
    Column("project", Integer, primary_key=True, autoincrement=False),
    Column("name", AnyText, primary_key=True),
    Column("budget", Double, nullable=False),
)

epic_gates = Table(
    "epic_gates",
    metadata,
    Column("project", Integer, primary_key=True, autoincrement=False),
    Column("name", AnyText, primary_key=True),
    Column("gate", one_of(LandingGate), nullable=False),
)

memories = Table(
    "memories",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("project", Integer, nullable=False),
    Column("text", AnyText, nullable=False),
    Column("files", Json, nullable=False),
    Column("labels", Json, nullable=False),
    Column("ticket", Integer),
    Column("created_at", Double, nullable=False),
    Column("forgotten_at", Double),
    Column("lesson", Flag, nullable=False),
    Column("accepted_at", Double),
    Column("accepted_by", Text, nullable=False),
)

recalled = Table(
    "recalled",
    metadata,
    Column("memory", Integer, primary_key=True, autoincrement=False),
    Column("ticket", Integer, primary_key=True, autoincrement=False),
    Column("at", Double, nullable=False),
)

goal_rounds = Table(
    "goal_rounds",
    metadata,
    Column("plan", Integer, primary_key=True, autoincrement=False),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("author", one_of(PlanAuthor), nullable=False),
    Column("run", Integer),
    Column("usable", Flag, nullable=False),
    Column("findings", Json, nullable=False),
    Column("message", AnyText, nullable=False),
    Column("at", Double, nullable=False),
)

goal_tickets = Table(
    "goal_tickets",
    metadata,
    Column("plan", Integer, primary_key=True, autoincrement=False),
    Column("key", Text, primary_key=True),
    Column("ticket", Integer, nullable=False),
    Column("usd", Double),
    Column("seconds", Double),
    Column("at", Double, nullable=False),
)

adoptions = Table(
    "adoptions",
    metadata,
    Column("ticket", Integer, primary_key=True, autoincrement=False),
    Column("at", Double, nullable=False),
    Column("conversation", Text, nullable=False),
    Column("source", Text, nullable=False),
)
