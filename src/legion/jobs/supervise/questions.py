"""Questions of a running agent: records them from its journal and returns a person's answer to its runner.

Also resumes a ticket that was parked for an answer, and settles questions whose deadline has passed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from legion.domain.egress import FINAL, NetworkPlace, place_fault
from legion.domain.questions import (
    ALWAYS,
    BACK,
    CHOICES,
    LAND,
    MOST_OPEN,
    NO,
    ONCE,
    RELEASE,
    STOP,
    TOO_LATE,
    TRUST,
    YES,
    Question,
    QuestionKind,
    SettledBy,
)
from legion.domain.review.trial import WAITS
from legion.domain.rules import Rule
from legion.domain.runs import Run
from legion.domain.tickets.ticket import Fail, ParkReason, Resume, Retry, State, Stop, Unpark
from legion.jobs.attempts import review_rounds
from legion.jobs.board import Board
from legion.runner import launch
from legion.runner.journal import JournalEvent, JournalKind
from legion.runner.spec import RunFolder
from legion.store.board import questions, tickets
from legion.store.database.transactions import Transaction
from legion.store.staff import ticket_holders
from legion.store.work import runs

_PARKED_FOR = (QuestionKind.CHANGE, QuestionKind.ATTEMPTS, QuestionKind.REVIEW, QuestionKind.GATE)


@dataclass(frozen=True, kw_only=True)
class QuestionSource:
    """The ticket or standing agent whose run asks."""

    project: int
    ticket: int | None = None
    agent: str = ""


def listener(context: Board, source: QuestionSource, this_run: Run) -> Callable[[JournalEvent], None]:
    """Gets every event of the run's journal, again from the first one after a restart."""

    def handle(event: JournalEvent) -> None:
        if event.kind == JournalKind.REFUSED.value:
            _ask_for_host(context, source, this_run, event)
        key = event.facts.get("question")
        if not isinstance(key, str):
            return
        if event.kind == "asked":
            _ask(context, source, this_run, key, event)
        elif event.kind == "answered":
            _close(context, key, event.facts)

    return handle


def permit(context: Board, question: Question, *, allowed: bool, why: str) -> bool:
    """Send the answer to the runner. False if the runner is gone, or if the question names no run."""
    if question.run is None:
        return False
    with context.store.read() as tx:
        folder = context.data.runs / runs.get(tx, question.run).name
    return launch.permit(folder, question.key, allowed, why)


def grant(context: Board, question: Question) -> None:
    """Open a host to the run that wanted it. Later runs read the answer itself."""
    if question.run is not None and "host" in question.facts:
        with context.store.read() as tx:
            folder = context.data.runs / runs.get(tx, question.run).name
        with contextlib.suppress(OSError), RunFolder(folder).granted.open("a") as places:
            places.write(f"{question.facts['host']}\n")


def settle(
    tx: Transaction, question: Question, choice: str, why: str = "", *, by: SettledBy = SettledBy.PERSON
) -> Question:
    """Where a ticket is parked for the answer, it continues as the answer says."""
    settled = questions.settle(tx, question.id, choice, why, by=by)
    if settled.kind in _PARKED_FOR and settled.ticket is not None:
        _resume(tx, settled, settled.ticket)
    if settled.kind is QuestionKind.CHECKS and settled.choice == TRUST:
        release_tickets(tx, settled.project)
    if settled.kind is QuestionKind.IDLE and settled.choice == RELEASE and settled.ticket is not None:
        _release(tx, settled, settled.ticket)
    return settled


def release_tickets(tx: Transaction, project: int) -> None:
    """The tickets that wait because their checks were not shown to see the code go on."""
    for ticket in tickets.live(tx, project=project):
        parked = ticket.parked
        if parked is not None and parked.reason is ParkReason.QUESTION and parked.detail == WAITS:
            tickets.move(tx, ticket.id, Unpark())


def _release(tx: Transaction, settled: Question, number: int) -> None:
    """Put the ticket back on the board, if the agent still holds it and does not submit it just now."""
    holding = ticket_holders.of_ticket(tx, number)
    if holding is None or holding.agent != settled.agent or holding.submitted:
        return
    if tickets.get(tx, number).state is State.WORKING:
        tickets.move(tx, number, Resume("its agent did nothing about it"))
        ticket_holders.drop(tx, number)


def _resume(tx: Transaction, settled: Question, number: int) -> None:
    ticket = tickets.get(tx, number)
    if ticket.parked is None or ticket.parked.reason is not ParkReason.QUESTION:
        return
    if settled.kind is QuestionKind.CHANGE:
        tickets.move(tx, number, Unpark())
    elif settled.kind is QuestionKind.GATE:
        _at_gate(tx, settled, number)
    elif settled.kind is QuestionKind.REVIEW:
        waiting = tickets.move(tx, number, Unpark())
        rule = Rule.PERSON if settled.settled_by is SettledBy.PERSON else None
        tickets.move(tx, number, review_rounds.answered(tx, waiting, settled), rule=rule)
    elif settled.choice == YES:
        tickets.move(tx, number, Fail("a person wants more attempts"), rule=Rule.PERSON)
        tickets.move(tx, number, Retry(settled.why))
    else:
        tickets.move(tx, number, Fail(ticket.reason))


