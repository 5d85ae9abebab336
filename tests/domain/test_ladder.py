"""The ladder: so many attempts per rung, fresh eyes first, stronger models then, and every rule is said."""

from __future__ import annotations

import pytest

from legion.domain import ladder
from legion.domain.attempts import next_try
from legion.domain.tickets import Fail, Ticket, TryAgain, Wish

MODELS = ("haiku", "sonnet", "opus")


@pytest.mark.parametrize(
    ("model", "escalation", "fresh", "expected"),
    [
        ("", MODELS, True, ["", "", "opus"]),
        ("haiku", MODELS, True, ["haiku", "haiku", "sonnet", "opus"]),
        ("claude-Sonnet-4-5", MODELS, False, ["claude-Sonnet-4-5", "opus"]),
        ("opus", MODELS, True, ["opus", "opus"]),
        ("somebody-elses", MODELS, True, ["somebody-elses", "somebody-elses"]),
        ("haiku", (), False, ["haiku"]),
    ],
)
def test_only_models_above_the_tickets_own_are_climbed_to(model, escalation, fresh, expected):
    assert [rung.model for rung in ladder.rungs(model, escalation, fresh_eyes=fresh)] == expected


def ticket(attempt: int, spared: int = 0) -> Ticket:
    return Ticket(
        id=1, project=1, wish=Wish(title="t", text="", max_attempts=2, climbs=True), attempt=attempt, spared=spared
    )


@pytest.mark.parametrize("spared", [0, 7])
def test_a_rung_has_as_many_attempts_as_the_ticket_and_the_rule_is_said_once(spared):
    there = ladder.rungs("haiku", MODELS, fresh_eyes=True)
    said = []
    for attempt in range(1, 9):
        now = ticket(attempt + spared, spared)
        assert ladder.place(now) == (attempt - 1) // 2
        assert ladder.begins(now) == (attempt in (3, 5, 7))
        assert ladder.used_up(now, there) == (attempt == 8)
        step = next_try(now, "red", "output")
        if attempt == 1:
            assert isinstance(step, TryAgain)
            continue
        assert isinstance(step, Fail)
        again = ladder.climb(now, step, there)
        assert again.feedback == "output"
        said.append(again.reason.removeprefix("red"))
    assert said == [
        "; next: fresh eyes: a new conversation that hears what was tried",
        "",
        "; next: the next model of the ladder: sonnet",
        "",
        "; next: the next model of the ladder: opus",
        "",
        "",
    ]
