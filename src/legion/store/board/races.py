"""The lanes of races: which tickets are attempts at one ticket, and which of them won."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import insert, select, update

from legion.domain.events import EventKind
from legion.domain.scheduling.races import COMBINES, FinishedLane, LaneStanding, is_open, standing
from legion.domain.tickets.ticket import Ticket
from legion.store.database import schema
from legion.store.database.fixed_query import FixedQuery, Stored
from legion.store.database.transactions import ReadTransaction, Transaction

_TABLE = schema.race_lanes.c


@dataclass(frozen=True, kw_only=True)
class Lane:
    ticket: int
    race: int
    origin: int
    """The ticket that the person wanted to race; also a lane."""
    label: str
    """The program and model that it differs by; empty where all lanes are equal."""
    lines: int | None = None
    findings: int | None = None
    won: bool | None = None
    why: str = ""
    decided_at: float | None = None


def _lane(row: Stored) -> Lane:
    return Lane(**{name: getattr(row, name) for name in Lane.__dataclass_fields__})


_UNDECIDED = FixedQuery(
    select(schema.race_lanes).where(_TABLE.decided_at.is_(None)).order_by(_TABLE.ticket), _lane, remember=None
)


def create(tx: Transaction, project: int, lanes: Sequence[tuple[int, str]], *, combine: bool = False) -> int:
    """Ticket and label of each; the first is the origin. Returns the race's number."""
    race, origin = tx.next("race"), lanes[0][0]
    rows = [{"ticket": one, "race": race, "origin": origin, "label": label, "why": ""} for one, label in lanes]
    tx.execute(insert(schema.race_lanes), rows)
    data = {"race": race, "lanes": [one for one, _ in lanes], "labels": [label for _, label in lanes]}
    data |= {"combine": True} if combine else {}
    tx.record(EventKind.RACE_STARTED, project=project, ticket=origin, data=data)
    return race


def combined(lanes: Sequence[Lane]) -> int | None:
    return next((lane.ticket for lane in lanes if lane.label == COMBINES), None)


def join(tx: Transaction, lanes: Sequence[Lane], ticket: int) -> None:
    """One lane more, which combines the others."""
    first = lanes[0]
    row = {"ticket": ticket, "race": first.race, "origin": first.origin, "label": COMBINES, "why": COMBINES}
    tx.execute(insert(schema.race_lanes), [row])


def undecided(tx: ReadTransaction) -> dict[int, list[Lane]]:
    """The lanes of races without a winner, by race."""
    found: dict[int, list[Lane]] = {}
    for lane in _UNDECIDED.all(tx):
        found.setdefault(lane.race, []).append(lane)
    return found


def of_ticket(tx: ReadTransaction, ticket: int) -> tuple[Lane, ...]:
    """All lanes of the race that this ticket is a lane of; empty where it is in none."""
    race = select(_TABLE.race).where(_TABLE.ticket == ticket).scalar_subquery()
    found = select(schema.race_lanes).where(_TABLE.race == race).order_by(_TABLE.ticket)
    return tuple(_lane(row) for row in tx.execute(found))


def standings(lanes: Sequence[Lane], live: Mapping[int, Ticket]) -> dict[int, LaneStanding]:
    """By ticket. A lane that is not alive has ended or was dropped."""
    there = {lane.ticket: live.get(lane.ticket) for lane in lanes}
    gone = standing(None, None)
    return {id: gone if one is None else standing(one.state, one.parked) for id, one in there.items()}


def held(tx: ReadTransaction, live: Mapping[int, Ticket]) -> frozenset[int]:
    """Lanes that wait for others of their race before they land."""
    found: set[int] = set()
    for lanes in undecided(tx).values():
        there = standings(lanes, live)
        if is_open(tuple(there.values())):
            found |= {id for id, one in there.items() if one is LaneStanding.FINISHED}
    return frozenset(found)


def decide(
    tx: Transaction, project: int, finished: Sequence[FinishedLane], winner: int, why: Mapping[int, str]
) -> None:
    """Record the result for all lanes of the winner's race. Those that did not finish have none."""
    lanes = of_ticket(tx, winner)
    sizes = {one.ticket: one for one in finished}
    for lane in lanes:
        known = sizes.get(lane.ticket)
        tx.execute(
            update(schema.race_lanes)
            .where(_TABLE.ticket == lane.ticket)
            .values(
                won=lane.ticket == winner,
                why=why.get(lane.ticket, "it did not finish"),
                lines=known and known.lines,
                findings=known and known.findings,
                decided_at=tx.now,
            )
        )
    data = {"race": lanes[0].race, "winner": winner, "lanes": [one.ticket for one in lanes], "why": why[winner]}
    tx.record(EventKind.RACE_DECIDED, project=project, ticket=winner, data=data)
