"""Review requests and verdicts. A verdict is given once and never changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from sqlalchemy import ColumnElement, Row, func, insert, select, update

from legion.domain.errors import NotFound, StateConflict
from legion.domain.events import EventKind
from legion.domain.review.verdicts import CriterionVerdict, Finding, ReviewRequest, Ruling, Severity, Verdict
from legion.domain.tickets.ticket import State, Ticket
from legion.store.database import schema
from legion.store.database.fixed_query import FixedQuery
from legion.store.database.transactions import ReadTransaction, Transaction

_TABLE = schema.verdicts.c
_OPEN = _TABLE.given_at.is_(None)
_WANTED = FixedQuery(
    select(_TABLE.ticket, _TABLE.commit_id).where(_OPEN), lambda row: (row.ticket, row.commit_id), remember=None
)


def ask(tx: Transaction, ticket: Ticket, reviewer: str, *, binding: bool, why: str = "") -> ReviewRequest:
    """Request a review of the ticket's change. No reviewer is asked twice, but the ticket may start to wait for one."""
    assert ticket.change is not None, "there is nothing to review without a change"
    base, commit = ticket.change.base, ticket.change.commit
    mine = (_TABLE.ticket == ticket.id, _TABLE.reviewer == reviewer)
    same = tx.execute(select(schema.verdicts).where(*mine, _TABLE.commit_id == commit, _OPEN)).one_or_none()
    if same is not None:
        tx.execute(update(schema.verdicts).where(_TABLE.id == same.id).values(binding=same.binding or binding))
        return get(tx, same.id)
    given = (_TABLE.verdict.is_not(None), ~_OPEN)
    before: int = tx.execute(select(func.count()).where(*mine, *given)).scalar_one()
    review = ReviewRequest(
        id=tx.next("verdict"),
        project=ticket.project,
        ticket=ticket.id,
        attempt=ticket.attempt,
        reviewer=reviewer,
        round=before + 1,
        base=base,
        commit=commit,
        binding=binding,
        why=why,
        asked_at=tx.now,
    )
    tx.execute(insert(schema.verdicts), [_values(review)])
    data = {"reader": reviewer, "round": review.round, "commit": commit, "binding": binding, "why": why}
    tx.record(EventKind.REVIEW_ASKED, project=ticket.project, ticket=ticket.id, data=data)
    return review


def refuse(tx: Transaction, review: int, complaint: str) -> ReviewRequest:
    """Record an answer that cannot be used."""
    before = _still_open(tx, review)
    values = {"refused": before.refused + 1, "complaint": complaint}
    tx.execute(update(schema.verdicts).where(_TABLE.id == review).values(values))
    return get(tx, review)


def give(tx: Transaction, review: int, verdict: Verdict | None, notes: tuple[str, ...] = ()) -> ReviewRequest:
    """Record the verdict as it counts; None where no usable one came and none is asked for again."""
    before = _still_open(tx, review)
    given = replace(before, given_at=tx.now, verdict=verdict, notes=notes)
    values = {name: _values(given)[name] for name in ("given_at", "verdict", "notes")}
    tx.execute(update(schema.verdicts).where(_TABLE.id == review).values(values))
    data: dict[str, object] = {"reader": given.reviewer, "round": given.round, "commit": given.commit}
    if verdict is None:
        data |= {"verdict": "none", "why": given.complaint}
    else:
        weights = [finding.weight for finding in verdict.findings]
        data |= {"verdict": verdict.ruling.value, "summary": verdict.summary, "notes": list(notes)}
        data |= {weight.value: weights.count(weight) for weight in Severity}
    tx.record(EventKind.REVIEW_GIVEN, project=given.project, ticket=given.ticket, data=data)
    return given


def get(tx: ReadTransaction, review: int) -> ReviewRequest:
    row = tx.execute(select(schema.verdicts).where(_TABLE.id == review)).one_or_none()
    if row is None:
        raise NotFound(f"There is no review {review}: see `legion ticket N`.")
    return _review(row)


def of_ticket(tx: ReadTransaction, ticket: int) -> tuple[ReviewRequest, ...]:
    """Oldest first."""
    return _found(tx, _TABLE.ticket == ticket)


def said_by(tx: ReadTransaction, ticket: int, reviewer: str) -> tuple[ReviewRequest, ...]:
    """Reviews in which this reviewer gave a verdict, oldest first."""
    return _found(tx, _TABLE.ticket == ticket, _TABLE.reviewer == reviewer, ~_OPEN, _TABLE.verdict.is_not(None))


def pending(tx: ReadTransaction, ticket: Ticket) -> tuple[ReviewRequest, ...]:
    """Open reviews of the ticket's present change, in their order."""
    if ticket.change is None:
        return ()
    return _found(tx, _TABLE.ticket == ticket.id, _TABLE.commit_id == ticket.change.commit, _OPEN)


def optional_reviews(tx: ReadTransaction) -> Mapping[int, int]:
    """Tickets whose present change is reviewed while they continue, or after they landed, and their projects."""
    wanted = set(_WANTED.all(tx))
    if not wanted:
        return {}
    ticket = schema.tickets.c
    there = (ticket.id.in_({number for number, _ in wanted}), ticket.dropped_at.is_(None))
    found = tx.execute(select(ticket.id, ticket.project, ticket.state, ticket.change_commit).where(*there))
    aside = (State.LANDING, State.DONE)
    return {row.id: row.project for row in found if row.state in aside and (row.id, row.change_commit) in wanted}


def _still_open(tx: ReadTransaction, review: int) -> ReviewRequest:
    found = get(tx, review)
    if found.given_at is not None:
        raise StateConflict(f"Review {review} of ticket {found.ticket} was given already: look at it again.")
    return found


def _found(tx: ReadTransaction, *conditions: ColumnElement[bool]) -> tuple[ReviewRequest, ...]:
    return tuple(_review(row) for row in tx.execute(select(schema.verdicts).where(*conditions).order_by(_TABLE.id)))


def _values(review: ReviewRequest) -> dict[str, Any]:
    facts = {
        name: getattr(review, name) for name in ReviewRequest.__dataclass_fields__ if name not in ("commit", "verdict")
    }
    verdict = None if review.verdict is None else _json(review.verdict)
    return facts | {"commit_id": review.commit, "verdict": verdict, "notes": list(review.notes)}


def _json(verdict: Verdict) -> dict[str, Any]:
    findings = [asdict(finding) | {"weight": finding.weight.value} for finding in verdict.findings]
    return asdict(verdict) | {"ruling": verdict.ruling.value, "findings": findings}


def _review(row: Row[Any]) -> ReviewRequest:
    facts = dict(row._mapping)
    commit, verdict = facts.pop("commit_id"), facts.pop("verdict")
    return ReviewRequest(
        **{**facts, "notes": tuple(facts["notes"])},
        commit=commit,
        verdict=None if verdict is None else _verdict(verdict),
    )


def _verdict(facts: Mapping[str, Any]) -> Verdict:
    return Verdict(
        ruling=Ruling(facts["ruling"]),
        summary=facts["summary"],
        read=tuple(facts["read"]),
        findings=tuple(Finding(**{**one, "weight": Severity(one["weight"])}) for one in facts["findings"]),
        settled=tuple(facts["settled"]),
        criteria=tuple(CriterionVerdict(**one) for one in facts["criteria"]),
        ranking=tuple(facts.get("ranking", ())),
    )
