"""The daemon is killed at every step of a review: one verdict, one landing, and no attempt is spent."""

from __future__ import annotations

from pathlib import Path

import pytest

from legion.system.crash import Point
from tests.support import readers
from tests.support.legion import PATIENCE
from tests.support.looking import until_seen
from tests.support.readers import Office, approve, changes, finding
from tests.support.sampling import sampled

POINTS = [point for point in Point if point.value.startswith("jobs.review.")]
MOMENTS = [(point, nth) for point in POINTS for nth in (1, 2)]
"""The first look sends it back, the second approves."""


def dies_in_it(office: Office) -> int:
    """A ticket in whose review the daemon dies."""
    agent = 'echo "$LEGION_ATTEMPT" > one.txt'
    no = changes("one.txt", findings=[finding("one.txt", 1, "It must be two.")])
    ticket = office.dispatch("one", agent, no, approve("one.txt", settled=[1]))
    assert office.squad.process is not None
    office.squad.process.wait(PATIENCE)
    return ticket


@pytest.mark.parametrize(
    "moment", sampled(MOMENTS, 2, lambda moment: moment[1]), ids=lambda moment: f"{moment[0].value}-{moment[1]}"
)
def test_a_kill_in_a_review_costs_nothing(tmp_path: Path, moment: tuple[Point, int]):
    point, nth = moment
    armed = {"LEGION_CRASH_AT": f"{point.value}#{nth}", "LEGION_CRASH_LOG": str(tmp_path / "points")}
    with readers.office(tmp_path, extra=armed) as office:
        ticket = dies_in_it(office)
        office.squad.start()
        page = office.project.until(ticket, "done")
        assert (page.ticket.attempt, office.project.landed("one.txt")) == (2, "2\n")
        assert [(one.round, one.verdict) for one in page.reviews] == [(1, "changes"), (2, "approve")]
        assert [event.kind for event in page.history].count("review.given") == 2
        assert len(office.readers.told("one")) == 2, "who was started is found again, and started once"
        assert all(run.ended_at is not None for run in page.runs)
        trees = office.project.worktrees
        until_seen(office.squad, lambda: not list(trees.glob("ticket-*-reviewer")), "that the readers' trees are gone")
