"""Crews: teams as they were at dispatch. Stored once, however many tickets share one."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, replace
from typing import Any

from sqlalchemy import bindparam, insert, select

from legion.domain.agents.teams import PLAIN, Advice, Crew, Origin, Role, RolePart, TeamStage
from legion.domain.events import EventKind
from legion.domain.text import to_json
from legion.store.database import schema
from legion.store.database.fixed_query import FixedQuery
from legion.store.database.transactions import ReadTransaction, Transaction

_TABLE = schema.crews.c


def keep(tx: Transaction, crew: Crew) -> str:
    """Its digest, which a ticket refers to."""
    mine = digest(crew)
    if _GET.first(tx, wanted=mine) is None:
        tx.execute(insert(schema.crews), [{"digest": mine, "body": _body(crew)}])
    return mine


def digest(crew: Crew) -> str:
    """The same for the same team with the same roles, and for no other."""
    return hashlib.sha256(to_json(_body(crew), sort_keys=True).encode("utf-8", "replace")).hexdigest()


def get(tx: ReadTransaction, digest: str) -> Crew:
    """One plain agent, where a ticket names none."""
    return (_GET.first(tx, wanted=digest) if digest else None) or PLAIN


def _body(crew: Crew) -> dict[str, Any]:
    return {"team": crew.team, "rounds": crew.rounds, "stages": [_stage_body(stage) for stage in crew.stages]}


def _stage_body(stage: TeamStage) -> dict[str, Any]:
    role = stage.role
    return {
        "name": role.name,
        "part": stage.part.value,
        "own_part": role.part.value,
        "prompt": role.prompt,
        "about": role.about,
        "tools": None if role.tools is None else sorted(role.tools),
        "model": role.model,
        "provider": role.provider,
        "driver": role.driver,
        # Left out where empty: the digests of older crews stay as they are.
        **({"on": list(role.on)} if role.on else {}),
        "origin": role.origin.value,
        "file": role.file,
    }


def _crew(body: dict[str, Any]) -> Crew:
    return Crew(team=body["team"], rounds=body["rounds"], stages=tuple(_stage(one) for one in body["stages"]))


def _stage(body: dict[str, Any]) -> TeamStage:
    role = Role(
        name=body["name"],
        part=RolePart(body["own_part"]),
        prompt=body["prompt"],
        about=body["about"],
        tools=None if body["tools"] is None else frozenset(body["tools"]),
        model=body["model"],
        provider=body["provider"],
        driver=body["driver"],
        on=tuple(body.get("on", ())),
        origin=Origin(body["origin"]),
        file=body["file"],
    )
    return TeamStage(role=role, part=RolePart(body["part"]))


_ADVICE = schema.advice.c
_ADVICE_OF_TICKET = FixedQuery(
    select(schema.advice).where(_ADVICE.ticket == bindparam("mine")).order_by(_ADVICE.run),
    lambda row: Advice(**vars(row)),
    remember=50,
)


def give_advice(tx: Transaction, project: int, advice: Advice) -> None:
    tx.execute(insert(schema.advice), [asdict(replace(advice, given_at=tx.now))])
    data = {"role": advice.role, "run": advice.run, "turn": advice.turn}
    tx.record(EventKind.TICKET_ADVISED, project=project, ticket=advice.ticket, data=data)


def advice_of(tx: ReadTransaction, ticket: int) -> tuple[Advice, ...]:
    """In the order in which it was given."""
    return _ADVICE_OF_TICKET.all(tx, mine=ticket)


_GET = FixedQuery(
    select(_TABLE.body).where(_TABLE.digest == bindparam("wanted")), lambda row: _crew(row.body), remember=50
)
