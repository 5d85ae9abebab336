"""An idle claim: reminders first, then a question; nothing while the agent has a reason to wait."""

from __future__ import annotations

import itertools

from legion.domain.scheduling.after_turn import (
    MOST_REMINDERS,
    PATIENCE,
    REMINDER,
    IdleStep,
    idle_step,
    question,
    reminder,
)


def test_every_combination():
    for idle, reminders, waits in itertools.product((0.0, PATIENCE - 1, PATIENCE, 1e6), range(5), (True, False)):
        step = idle_step(idle_for=idle, reminders=reminders, waits=waits)
        if waits or idle < PATIENCE:
            assert step is IdleStep.WAIT
        else:
            assert step is (IdleStep.REMIND if reminders < MOST_REMINDERS else IdleStep.ASK)


def test_the_texts_name_the_ticket_and_the_ways_out():
    text = reminder(7, "Export")
    assert text.startswith(f"{REMINDER} 7 (Export)")
    assert "`submit`" in text
    assert "`let_go`" in text
    assert "boss holds ticket 7 (Export)" in question("boss", 7, "Export")
