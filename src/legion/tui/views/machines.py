"""Machines as rows: what each does and what is wrong with it, and the log of one."""

from __future__ import annotations

import time

from legion.client.text.states import MACHINE_RUN_STATES, MACHINE_STATES
from legion.client.text.terminal import Cell, Colour, clock, duration
from legion.tui.views.rows import BLANK, Row, clean, note, paragraph, table
from legion.wire.machine_pages import MachineLine, MachineList, MachineLog

_COLOURS = {"open": Colour.GREEN, "silent": Colour.RED, "outdated": Colour.RED, "disk full": Colour.RED}


def rows(found: MachineList, width: int) -> list[Row]:
    made = []
    lines = [(one.name, _cells(one)) for one in found.machines]
    for one, line in zip(found.machines, table(lines, width, keep=3), strict=True):
        made.append(line)
        if one.advice:
            made += paragraph(one.advice, width, indent=4, colour=Colour.YELLOW, key=one.name)
    if len(found.machines) < 2:
        text = "Only this host works for you. `legion machine invite NAME` lets another one in."
        made += [BLANK, *paragraph(text, width, colour=Colour.DIM)]
    elif found.reachable:
        made += [BLANK, *paragraph(f"Machines dial {found.reachable}.", width, colour=Colour.DIM)]
    return made


def _cells(one: MachineLine) -> list[Cell]:
    heard = f"heard {duration(max(0.0, time.time() - one.heard_at))} ago" if one.heard_at else ""
    state = clean(MACHINE_STATES.get(one.state, one.state))
    return [
        Cell(clean(one.name), Colour.BOLD),
        Cell("this host" if one.head else state, _COLOURS.get(one.state, Colour.YELLOW)),
        Cell(f"{one.runs} of {one.slots} slots"),
        Cell(heard, Colour.DIM),
        Cell(clean(" ".join(one.labels)), Colour.CYAN),
        Cell(clean(one.version), Colour.DIM),
    ]


def log_rows(found: MachineLog, width: int) -> list[Row]:
    """Newest first."""
    lines = [
        (
            "",
            [
                Cell(clock(one.placed_at), Colour.DIM),
                Cell(f"#{one.ticket}" if one.ticket is not None else ""),
                Cell(f"run {clean(one.run)}", Colour.DIM),
                Cell(clean(MACHINE_RUN_STATES.get(one.state, one.state))),
                Cell(clean(one.why), Colour.YELLOW),
            ],
        )
        for one in reversed(found.runs)
    ]
    return table(lines, width, keep=2) or [note("It was given no run yet.")]
