"""The tables as the last migration leaves them."""

from __future__ import annotations

from sqlalchemy import Column, Double, Integer, Table, Text

from legion.domain.agents.agent import Planning, Tier
from legion.domain.agents.mail import Delivery, MessageKind
from legion.domain.checks import CheckResult
from legion.domain.events import EventKind
from legion.domain.plans.conditions import StepResult
from legion.domain.projects import ConfigOrigin
from legion.domain.questions import QuestionKind, SettledBy
from legion.domain.takeovers import TakeoverMode, TakeoverStage
from legion.domain.tickets.spec import LandingGate, ReviewPolicy
from legion.domain.tickets.ticket import State
from legion.store.database.columns import AnyText, Flag, Json, keys, metadata, one_of, optional, required
from legion.store.database.work_tables import (
    claims,
    epics,
    forge_feedback,
    forge_issues,
    forge_pulls,
    forges,
    head_leases,
    interventions,
    limits,
    machine_commands,
    machine_invitations,
    machine_runs,
    machines,
    note_uses,
    notes,
    observations,
    plan_documents,
    plan_rounds,
    plan_tickets,
    plans,
    race_lanes,
    read_positions,
    rewinds,
    routines,
    runs,
    spending_sums,
    usage,
    usage_reports,
)

__all__ = [
    "advice",
    "agents",
    "claimed_tickets",
    "claims",
    "counters",
    "crews",
    "devices",
    "edges",
    "epics",
    "events",
    "forge_feedback",
    "forge_issues",
    "forge_pulls",
    "forges",
    "head_leases",
    "interventions",
    "landings",
    "limits",
    "machine_commands",
    "machine_invitations",
    "machine_runs",
    "machines",
    "mail",
    "metadata",
    "note_uses",
    "notes",
    "observations",
    "plan_documents",
    "plan_rounds",
    "plan_tickets",
    "plans",
    "projects",
    "questions",
    "race_lanes",
    "read_positions",
    "receipts",
    "requests",
    "rewinds",
    "routines",
    "runs",
    "spending_sums",
    "takeovers",
    "ticket_details",
    "tickets",
    "tokens",
    "trusted",
    "usage",
    "usage_reports",
    "verdicts",
]

counters = Table("counters", metadata, *keys(Text, "name"), Column("value", Integer, nullable=False))

events = Table(
    "events",
    metadata,
    *keys(Integer, "n"),
    Column("at", Double, nullable=False),
    Column("kind", one_of(EventKind), nullable=False),
    *optional(Integer, "project", "ticket"),
    Column("data", Json, nullable=False),
)

projects = Table(
    "projects",
    metadata,
    *keys(Integer, "id"),
    Column("version", Integer, nullable=False),
    *required(AnyText, "name", "root", "common_dir", "branch", "worktrees"),
    Column("paused", Flag, nullable=False),
    Column("config_text", AnyText, nullable=False),
    Column("config_hash", Text, nullable=False),
    Column("config_origin", one_of(ConfigOrigin), nullable=False),
    Column("target", Text, nullable=False),
    Column("baseline_commit", Text),
    Column("baseline_verdict", one_of(CheckResult)),
    *optional(Text, "person_tip", "person_absorbed", "person_refused"),
    Column("created_at", Double, nullable=False),
    Column("removed_at", Double),
    *optional(Integer, "workers", "retries"),
    Column("frozen", Flag, nullable=False),
    Column("session", AnyText, nullable=False),
    Column("chosen", Flag, nullable=False),
    Column("base_commit", Text),
)

trusted = Table(
    "trusted", metadata, *keys(Integer, "project"), *keys(Text, "hash"), Column("at", Double, nullable=False)
)

requests = Table(
    "requests",
    metadata,
    *keys(AnyText, "scope", "request"),
    Column("answer", Json, nullable=False),
    Column("at", Double, nullable=False),
)

