"""The tables of runs, claims, usage, the watchdog and machines, as the last migration leaves them."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Double, Integer, Table, Text

from legion.domain.agents.teams import RolePart
from legion.domain.machines.machine import CommandKind, MachineState, PlacementState
from legion.domain.rules import Rule
from legion.domain.runs import Outcome
from legion.domain.scheduling.decide import JobKind
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
