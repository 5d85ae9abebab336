"""The ladder: so many attempts per rung, fresh eyes first, stronger models then, and every rule is said."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from legion.domain.tickets import ladder
from legion.domain.tickets.ladder import failed_resolutions, next_try
from legion.domain.tickets.spec import TicketSpec
from legion.domain.tickets.ticket import Cause, Fail, Retry, Start, State, Ticket, TryAgain, move

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
        id=1,
        project=1,
        spec=TicketSpec(title="t", text="", max_attempts=2, climbs=True),
        attempt=attempt,
        spared=spared,
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
        "; next: fresh eyes: a new conversation with a summary of what was tried",
        "",
        "; next: the next model of the ladder: sonnet",
        "",
        "; next: the next model of the ladder: opus",
        "",
        "",
    ]


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("sonnet", ["sonnet", "sonnet", "opus"]),
        ("", ["", "", "sonnet", "opus"]),
        ("haiku", ["haiku", "haiku", "sonnet", "opus"]),
        ("opus", ["opus", "opus"]),
    ],
)
def test_a_labels_ladder_is_climbed_whole_by_a_model_that_is_not_on_it(model, expected):
    there = ladder.rungs(model, ("sonnet", "opus"), fresh_eyes=True, label="urgent")
    assert [rung.model for rung in there] == expected
    assert all("of the ladder of urgent: " in rung.rule for rung in there[2:])


def test_the_first_label_with_a_ladder_counts():
    ladders = {"urgent": ("opus",), "docs": ("haiku",)}
    assert ladder.label_of(("ui", "docs", "urgent"), ladders) == "docs"
    assert ladder.label_of(("ui",), ladders) == ""
    assert ladder.label_of((), ladders) == ""


@pytest.mark.parametrize("made", [1, 2])
def test_a_rung_that_is_left_early_counts_as_used_up(made):
    there = ladder.rungs("haiku", MODELS, fresh_eyes=True)
    now = replace(ticket(made), state=State.WORKING)
    for attempt, rule in enumerate(there[1:], made + 1):
        again = ladder.climb(now, Fail("r", "told", why="it loops", leaves=True), there)
        assert again.reason == f"it loops; next: {rule.rule}"
        now = move(move(now, again, 1.0), Start("target"), 2.0)
        assert (now.attempt, ladder.begins(now)) == (attempt, True)
        assert there[ladder.place(now)] == rule
        assert not ladder.used_up(now, there)
    assert ladder.used_up(ladder.leaving(now), there)
    last = ladder.climb(now, Fail("r", "told", why="it loops", leaves=True), there)
    assert last.reason == "it loops"
    tried = move(move(now, last, 3.0), Fail("a person wants more"), 4.0)
    assert ladder.used_up(tried, there)
    fresh = move(move(tried, Retry(), 5.0), Start("target"), 6.0)
    assert (ladder.place(fresh), ladder.begins(fresh), fresh.skipped) == (0, False, 0)


def test_the_attempts_of_a_rung_that_was_reached_early_are_all_there():
    there = ladder.rungs("haiku", MODELS, fresh_eyes=True)
    now = replace(ticket(1), state=State.WORKING)
    now = move(move(now, ladder.climb(now, Fail("r", why="w", leaves=True), there), 1.0), Start("t"), 2.0)
    assert (now.attempt, ladder.place(now)) == (2, 1)
    step = next_try(now, "red", "output")
    assert isinstance(step, Fail)
    now = move(move(now, ladder.climb(now, step, there), 3.0), Start("t"), 4.0)
    assert (now.attempt, ladder.place(now), ladder.begins(now)) == (3, 1, False)


def test_the_ladder_may_lead_to_another_program():
    first, fresh, second, third, fourth = ladder.rungs(
        "haiku", ["haiku", "opus", "@codex", "@codex  gpt-5"], fresh_eyes=True
    )
    assert [one.driver for one in (first, fresh, second)] == ["", "", ""]
    assert len(ladder.rungs("gpt-5", ["@codex gpt-5", "opus"], fresh_eyes=False, label="odd")) == 2
    assert (third.driver, third.model, third.rule) == ("codex", "", "the next program of the ladder: codex")
    assert (fourth.driver, fourth.model, fourth.rule) == (
        "codex",
        "gpt-5",
        "the next program of the ladder: codex gpt-5",
    )


@pytest.mark.parametrize("causes", [[*one] for many in range(5) for one in product(Cause, repeat=many)])
def test_resolutions_that_did_not_land_are_counted_until_a_review_and_on_where_a_neutral_hand_works(
    causes: list[Cause],
):
    """Told a second time: from the first conflict on; a review starts anew, unless a neutral hand is at work."""
    since = None
    for number, cause in enumerate(causes):
        if cause is Cause.REVIEW and (since is None or number - since <= 2):
            since = None
        elif cause is Cause.CONFLICT and since is None:
            since = number
    assert failed_resolutions(causes) == (0 if since is None else len(causes) - since - 1)
