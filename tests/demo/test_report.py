"""The last lines of a rehearsal name the next step."""

from __future__ import annotations

import pytest

from legion.cli.base.output import Screen
from legion.demo.report import Rehearsed, RehearsedTicket, lines_of
from legion.wire.board import Graph

SCREEN = Screen(tty=False, colours=False, unicode=True, width=200, height=None)


def rehearsed(state: str, cause: str = "", folder: str | None = None) -> Rehearsed:
    ticket = RehearsedTicket(
        id=1, key="a", title="A", state=state, reason="", after=[], attempts=1, runs=[], seconds=1.0, cause=cause
    )
    return Rehearsed(
        ok=state == "done", problems=[], seed=None, seconds=1.0, chain=[1], chain_seconds=1.0, claude="2", landed=[],
        limits=0, troubles={}, killed=[], requests=1, tokens=1, usd=0.1, tickets=[ticket], folder=folder,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("outcome", "keep", "overlap"),
    [
        (rehearsed("done"), False, False),
        (rehearsed("done", "conflict"), False, False),
        (rehearsed("failed", "checks"), True, False),
        (rehearsed("failed", "conflict"), True, True),
        (rehearsed("failed", "conflict", folder="there"), False, True),
    ],
)
def test_a_failure_names_the_next_step(outcome: Rehearsed, keep: bool, overlap: bool):
    lines = "\n".join(lines_of(outcome, Graph(tickets=[], edges=[], waves=[], critical_path=[]), SCREEN))
    assert ("--keep" in lines, "conflicts.overlap" in lines) == (keep, overlap)
