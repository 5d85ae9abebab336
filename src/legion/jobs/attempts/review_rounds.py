"""Decides after reviews: the change lands, goes back with findings, or a person decides.

Reads only the store, so it may be asked again at any time with the same result.
"""

from __future__ import annotations

from collections.abc import Sequence

from legion.domain.questions import BACK, LAND, STOP, TOO_LATE, Question, QuestionKind, SettledBy
from legion.domain.review import policy
from legion.domain.review.policy import ReviewResult
from legion.domain.review.verdicts import ReviewRequest
from legion.domain.scheduling.races import COMPARES
from legion.domain.tickets.ladder import next_try
from legion.domain.tickets.ticket import Approve, Cause, Fail, Park, ParkReason, Step, Stop, Ticket, TryAgain
from legion.jobs.attempts import feedback
from legion.store.board import questions, verdicts
from legion.store.database.transactions import ReadTransaction, Transaction

_SHOWN = 8
"""Findings that a question names."""
_LONGEST = 300
"""Characters of each."""


def next_step(tx: Transaction, ticket: Ticket, *, most: int, within: float, needed: int = 0) -> Step | None:
    """The next step of a ticket in review; None while a review is open. `most`: rounds before a person is asked;
    `needed`: approvals that are enough, 0 for all.
    """
    readings = verdicts.of_ticket(tx, ticket.id)
    current = tuple(one for one in _latest(ticket, readings) if one.binding)
    given = [one for one in current if one.given_at is not None]
    against = [one for one in given if one.sends_back]
    silent = [one for one in given if one.verdict is None]
    result = policy.quorum(
        approved=len(given) - len(against) - len(silent),
        against=len(against),
        silent=len(silent),
        pending=len(current) - len(given),
        needed=needed,
    )
    if result is ReviewResult.OPEN:
        return None
    if result is ReviewResult.SENT_BACK:
        used = policy.rounds(ticket, readings, questions.last_said(tx, ticket.id, QuestionKind.REVIEW))
        if used < most:
            return next_try(ticket, reason(against), _findings(against), cause=Cause.REVIEW)
        tries = "one round" if used == 1 else f"{used} rounds"
        return _asked(tx, ticket, current, f"{reason(against)}; it was not approved in {tries}", within)
    if result is ReviewResult.NO_VERDICT and any(one.why != COMPARES for one in silent):
        return _asked(
            tx, ticket, current, f"{silent[0].reviewer} gave no verdict that can be used: {silent[0].complaint}", within
        )
    # A race is decided without the ranking of a reader that failed: no attempt loses by that.
    return Approve()


def reason(against: Sequence[ReviewRequest]) -> str:
    """Why it is not approved, for people."""
    reasons = []
    for one in against:
        assert one.verdict is not None, "a reviewer without a verdict asks for no change"
        blocking = one.verdict.blocking
        more = f" and {len(blocking) - 1} more" if len(blocking) > 1 else ""
        reasons.append(f"{one.reviewer} asks for changes ({blocking[0].place}{more})")
    return "; ".join(reasons)


def answered(tx: ReadTransaction, ticket: Ticket, question: Question) -> Step:
    """The step of a ticket in review after its question is settled."""
    if question.choice == LAND:
        return Approve()
    if question.choice == BACK:
        return sent_back(tx, ticket, question.why)
    if question.settled_by is SettledBy.SILENCE:
        return Fail(f"its change is not approved, and there was {TOO_LATE}", cause=Cause.REVIEW)
    return Stop("a person stopped it where its change was not approved")


def sent_back(tx: ReadTransaction, ticket: Ticket, words: str) -> TryAgain:
    """A person sends it back: that always gives one more attempt. The findings go with their reason."""
    given = [one for one in _latest(ticket, verdicts.of_ticket(tx, ticket.id)) if one.verdict is not None]
    feedback_text = _findings(given, words or "They gave no reason.")
    return TryAgain("a person sent it back", feedback_text, cause=Cause.REVIEW)


def _latest(ticket: Ticket, readings: Sequence[ReviewRequest]) -> tuple[ReviewRequest, ...]:
    """Each reviewer's last verdict on the present change."""
    assert ticket.change is not None, "a ticket in review has a change"
    return tuple({one.reviewer: one for one in readings if one.commit == ticket.change.commit}.values())


def _findings(readings: Sequence[ReviewRequest], words: str = "") -> str:
    verdicts_given = [one.verdict for one in readings if one.verdict is not None]
    summary = "\n".join(one.summary for one in verdicts_given if one.blocking)
    return feedback.reviewed(summary, [finding for one in verdicts_given for finding in one.findings], words)


def _asked(tx: Transaction, ticket: Ticket, current: Sequence[ReviewRequest], why: str, within: float) -> Step:
    """Asked once per change, until a person retries the ticket."""
    assert ticket.change is not None, "a ticket in review has a change"
    given = "-".join(str(one.id) for one in current)
    question = questions.ask(
        tx,
        key=f"{QuestionKind.REVIEW.value}:{ticket.id}/{ticket.attempt}/{given}",
        kind=QuestionKind.REVIEW,
        project=ticket.project,
        ticket=ticket.id,
        words=_question(ticket, why, current),
        deadline=tx.now + within,
    )
    if question.settled_at is None and question.deadline <= tx.now:
        question = questions.settle(tx, question.id, question.fallback, TOO_LATE, by=SettledBy.SILENCE)
    if question.settled_at is None:
        return Park(ParkReason.QUESTION, why)
    return answered(tx, ticket, question)


def _question(ticket: Ticket, why: str, current: Sequence[ReviewRequest]) -> str:
    """One line for each finding, also for texts and file names with line breaks."""
    found = [finding for one in current if one.verdict is not None for finding in one.verdict.blocking]
    rows = [f"- {_line(f'{finding.place}: {finding.text}')[:_LONGEST]}" for finding in found[:_SHOWN]]
    listed = "\n".join(rows)
    return (
        f"How shall it continue? {_line(f'{why[:1].upper()}{why[1:]}')}.{f'{chr(10)}{listed}' if listed else ''}\n"
        f"`{LAND}` lands it as it is, `{BACK}` sends it back with your reason, `{STOP}` stops it."
    )


def _line(words: str) -> str:
    return " ".join(words.split())
