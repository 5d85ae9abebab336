"""When a change looks risky, and how often readers may send it back."""

from __future__ import annotations

from itertools import product

import pytest

from legion.domain.review.policy import (
    LARGE,
    SMALL,
    ChangeScope,
    ReviewResult,
    RiskLevel,
    quorum,
    risk_level,
    risks,
    rounds,
)
from legion.domain.review.verdicts import Finding, ReviewRequest, Ruling, Severity, Verdict
from legion.domain.tickets.spec import TicketSpec
from legion.domain.tickets.ticket import State, Ticket

PLAIN = {"paths": ("a.py",), "lines": 3}
SIGNS = [
    ({}, ""),
    ({"lines": LARGE}, ""),
    ({"lines": LARGE + 1}, "it changes 401 lines"),
    ({"paths": ("core/x.py", "a.py")}, "it touches what is always reviewed (core/x.py)"),
    ({"protected": ("a", "b", "c", "d")}, "it touches protected files (a, b, c, ...)"),
    ({"weakened": ("t.py",)}, "tests look weaker (t.py)"),
    ({"paths": ("db/migrations/1.py",)}, "it changes the database (db/migrations/1.py)"),
    ({"paths": ("a/Schema.SQL",)}, "it changes the database (a/Schema.SQL)"),
    ({"paths": ("web/package.json",)}, "it may change dependencies (web/package.json)"),
    ({"unread": ("a.bin",)}, "git shows no lines of it (a.bin)"),
    ({"attempts": 2}, ""),
    ({"attempts": 3}, "it took 3 attempts"),
    ({"unproven": 1}, "one criterion has no proof"),
    ({"unproven": 2}, "2 criteria have no proof"),
]


@pytest.mark.parametrize(("facts", "why"), SIGNS)
def test_each_risk_is_said(facts: dict[str, object], why: str):
    touch = ChangeScope(**{**PLAIN, **facts})  # type: ignore[arg-type]
    assert risks(touch, ["core/**"]) == ((why,) if why else ())


LEVELS = [
    ({}, RiskLevel.LOW),
    ({"lines": SMALL}, RiskLevel.LOW),
    ({"lines": SMALL + 1}, RiskLevel.MIDDLE),
    *(({sign: value}, RiskLevel.HIGH) for sign, value in (("protected", ("x",)), ("weakened", ("x",)), ("lines", 401))),
    *(({"paths": (path,)}, RiskLevel.HIGH) for path in ("core/x.py", "app/migrations/2.py", "x.sql")),
    *(({"paths": (path,)}, RiskLevel.MIDDLE) for path in ("pyproject.toml", "web/package.json")),
    ({"unread": ("a.bin",), "lines": 0}, RiskLevel.MIDDLE),
    *(({sign: 3}, RiskLevel.MIDDLE) for sign in ("unproven", "attempts")),
    ({"protected": ("x",), "attempts": 5}, RiskLevel.HIGH),
]


@pytest.mark.parametrize(("facts", "level"), LEVELS)
def test_the_gravest_sign_decides_the_level(facts: dict[str, object], level: RiskLevel):
    assert risk_level(ChangeScope(**{**PLAIN, **facts}), ["core/**"]) is level  # type: ignore[arg-type]


NO = Verdict(
    ruling=Ruling.CHANGES,
    summary="No.",
    read=(),
    findings=(Finding(weight=Severity.BLOCKING, file="a.py", line=1, text="No."),),
)
YES = Verdict(ruling=Ruling.APPROVE, summary="Yes.", read=())


def reading(attempt: int, verdict: Verdict | None = NO, *, binding: bool = True, reader: str = "qa") -> ReviewRequest:
    return ReviewRequest(
        id=attempt,
        project=1,
        ticket=7,
        attempt=attempt,
        reviewer=reader,
        round=attempt,
        base="b",
        commit="c",
        binding=binding,
        given_at=float(attempt),
        verdict=verdict,
    )


def ticket(attempt: int, spared: int = 0) -> Ticket:
    spec = TicketSpec(title="", text="", max_attempts=3)
    return Ticket(id=7, project=1, spec=spec, state=State.REVIEWING, attempt=attempt, spared=spared)


def test_rounds_count_what_was_sent_back_by_all_readers_together():
    read = [reading(1), reading(2, reader="lead"), reading(3, YES), reading(3, None), reading(3, binding=False)]
    assert rounds(ticket(3), read) == 2
    assert rounds(ticket(3), [*read, reading(2), reading(1, reader="qa")]) == 2, "one round has several readers"


def test_rounds_begin_anew_with_the_next_rung_a_retry_and_a_persons_word():
    read = [reading(1), reading(2), reading(3), reading(4)]
    assert rounds(ticket(4), read) == 1
    assert rounds(ticket(4, spared=2), read) == 2
    assert rounds(ticket(3), read, since=1.5) == 3 - 1 + 1


def test_so_many_approvals_are_enough_as_are_asked_for():
    """Every board of up to four readers, against a slow reading of the rule."""
    for approved, against, silent, pending in product(range(5), repeat=4):
        everyone = approved + against + silent + pending
        if not 0 < everyone <= 4:
            continue
        for needed in range(6):
            enough = everyone if needed == 0 else min(needed, everyone)
            result = quorum(approved=approved, against=against, silent=silent, pending=pending, needed=needed)
            if enough == everyone and pending:
                assert result is ReviewResult.OPEN
            elif approved >= enough:
                assert result is ReviewResult.APPROVED
            elif pending and approved + pending >= enough:
                assert result is ReviewResult.OPEN
            else:
                assert result is (ReviewResult.SENT_BACK if against else ReviewResult.NO_VERDICT)
