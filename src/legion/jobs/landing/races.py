"""Decides races whose lanes have all finished or are out, before the merge queue takes any of them.

The decision is one transaction: the winner stays in the queue, the others are stopped with their changes kept, and what
comes after any lane comes after the winner. Killed before it, the next land job decides the same again.
"""

from __future__ import annotations

from collections.abc import Sequence

from legion.domain.agents.teams import REVIEWER
from legion.domain.review.verdicts import Severity
from legion.domain.rules import Rule
from legion.domain.scheduling.races import COMPARES, FinishedLane, LaneStanding, RaceResult, decide, is_open
from legion.domain.tickets.ticket import AskReview, Stop, Ticket
from legion.jobs.board import Board
from legion.jobs.landing.queue import lines_changed
from legion.jobs.trees import Trees
from legion.store.board import races, tickets, verdicts
from legion.store.board.races import Lane
from legion.store.database.transactions import ReadTransaction, Transaction
from legion.system import crash
from legion.system.crash import Point

_WEIGHTS = {Severity.BLOCKING: 100}


def settle(context: Trees, project: int) -> None:
    with context.store.read() as tx:
        live = {ticket.id: ticket for ticket in tickets.live(tx, project=project)}
        ready = [lanes for lanes in races.undecided(tx).values() if _is_ready(lanes, live)]
    for lanes in ready:
        _settle(context, project, lanes, live)


def _is_ready(lanes: Sequence[Lane], live: dict[int, Ticket]) -> bool:
    there = tuple(races.standings(lanes, live).values())
    return LaneStanding.FINISHED in there and not is_open(there)


def _settle(context: Trees, project: int, lanes: Sequence[Lane], live: dict[int, Ticket]) -> None:
    there = races.standings(lanes, live)
    done = [live[id] for id, one in there.items() if one is LaneStanding.FINISHED]
    lines = lines_changed(context, project, done)
    with context.store.read() as tx:
        finished = [FinishedLane(ticket=one.id, lines=lines[one.id], findings=_findings(tx, one)) for one in done]
        rankings = _rankings(tx, done)
    result = decide(finished, rankings)
    if result.read_first is not None:
        _have_read(context, project, lanes, result.read_first, live)
        return
    crash.reach(Point.RACE_BEFORE_DECISION)
    with context.store.write() as tx:
        if _moved(tx, project, lanes, live):
            return
        _end(tx, project, lanes, finished, result, live)
    crash.reach(Point.RACE_AFTER_DECISION)


def _have_read(context: Board, project: int, lanes: Sequence[Lane], ticket: int, live: dict[int, Ticket]) -> None:
    """One independent reader, of this ticket, ranks the changes of all lanes."""
    crash.reach(Point.RACE_BEFORE_READING)
    with context.store.write() as tx:
        if _moved(tx, project, lanes, live):
            return
        tickets.move(tx, ticket, AskReview((REVIEWER,), COMPARES), rule=Rule.RACE)
    crash.reach(Point.RACE_AFTER_READING)


def _moved(tx: ReadTransaction, project: int, lanes: Sequence[Lane], live: dict[int, Ticket]) -> bool:
    """A lane moved meanwhile; the next land job decides."""
    now = {ticket.id: ticket for ticket in tickets.live(tx, project=project)}
    return _versions(lanes, now) != _versions(lanes, live)


def _versions(lanes: Sequence[Lane], live: dict[int, Ticket]) -> dict[int, int]:
    return {lane.ticket: live[lane.ticket].version for lane in lanes if lane.ticket in live}


def _end(
    tx: Transaction,
    project: int,
    lanes: Sequence[Lane],
    finished: Sequence[FinishedLane],
    result: RaceResult,
    live: dict[int, Ticket],
) -> None:
    assert result.winner is not None, "there is one"
    assert result.why is not None, "there is a winner"
    races.decide(tx, project, finished, result.winner, result.why)
    for lane in lanes:
        if lane.ticket == result.winner:
            continue
        if lane.ticket in live:
            why = result.why.get(lane.ticket, "it did not finish")
            reason = f"lost the race to ticket {result.winner}: {why}; its change is kept"
            tickets.move(tx, lane.ticket, Stop(reason), rule=Rule.RACE)
        for other in tickets.dependants(tx, lane.ticket):
            tickets.replace_after(tx, other, lane.ticket, [result.winner])


def _rankings(tx: ReadTransaction, done: Sequence[Ticket]) -> list[dict[int, int]]:
    """The places of these tickets in the rankings of readers, the last one first."""
    commits = {one.id: one.change.commit for one in done if one.change is not None}
    given = [one for ticket in done for one in verdicts.of_ticket(tx, ticket.id) if one.verdict and one.verdict.ranking]
    found = [one.verdict.ranking for one in sorted(given, key=lambda one: one.id, reverse=True) if one.verdict]
    return [{id: ranking.index(commit) for id, commit in commits.items() if commit in ranking} for ranking in found]


def _findings(tx: ReadTransaction, ticket: Ticket) -> int | None:
    """The weight of what readers found in this change; None where none has read it."""
    assert ticket.change is not None, "it is proven"
    given = [
        one.verdict
        for one in verdicts.of_ticket(tx, ticket.id)
        if one.commit == ticket.change.commit and one.given_at is not None
    ]
    if not given:
        return None
    return sum(_WEIGHTS.get(finding.weight, 1) for one in given if one is not None for finding in one.findings)
