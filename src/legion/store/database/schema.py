"""The tables as the last migration leaves them."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Double, Integer, Table, Text

from legion.domain.agents.agent import Planning
from legion.domain.agents.teams import RolePart
from legion.domain.checks import CheckResult
from legion.domain.events import EventKind
from legion.domain.projects import ConfigOrigin
from legion.domain.questions import QuestionKind, SettledBy
from legion.domain.runs import Outcome
from legion.domain.scheduling.decide import JobKind
from legion.domain.tickets.policy import LandingGate, ReviewPolicy
from legion.domain.tickets.ticket import State
from legion.store.database.columns import AnyText, Flag, Json, metadata, one_of
from legion.store.database.forge_tables import forges
from legion.store.database.leader_tables import leaders, notes
from legion.store.database.machine_tables import (
    head_leases,
    machine_commands,
    machine_invitations,
    machine_runs,
    machines,
)
from legion.store.database.plan_tables import (
    adoptions,
    conditions,
    epic_gates,
    epics,
    goal_documents,
    goal_rounds,
    goal_tickets,
    goals,
    memories,
    recalled,
)
from legion.store.database.race_tables import race_lanes
from legion.store.database.routine_tables import routines
from legion.store.database.staff_tables import (
    agent_spending,
    agent_wheels,
    agents,
    attendances,
    calls,
    devices,
    holdings,
    mail,
    tokens,
)
from legion.store.database.watchdog_tables import helps, watches

__all__ = [
    "adoptions",
    "advice",
    "agent_spending",
    "agent_wheels",
    "agents",
    "attendances",
    "calls",
    "claims",
    "conditions",
    "counters",
    "crews",
    "devices",
    "edges",
    "epic_gates",
    "epics",
    "events",
    "forges",
    "goal_documents",
    "goal_rounds",
    "goal_tickets",
    "goals",
    "head_leases",
    "helps",
    "holdings",
    "landings",
    "leaders",
    "limits",
    "machine_commands",
    "machine_invitations",
    "machine_runs",
    "machines",
    "mail",
    "memories",
    "metadata",
    "notes",
    "plans",
    "projects",
    "questions",
    "race_lanes",
    "readings",
    "recalled",
    "receipts",
    "requests",
    "rewinds",
    "routines",
    "runs",
    "tickets",
    "tokens",
    "trusted",
    "usage",
    "verdicts",
    "watches",
    "wishes",
]

counters = Table("counters", metadata, Column("name", Text, primary_key=True), Column("value", Integer, nullable=False))

events = Table(
    "events",
    metadata,
    Column("n", Integer, primary_key=True, autoincrement=False),
    Column("at", Double, nullable=False),
    Column("kind", one_of(EventKind), nullable=False),
    Column("project", Integer),
    Column("ticket", Integer),
    Column("data", Json, nullable=False),
)

projects = Table(
    "projects",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("version", Integer, nullable=False),
    Column("name", AnyText, nullable=False),
    Column("root", AnyText, nullable=False),
    Column("common_dir", AnyText, nullable=False),
    Column("branch", AnyText, nullable=False),
    Column("worktrees", AnyText, nullable=False),
    Column("paused", Flag, nullable=False),
    Column("config_text", AnyText, nullable=False),
    Column("config_hash", Text, nullable=False),
    Column("config_origin", one_of(ConfigOrigin), nullable=False),
    Column("target", Text, nullable=False),
    Column("baseline_commit", Text),
    Column("baseline_verdict", one_of(CheckResult)),
    Column("person_tip", Text),
    Column("person_absorbed", Text),
    Column("person_refused", Text),
    Column("created_at", Double, nullable=False),
    Column("removed_at", Double),
    Column("workers", Integer),
    Column("retries", Integer),
    Column("frozen", Flag, nullable=False),
    Column("session", AnyText, nullable=False),
    Column("chosen", Flag, nullable=False),
    Column("base_commit", Text),
)

trusted = Table(
    "trusted",
    metadata,
    Column("project", Integer, primary_key=True, autoincrement=False),
    Column("hash", Text, primary_key=True),
    Column("at", Double, nullable=False),
)

requests = Table(
    "requests",
    metadata,
    Column("project", Integer, primary_key=True, autoincrement=False),
    Column("request", AnyText, primary_key=True),
    Column("answer", Json, nullable=False),
    Column("at", Double, nullable=False),
)

tickets = Table(
    "tickets",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("project", Integer, nullable=False),
    Column("version", Integer, nullable=False),
    Column("state", one_of(State), nullable=False),
    Column("live", Flag, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("interrupted", Flag, nullable=False),
    Column("spared", Integer, nullable=False),
    Column("skipped", Integer, nullable=False),
    Column("title", AnyText, nullable=False),
    Column("after", Json, nullable=False),
    Column("checkpoint", Flag, nullable=False),
    Column("epic", AnyText, nullable=False),
    Column("priority", Integer, nullable=False),
    Column("max_attempts", Integer, nullable=False),
    Column("driver", AnyText, nullable=False),
    Column("model", AnyText, nullable=False),
    Column("parked", Json),
    Column("base", Text),
    Column("plant", Text),
    Column("change_base", Text),
    Column("change_commit", Text),
    Column("landed", Text),
    Column("unchecked", Flag, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("moved_at", Double, nullable=False),
    Column("dropped_at", Double),
    Column("asks", Flag, nullable=False),
    Column("budget", Double),
    Column("dispatcher", Text, nullable=False),
    Column("tools", Json),
    Column("undoes", Integer),
    Column("review", one_of(ReviewPolicy)),
    Column("files", Json, nullable=False),
    Column("proofs", Json, nullable=False),
    Column("bound", Json, nullable=False),
    Column("acceptance", Json, nullable=False),
    Column("climbs", Flag, nullable=False),
    Column("team", AnyText, nullable=False),
    Column("crew", Text, nullable=False),
    Column("labels", Json, nullable=False),
    Column("command", AnyText, nullable=False),
    Column("reason", AnyText, nullable=False),
    Column("feedback", AnyText, nullable=False),
    Column("gate", one_of(LandingGate)),
    Column("place", Integer, nullable=False),
    Column("on", Json, nullable=False),
)

wishes = Table(
    "wishes",
    metadata,
    Column("ticket", Integer, primary_key=True, autoincrement=False),
    Column("text", AnyText, nullable=False),
    Column("context", AnyText, nullable=False),
    Column("criteria", AnyText, nullable=False),
    Column("plan", AnyText, nullable=False),
)

plans = Table(
    "plans",
    metadata,
    Column("ticket", Integer, primary_key=True, autoincrement=False),
    Column("stage", one_of(Planning), nullable=False),
    Column("text", AnyText, nullable=False),
    Column("decided_by", Text, nullable=False),
    Column("decided_at", Double),
    Column("why", AnyText, nullable=False),
)

crews = Table(
    "crews",
    metadata,
    Column("digest", Text, primary_key=True),
    Column("body", Json, nullable=False),
)

advice = Table(
    "advice",
    metadata,
    Column("ticket", Integer, primary_key=True, autoincrement=False),
    Column("turn", Integer, primary_key=True, autoincrement=False),
    Column("role", Text, primary_key=True),
    Column("run", Integer, nullable=False),
    Column("text", AnyText, nullable=False),
    Column("given_at", Double, nullable=False),
)

edges = Table(
    "edges",
    metadata,
    Column("ticket", Integer, primary_key=True, autoincrement=False),
    Column("after", Integer, primary_key=True, autoincrement=False),
)

runs = Table(
    "runs",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("project", Integer, nullable=False),
    Column("ticket", Integer),
    Column("agent", Integer),
    Column("attempt", Integer, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("started_at", Double, nullable=False),
    Column("ended_at", Double),
    Column("outcome", one_of(Outcome)),
    Column("detail", AnyText, nullable=False),
    Column("saved", Text),
    Column("conversation", Text, nullable=False),
    Column("access", AnyText, nullable=False),
    Column("prompt", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("part", one_of(RolePart), nullable=False),
    Column("plan", Integer),
    Column("driver", AnyText, nullable=False),
    Column("machine", AnyText, nullable=False),
)

rewinds = Table(
    "rewinds",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("ticket", Integer, nullable=False),
    Column("at", Double, nullable=False),
    Column("moment", Text, nullable=False),
    Column("run", Integer, nullable=False),
    Column("conversation", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("point", Text, nullable=False),
)

claims = Table(
    "claims",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("kind", one_of(JobKind), nullable=False),
    Column("subject", Integer, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("machine", AnyText, nullable=False),
    Column("until", Double),
    Column("active", Flag, nullable=False),
    Column("claimed_at", Double, nullable=False),
    Column("finished_at", Double),
    Column("why", AnyText, nullable=False),
)

receipts = Table(
    "receipts",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("project", Integer, nullable=False),
    Column("ticket", Integer),
    Column("name", AnyText, nullable=False),
    Column("command", AnyText, nullable=False),
    Column("commit_id", Text, nullable=False),
    Column("tree", Text, nullable=False),
    Column("verdict", one_of(CheckResult), nullable=False),
    Column("exit_code", Integer),
    Column("duration", Double, nullable=False),
    Column("made_at", Double, nullable=False),
    Column("tail", AnyText, nullable=False),
    Column("output", AnyText, nullable=False),
    Column("digest", Text, nullable=False),
    Column("machine", AnyText, nullable=False),
    Column("trusted", AnyText, nullable=False),
)

verdicts = Table(
    "verdicts",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("project", Integer, nullable=False),
    Column("ticket", Integer, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("reader", Text, nullable=False),
    Column("round", Integer, nullable=False),
    Column("base", Text, nullable=False),
    Column("commit_id", Text, nullable=False),
    Column("binding", Flag, nullable=False),
    Column("why", AnyText, nullable=False),
    Column("refused", Integer, nullable=False),
    Column("complaint", AnyText, nullable=False),
    Column("asked_at", Double, nullable=False),
    Column("given_at", Double),
    Column("verdict", Json),
    Column("notes", Json, nullable=False),
)

landings = Table(
    "landings",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("project", Integer, nullable=False),
    Column("base", Text, nullable=False),
    Column("commit_id", Text, nullable=False),
    Column("tree", Text, nullable=False),
    Column("tickets", Json, nullable=False),
    Column("opened_at", Double, nullable=False),
    Column("closed_at", Double),
    Column("landed", Flag),
)

usage = Table(
    "usage",
    metadata,
    Column("run", Integer, primary_key=True, autoincrement=False),
    Column("provider", AnyText, primary_key=True),
    Column("model", AnyText, primary_key=True),
    Column("day", Text, primary_key=True),
    Column("requests", Integer, nullable=False),
    Column("failed", Integer, nullable=False),
    Column("unpriced", Integer, nullable=False),
    Column("input", BigInteger, nullable=False),
    Column("output", BigInteger, nullable=False),
    Column("cache_read", BigInteger, nullable=False),
    Column("cache_write", BigInteger, nullable=False),
    Column("usd", Double, nullable=False),
    Column("seconds", Double, nullable=False),
)

usage_reports = Table(
    "usage_reports",
    metadata,
    Column("conversation", Text, primary_key=True),
    Column("model", AnyText, primary_key=True),
    Column("run", Integer, nullable=False),
    Column("event", Integer, nullable=False),
    Column("input", BigInteger, nullable=False),
    Column("output", BigInteger, nullable=False),
    Column("cache_read", BigInteger, nullable=False),
    Column("cache_write", BigInteger, nullable=False),
    Column("usd", Double, nullable=False),
)

readings = Table(
    "readings",
    metadata,
    Column("source", Text, primary_key=True),
    Column("file", Text, nullable=False),
    Column("place", BigInteger, nullable=False),
)

limits = Table(
    "limits",
    metadata,
    Column("provider", AnyText, primary_key=True),
    Column("at", Double, nullable=False),
    Column("status", Integer, nullable=False),
    Column("span", AnyText, nullable=False),
    Column("utilization", Double),
    Column("resets_at", Double),
)

questions = Table(
    "questions",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("key", Text, nullable=False),
    Column("kind", one_of(QuestionKind), nullable=False),
    Column("project", Integer, nullable=False),
    Column("agent", Text, nullable=False),
    Column("ticket", Integer),
    Column("run", Integer),
    Column("words", AnyText, nullable=False),
    Column("facts", Json, nullable=False),
    Column("choices", Json, nullable=False),
    Column("fallback", AnyText, nullable=False),
    Column("asked_at", Double, nullable=False),
    Column("deadline", Double, nullable=False),
    Column("settled_at", Double),
    Column("settled_by", one_of(SettledBy)),
    Column("choice", AnyText, nullable=False),
    Column("why", AnyText, nullable=False),
)