def _at_gate(tx: Transaction, settled: Question, number: int) -> None:
    """Without an answer the change stays at the gate."""
    if settled.choice == LAND:
        tickets.move(tx, number, Unpark(), rule=Rule.PERSON)
    elif settled.choice == BACK:
        waiting = tickets.move(tx, number, Unpark(), rule=Rule.PERSON)
        tickets.move(tx, number, review_rounds.sent_back(tx, waiting, settled.why), rule=Rule.PERSON)
    elif settled.choice == STOP:
        tickets.move(tx, number, Stop())


def close_all(context: Board, this_run: Run) -> None:
    """The run has ended, so no answer can reach it."""
    with context.store.read() as tx:
        if not questions.open_ones(tx, run=this_run.id):
            return
    with context.store.write() as tx:
        for question in questions.open_ones(tx, run=this_run.id):
            if question.kind in (QuestionKind.PERMISSION, QuestionKind.ASK):
                questions.settle(tx, question.id, question.fallback, "its run ended first", by=SettledBy.END)


def settle_overdue(context: Board) -> None:
    """Answer overdue questions with their fallback. A run settles its own permissions."""
    now = context.clock()
    with context.store.read() as tx:
        late = [
            one.id for one in questions.open_ones(tx) if one.deadline <= now and one.kind is not QuestionKind.PERMISSION
        ]
    if not late:
        return
    with context.store.write() as tx:
        for number in late:
            question = questions.get(tx, number)
            if question.settled_at is None:
                settle(tx, question, question.fallback, TOO_LATE, by=SettledBy.SILENCE)


def next_deadline(context: Board) -> float | None:
    """When the next question becomes overdue."""
    with context.store.read() as tx:
        return min(
            (one.deadline for one in questions.open_ones(tx) if one.kind is not QuestionKind.PERMISSION), default=None
        )


def _ask(context: Board, source: QuestionSource, this_run: Run, key: str, event: JournalEvent) -> None:
    tool, input, rule = (str(event.facts.get(name) or "") for name in ("tool", "input", "rule"))
    facts = {"tool": tool, "input": input}
    with context.store.write() as tx:
        questions.ask(
            tx,
            key=key,
            kind=QuestionKind.PERMISSION,
            project=source.project,
            ticket=source.ticket,
            agent=source.agent,
            run=this_run.id,
            words=f"May it use {tool}: {input}",
            facts={**facts, "rule": rule} if rule else facts,
            choices=(*CHOICES[QuestionKind.PERMISSION], ALWAYS) if rule else None,
            deadline=event.time + context.user.claude.answer_within,
        )


def _ask_for_host(context: Board, source: QuestionSource, this_run: Run, event: JournalEvent) -> None:
    """Once for a ticket or agent and a host, unless the person refused it to the project; "once" ends with its run."""
    host, port, why = (event.facts.get(name) for name in ("host", "port", "why"))
    # The journal of another machine may hold anything.
    if not isinstance(host, str) or not isinstance(port, int) or str(why).startswith(FINAL):
        return
    place = NetworkPlace(host, port)
    if place_fault(str(place)):
        return
    key = f"network:{source.project}:{source.ticket or source.agent}:{place}"
    with context.store.write() as tx:
        waiting = questions.open_ones(tx, ticket=source.ticket, agent=source.agent)
        if len(waiting) >= MOST_OPEN or str(place) in questions.reachable(tx, source.project):
            return
        before = questions.by_key(tx, key)
        questions.ask(
            tx,
            key=f"{key}:{this_run.id}" if before is not None and before.choice == ONCE else key,
            kind=QuestionKind.NETWORK,
            project=source.project,
            ticket=source.ticket,
            agent=source.agent,
            run=this_run.id,
            words=f"It wanted to reach {place}, which {why}. May it?",
            facts={"host": str(place)},
            deadline=event.time + context.user.questions.answer_within,
        )


def _close(context: Board, key: str, facts: Mapping[str, object]) -> None:
    with context.store.write() as tx:
        question = questions.by_key(tx, key)
        if question is None or question.settled_at is not None:
            # A person's answer is recorded already.
            return
        if facts.get("withdrawn") is True:
            questions.settle(tx, question.id, NO, "its turn was interrupted first", by=SettledBy.END)
        else:
            allowed = facts.get("allowed") is True
            why = "" if allowed else TOO_LATE
            questions.settle(tx, question.id, YES if allowed else NO, why, by=SettledBy.SILENCE)