tickets = Table(
    "tickets",
    metadata,
    *keys(Integer, "id"),
    *required(Integer, "project", "version"),
    Column("state", one_of(State), nullable=False),
    Column("live", Flag, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("interrupted", Flag, nullable=False),
    *required(Integer, "spared", "skipped"),
    Column("title", AnyText, nullable=False),
    Column("after", Json, nullable=False),
    Column("checkpoint", Flag, nullable=False),
    Column("epic", AnyText, nullable=False),
    *required(Integer, "priority", "max_attempts"),
    *required(AnyText, "driver", "model"),
    Column("parked", Json),
    *optional(Text, "base", "plant", "change_base", "change_commit", "landed"),
    Column("unchecked", Flag, nullable=False),
    *required(Double, "created_at", "moved_at"),
    Column("dropped_at", Double),
    Column("asks", Flag, nullable=False),
    Column("budget", Double),
    Column("dispatcher", Text, nullable=False),
    Column("tools", Json),
    Column("undoes", Integer),
    Column("review", one_of(ReviewPolicy)),
    *required(Json, "files", "proofs", "bound", "acceptance"),
    Column("climbs", Flag, nullable=False),
    Column("team", AnyText, nullable=False),
    Column("crew", Text, nullable=False),
    Column("labels", Json, nullable=False),
    *required(AnyText, "command", "reason", "feedback"),
    Column("gate", one_of(LandingGate)),
    Column("place", Integer, nullable=False),
    Column("on", Json, nullable=False),
    *(Column(name, Json, nullable=False, server_default="[]") for name in ("claims", "retires")),
    Column("retired", AnyText, nullable=False, server_default=""),
    *(Column(name, Flag, nullable=False, server_default="0") for name in ("lost", "alone")),
    Column("behind", Integer),
)

ticket_details = Table(
    "ticket_details",
    metadata,
    *keys(Integer, "ticket"),
    *required(AnyText, "text", "context", "criteria", "plan"),
    Column("approach_stage", one_of(Planning)),
    Column("approach", AnyText),
    Column("approach_by", Text),
    Column("approach_at", Double),
    Column("approach_why", AnyText),
    Column("condition_about", Json),
    Column("condition_result", one_of(StepResult)),
    Column("condition_word", AnyText),
    Column("condition_negated", Flag),
    Column("adopted_at", Double),
    *optional(Text, "adopted_conversation", "adopted_source"),
)

crews = Table("crews", metadata, *keys(Text, "digest"), Column("body", Json, nullable=False))

advice = Table(
    "advice",
    metadata,
    *keys(Integer, "ticket", "turn"),
    *keys(Text, "role"),
    Column("run", Integer, nullable=False),
    Column("text", AnyText, nullable=False),
    Column("given_at", Double, nullable=False),
)

edges = Table("edges", metadata, *keys(Integer, "ticket", "after"))

receipts = Table(
    "receipts",
    metadata,
    *keys(Integer, "id"),
    Column("project", Integer, nullable=False),
    Column("ticket", Integer),
    *required(AnyText, "name", "command"),
    *required(Text, "commit_id", "tree"),
    Column("verdict", one_of(CheckResult), nullable=False),
    Column("exit_code", Integer),
    *required(Double, "duration", "made_at"),
    *required(AnyText, "tail", "output"),
    Column("digest", Text, nullable=False),
    *required(AnyText, "machine", "trusted"),
)

verdicts = Table(
    "verdicts",
    metadata,
    *keys(Integer, "id"),
    *required(Integer, "project", "ticket", "attempt"),
    Column("reviewer", Text, nullable=False),
    Column("round", Integer, nullable=False),
    *required(Text, "base", "commit_id"),
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
    *keys(Integer, "id"),
    Column("project", Integer, nullable=False),
    *required(Text, "base", "commit_id", "tree"),
    Column("tickets", Json, nullable=False),
    Column("opened_at", Double, nullable=False),
    Column("closed_at", Double),
    Column("landed", Flag),
)

questions = Table(
    "questions",
    metadata,
    *keys(Integer, "id"),
    Column("key", Text, nullable=False),
    Column("kind", one_of(QuestionKind), nullable=False),
    Column("project", Integer, nullable=False),
    Column("agent", Text, nullable=False),
    *optional(Integer, "ticket", "run"),
    Column("words", AnyText, nullable=False),
    *required(Json, "facts", "choices"),
    Column("fallback", AnyText, nullable=False),
    *required(Double, "asked_at", "deadline"),
    Column("settled_at", Double),
    Column("settled_by", one_of(SettledBy)),
    *required(AnyText, "choice", "why"),
)


# The tables of standing agents, their mail and tokens, and of browsers, as the last migration leaves them.

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
    *(Column(name, Flag, nullable=False, server_default="0") for name in ("compacted", "called")),
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
