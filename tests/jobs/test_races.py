"""Races over a real hub and store: finished lanes wait, one wins, the others are kept, what follows comes after it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from legion.domain.agents.teams import REVIEWER
from legion.domain.events import EventKind
from legion.domain.review.verdicts import Finding, Ruling, Severity, Verdict
from legion.domain.scheduling.decide import JobKind, decide
from legion.domain.scheduling.job_places import StartJob
from legion.domain.tickets.ticket import Approve, Fail, Propose, Prove, Start, State, Ticket
from legion.jobs.attempts import review_rounds
from legion.jobs.landing.job import settle
from legion.store import snapshot
from legion.store.board import races, tickets, verdicts
from tests.jobs.test_queue import Yard
from tests.store.making import add_ticket


class Track(Yard):
    def lanes(self, count: int) -> list[int]:
        with self.context.store.write() as tx:
            made = [add_ticket(tx, 1).id for _ in range(count)]
            races.create(tx, 1, [(number, "") for number in made])
        return made

    def finishes(self, ticket: int, size: int) -> None:
        change = self.changes[size]
        with self.context.store.write() as tx:
            for step in (Start(change.base), Propose(change), Prove()):
                tickets.move(tx, ticket, step)

    def fails(self, ticket: int) -> None:
        with self.context.store.write() as tx:
            tickets.move(tx, ticket, Fail("no"))

    def ticket(self, number: int) -> Ticket:
        with self.context.store.read() as tx:
            return tickets.get(tx, number)

    def starts_landing(self) -> bool:
        with self.context.store.read() as tx:
            board = snapshot.load(tx, 4, {})
        return StartJob(JobKind.LAND, 1) in decide(board, 0.0).commands

    def reads(self, ticket: int, *found: Severity, ranking: tuple[str, ...] = ()) -> None:
        """A reader approves, with findings, and ranks commits."""
        with self.context.store.write() as tx:
            (asked,) = [one for one in verdicts.of_ticket(tx, ticket) if one.given_at is None]
            findings = tuple(Finding(weight=one, file="", line=None, text="x") for one in found)
            verdict = Verdict(ruling=Ruling.APPROVE, summary="", findings=findings, read=(), ranking=ranking)
            verdicts.give(tx, asked.id, verdict)
            tickets.move(tx, ticket, Approve())


@pytest.fixture
def track(tmp_path: Path) -> Iterator[Track]:
    made = Track(tmp_path)
    yield made
    made.office.close()


def test_a_finished_lane_waits_for_the_others_and_the_smallest_lands(track: Track):
    one, two, three = track.lanes(3)
    with track.context.store.write() as tx:
        later = add_ticket(tx, 1, after=(one,)).id
    track.finishes(one, 40)
    track.finishes(two, 5)
    settle(track.context, 1)
    assert (track.order(), track.ticket(one).state) == ([], State.LANDING)
    assert not track.starts_landing()
    track.fails(three)
    assert track.starts_landing()
    assert track.order() == [], "no lane lands before the race is decided"
    settle(track.context, 1)
    assert track.order() == [two]
    lost = track.ticket(one)
    assert lost.state is State.STOPPED
    assert lost.change == track.changes[40], "its change is kept"
    assert lost.reason.startswith("lost the race to ticket 2: proven, and larger (40 lines)")
    assert track.ticket(later).spec.after == (two,)
    with track.context.store.read() as tx:
        results = [(lane.ticket, lane.won, lane.lines) for lane in races.of_ticket(tx, one)]
    assert results == [(one, False, 40), (two, True, 5), (three, False, None)]
    (event,) = track.said(EventKind.RACE_DECIDED)
    assert event["winner"] == two
    settle(track.context, 1)
    assert track.order() == [two]


def test_one_reader_ranks_changes_of_one_size(track: Track):
    one, two = track.lanes(2)
    track.finishes(one, 1)
    track.finishes(two, 5)
    settle(track.context, 1)
    assert [track.ticket(number).state for number in (one, two)] == [State.REVIEWING, State.LANDING]
    with track.context.store.read() as tx:
        asked = verdicts.of_ticket(tx, one)
    why = "its reader compares all attempts of the race"
    assert [(request.reviewer, request.why) for request in asked] == [(REVIEWER, why)]
    assert not track.starts_landing()
    track.reads(one, ranking=(track.changes[5].commit, track.changes[1].commit))
    settle(track.context, 1)
    assert track.order() == [two]
    assert "a reader ranks ticket 2 first" in track.ticket(one).reason


def test_without_a_ranking_each_change_is_read_and_the_findings_decide(track: Track):
    one, two = track.lanes(2)
    track.finishes(one, 5)
    track.finishes(two, 5)
    for lane, found in ((one, (Severity.CONCERN, Severity.NIT)), (two, (Severity.NIT,))):
        settle(track.context, 1)
        track.reads(lane, *found)
    settle(track.context, 1)
    assert track.order() == [two]


def test_a_lane_whose_reader_failed_stays_in_the_race(track: Track):
    one, two = track.lanes(2)
    track.finishes(one, 5)
    track.finishes(two, 5)
    for lane in (one, two):
        settle(track.context, 1)
        with track.context.store.write() as tx:
            verdicts.give(tx, verdicts.of_ticket(tx, lane)[0].id, None)
            step = review_rounds.next_step(tx, track.ticket(lane), most=3, within=60.0)
            assert step == Approve(), "the change needs no review by itself, so no person is asked"
            tickets.move(tx, lane, step)
    settle(track.context, 1)
    assert track.order() == [one], "both are as good, and it came first"


def test_without_a_finished_lane_nothing_is_decided(track: Track):
    one, two = track.lanes(2)
    track.fails(one)
    track.fails(two)
    settle(track.context, 1)
    assert track.said(EventKind.RACE_DECIDED) == []
