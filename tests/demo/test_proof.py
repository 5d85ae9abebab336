"""Losses are found by comparing events with a real repository."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from legion.demo.rehearse import LandedFacts, losses
from legion.wire.ticket_pages import TicketPage
from legion.wire.tickets import EventLine, TicketLine


def commit(hub: Path, text: str) -> str:
    (hub / "file.txt").write_text(text)
    subprocess.run(["git", "add", "--all"], cwd=hub, check=True)
    who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.invalid"]
    subprocess.run(["git", *who, "commit", "--quiet", "--message", text], cwd=hub, check=True)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=hub, check=True, capture_output=True, text=True)
    return head.stdout.strip()


def event(kind: str, ticket: int | None = None, **data: object) -> EventLine:
    return EventLine(n=1, at=0.0, kind=kind, project="p", ticket=ticket, data=data)


def receipt(commit: str, name: str = "test", verdict: str = "green") -> EventLine:
    return event("check.receipt", commit=commit, name=name, verdict=verdict)


def page(state: str, landed: str | None) -> TicketPage:
    line = TicketLine(
        id=1, project="p", title="t", state=state, after=[], attempt=1, max_attempts=3, checkpoint=False, epic="",
        priority=0, reason="", unchecked=False, held_up_by=[], created_at=0.0, moved_at=0.0,
    )  # fmt: skip
    return TicketPage(
        ticket=line, text="", context="", criteria="", plan="", files=[], prove=[], driver="", command="", model="",
        feedback="", parked_until=None, base=None, change=None, landed=landed, worktree=None, runs=[], receipts=[],
        history=[], changed_files=[],
    )  # fmt: skip


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    return tmp_path


@pytest.fixture
def well(hub: Path) -> LandedFacts:
    first, second = commit(hub, "one"), commit(hub, "two")
    outcome = [receipt(first), receipt(second), event("landing.landed", 1), event("target.moved", commit=second)]
    return LandedFacts(hub=hub / ".git", target=second, events=outcome, pages=[page("done", second)])


def test_where_all_is_well_nothing_is_found(well):
    assert losses(well) == []


def test_a_ticket_that_waits_for_ever_is_found(well):
    (found,) = losses(replace(well, pages=[page("queued", None)]))
    assert found == "Ticket 1 has not ended: queued."


@pytest.mark.parametrize("outcome", [[], ["red"]])
def test_a_target_that_moved_to_what_was_not_green_is_found(well, outcome):
    others = [one for one in well.events if one.data.get("commit") != well.target or one.kind != "check.receipt"]
    verdicts = [receipt(well.target, verdict=verdict) for verdict in outcome]
    (found,) = losses(replace(well, events=[*others, *verdicts]))
    assert found == f"The target moved to {well.target[:8]} without a green test."


def test_a_green_receipt_for_the_same_tree_counts_also_from_another_commit(well, hub):
    commit(hub, "three")
    same_tree = commit(hub, "two")
    moved = event("target.moved", commit=same_tree)
    assert losses(replace(well, target=same_tree, events=[*well.events, moved])) == []


def test_a_target_that_moved_behind_our_back_is_found(well, hub):
    (found,) = losses(replace(well, target=commit(hub, "nobody landed this")))
    assert "and the last landing left it at" in found


def test_a_change_that_landed_twice_or_not_at_all_is_found(well, hub):
    (twice,) = losses(replace(well, events=[*well.events, event("landing.landed", 1)]))
    assert twice == "Ticket 1 landed 2 times."
    elsewhere = commit(hub, "three")
    (gone,) = losses(replace(well, pages=[page("done", elsewhere)]))
    assert gone == "Ticket 1 is done, but its change is not in the target."
