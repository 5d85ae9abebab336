"""The tables of runs, claims, usage, machines, plans and forges, as the last migration leaves them."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Double, Integer, Table, Text

from legion.domain.agents.teams import RolePart
from legion.domain.forge.connections import ClaimStage, ForgeKind, TokenFrom
from legion.domain.forge.pulls import CiResult, PullStage
from legion.domain.machines.machine import CommandKind, MachineState, PlacementState
from legion.domain.notes import NoteKind
from legion.domain.plans.plan import PlanAuthor, PlanSource, PlanState
from legion.domain.plans.specification import SpecStage
from legion.domain.rules import Rule
from legion.domain.runs import Outcome
from legion.domain.scheduling.decide import JobKind
from legion.domain.tickets.spec import LandingGate
from legion.domain.watchdog.diagnosis import WatchdogStep
from legion.store.database.columns import AnyText, Flag, Json, keys, metadata, one_of, optional, required

runs = Table(
    "runs",
    metadata,
    *keys(Integer, "id"),
    Column("project", Integer, nullable=False),
    *optional(Integer, "ticket", "agent"),
    *required(Integer, "attempt", "generation"),
    Column("started_at", Double, nullable=False),
    Column("ended_at", Double),
    Column("outcome", one_of(Outcome)),
    Column("detail", AnyText, nullable=False),
    Column("saved", Text),
    Column("conversation", Text, nullable=False),
    Column("access", AnyText, nullable=False),
    *required(Text, "prompt", "role"),
    Column("part", one_of(RolePart), nullable=False),
    Column("plan", Integer),
    *required(AnyText, "driver", "machine"),
)

rewinds = Table(
    "rewinds",
    metadata,
    *keys(Integer, "id"),
    Column("ticket", Integer, nullable=False),
    Column("at", Double, nullable=False),
    Column("moment", Text, nullable=False),
    Column("run", Integer, nullable=False),
    *required(Text, "conversation", "source", "point"),
)

claims = Table(
    "claims",
    metadata,
    *keys(Integer, "id"),
    Column("kind", one_of(JobKind), nullable=False),
    *required(Integer, "subject", "generation"),
    Column("machine", AnyText, nullable=False),
    Column("until", Double),
    Column("active", Flag, nullable=False),
    Column("claimed_at", Double, nullable=False),
    Column("finished_at", Double),
    Column("why", AnyText, nullable=False),
)

usage = Table(
    "usage",
    metadata,
    *keys(Integer, "run"),
    *keys(AnyText, "provider", "model"),
    *keys(Text, "day"),
    *required(Integer, "requests", "failed", "unpriced"),
    *required(BigInteger, "input", "output", "cache_read", "cache_write"),
    *required(Double, "usd", "seconds"),
)

spending_sums = Table(
    "spending_sums",
    metadata,
    *keys(Text, "kind"),
    *keys(Integer, "project"),
    *keys(AnyText, "name"),
    *keys(Text, "day"),
    *required(BigInteger, "requests", "failed", "unpriced", "input", "output", "cache_read", "cache_write"),
    *required(Double, "usd", "seconds"),
)

usage_reports = Table(
    "usage_reports",
    metadata,
    *keys(Text, "conversation"),
    *keys(AnyText, "model"),
    *required(Integer, "run", "event"),
    *required(BigInteger, "input", "output", "cache_read", "cache_write"),
    Column("usd", Double, nullable=False),
)

read_positions = Table(
    "read_positions",
    metadata,
    *keys(Text, "source"),
    Column("file", Text, nullable=False),
    Column("place", BigInteger, nullable=False),
)

limits = Table(
    "limits",
    metadata,
    *keys(AnyText, "provider"),
    Column("at", Double, nullable=False),
    Column("status", Integer, nullable=False),
    Column("span", AnyText, nullable=False),
    *optional(Double, "utilization", "resets_at"),
)

observations = Table(
    "observations",
    metadata,
    *keys(Integer, "run"),
    Column("tree", Text, nullable=False),
    Column("tree_since", Integer, nullable=False),
    Column("tree_at", Double, nullable=False),
    Column("idle_since", Double),
    Column("cpu", Double, nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("processes", Text, nullable=False),
)

interventions = Table(
    "interventions",
    metadata,
    *keys(Integer, "run", "number"),
    Column("action", one_of(WatchdogStep), nullable=False),
    Column("rule", one_of(Rule), nullable=False),
    *required(AnyText, "sign", "why", "advice"),
    Column("message", Text, nullable=False),
    Column("after", Integer, nullable=False),
    Column("at", Double, nullable=False),
    Column("taken_at", Double),
)

machines = Table(
    "machines",
    metadata,
    *keys(Integer, "id"),
    Column("name", Text, nullable=False),
    Column("labels", Json, nullable=False),
    Column("slots", Integer, nullable=False),
    Column("state", one_of(MachineState), nullable=False),
    Column("token_hash", Text),
    *required(AnyText, "boot", "version"),
    Column("protocol", Integer, nullable=False),
    Column("toolchain", AnyText, nullable=False),
    Column("quiet_hours", Text, nullable=False),
    Column("mirrors", Json, nullable=False),
    Column("heard_at", Double),
    Column("joined_at", Double, nullable=False),
    Column("removed_at", Double),
    Column("disk_free_mb", Integer),
    Column("disk_floor_mb", Integer, nullable=False, server_default="0"),
    Column("lost", Integer, nullable=False, server_default="0"),
    Column("lost_at", Double),
)

machine_invitations = Table(
    "machine_invitations",
    metadata,
    *keys(Integer, "id"),
    *required(Text, "code_hash", "name"),
    Column("labels", Json, nullable=False),
    Column("slots", Integer, nullable=False),
    Column("quiet_hours", Text, nullable=False),
    *required(Double, "made_at", "ends_at"),
    Column("used_at", Double),
)

machine_runs = Table(
    "machine_runs",
    metadata,
    *keys(Integer, "run"),
    Column("name", Text, nullable=False),
    *required(Integer, "project", "generation", "machine"),
    Column("state", one_of(PlacementState), nullable=False),
    Column("placed_at", Double, nullable=False),
    Column("taken_at", Double),
    Column("taken_by", AnyText, nullable=False),
    Column("beats", Integer, nullable=False),
    Column("ended_at", Double),
    Column("why", AnyText, nullable=False),
)

machine_commands = Table(
    "machine_commands",
    metadata,
    *keys(Integer, "id"),
    Column("run", Integer, nullable=False),
    Column("name", Text, nullable=False),
    Column("machine", Integer, nullable=False),
    Column("kind", one_of(CommandKind), nullable=False),
    Column("facts", Json, nullable=False),
    Column("made_at", Double, nullable=False),
)

head_leases = Table(
    "head_leases",
    metadata,
    *keys(Integer, "id"),
    Column("holder", AnyText, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("until", Double, nullable=False),
)


# The tables of plans, epics, races, notes and routines, as the last migration leaves them.

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
    *required(Flag, "spec", "short", "stops", "keep_docs", "reads"),
    *required(Text, "depth"),
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

note_uses = Table("note_uses", metadata, *keys(Integer, "note", "ticket"), Column("at", Double, nullable=False))

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


# The tables of forges, as the last migration leaves them.

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
