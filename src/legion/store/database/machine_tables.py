"""The tables of machines and of the lease of their head, as the last migration leaves them."""

from __future__ import annotations

from sqlalchemy import Column, Double, Integer, Table, Text

from legion.domain.machines.machine import CommandKind, MachineState, PlacementState
from legion.store.database.columns import AnyText, Json, metadata, one_of

machines = Table(
    "machines",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False),
    Column("labels", Json, nullable=False),
    Column("slots", Integer, nullable=False),
    Column("state", one_of(MachineState), nullable=False),
    Column("token_hash", Text),
    Column("boot", AnyText, nullable=False),
    Column("version", AnyText, nullable=False),
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
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("code_hash", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("labels", Json, nullable=False),
    Column("slots", Integer, nullable=False),
    Column("quiet_hours", Text, nullable=False),
    Column("made_at", Double, nullable=False),
    Column("ends_at", Double, nullable=False),
    Column("used_at", Double),
)

machine_runs = Table(
    "machine_runs",
    metadata,
    Column("run", Integer, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False),
    Column("project", Integer, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("machine", Integer, nullable=False),
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
    Column("id", Integer, primary_key=True, autoincrement=False),
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
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("holder", AnyText, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("until", Double, nullable=False),
)
