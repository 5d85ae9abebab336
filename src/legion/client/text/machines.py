"""Machines as rows: what each does and what is wrong with it, and the log of one."""

from __future__ import annotations

import time

from legion.client.text.rows import BLANK, Column, Columns, Row, listing, note, paragraph
from legion.client.text.terminal import Colour, clock, duration
from legion.client.text.tickets import MACHINE_RUN_STATES, MACHINE_STATES
from legion.wire.machines import MachineLine, MachineList, MachineLog, MachineRunLine

_COLOURS = {
    "open": Colour.GREEN, "paused": Colour.YELLOW, "draining": Colour.YELLOW, "quiet": Colour.DIM,
    "silent": Colour.RED, "outdated": Colour.RED, "disk full": Colour.RED,
}  # fmt: skip


def _heard(one: MachineLine) -> str:
    if one.head:
        return "this host"
    return "never heard" if one.heard_at is None else f"heard {duration(max(0.0, time.time() - one.heard_at))} ago"


_MACHINE: Columns[MachineLine] = (
    Column("name", lambda one: one.name, Colour.BOLD, keeps=True),
    Column(
        "state",
        lambda one: MACHINE_STATES.get(one.state, one.state),
        lambda one: _COLOURS.get(one.state, Colour.NONE),
        keeps=True,
    ),
    Column("slots", lambda one: f"{one.runs}/{one.slots}", keeps=True),
    Column("heard", _heard, Colour.DIM),
    Column("labels", lambda one: ", ".join(one.labels), Colour.CYAN),
    Column("quiet", lambda one: f"quiet {one.quiet_hours}" if one.quiet_hours else "", Colour.DIM),
    Column("release", lambda one: one.version, Colour.DIM),
)
_RUN: Columns[MachineRunLine] = (
    Column("placed", lambda one: clock(one.placed_at), Colour.DIM, keeps=True),
    Column("ticket", lambda one: f"ticket {one.ticket}" if one.ticket is not None else one.run, keeps=True),
    Column(
        "state",
        lambda one: MACHINE_RUN_STATES.get(one.state, one.state),
        lambda one: Colour.YELLOW if one.state == "lapsed" else Colour.NONE,
    ),
    Column("lasted", lambda one: duration(one.ended_at - one.placed_at) if one.ended_at is not None else ""),
    Column("why", lambda one: one.why, Colour.DIM),
)


def _advice(one: MachineLine, width: int) -> list[Row]:
    text = f"{one.name}: {one.advice}" if one.advice else ""
    return paragraph(text, width, indent=2, colour=Colour.YELLOW, key=one.name)


def rows(found: MachineList, width: int) -> list[Row]:
    made = listing(_MACHINE, found.machines, width, key=lambda one: one.name, below=lambda one: _advice(one, width))
    told = [f"{url} serves machines too." for url in found.also]
    if len(found.machines) < 2:
        told.append("No other machine yet; `legion machine invite NAME` lets one in.")
    elif found.reachable:
        told.append(f"Machines dial {found.reachable}.")
    return [
        *made,
        *([BLANK] if told else []),
        *(row for text in told for row in paragraph(text, width, colour=Colour.DIM)),
    ]


def log_rows(found: MachineLog, width: int) -> list[Row]:
    """The newest last, as in every log."""
    runs = listing(_RUN, found.runs, width) or [note("It was given no runs yet.")]
    return [*listing(_MACHINE, [found.machine], width, below=lambda one: _advice(one, width)), *runs]
