"""Questions of a running agent: from its journal into the store, and a person's answer back to its runner."""

from __future__ import annotations

from collections.abc import Callable

from legion.domain.questions import Question
from legion.domain.runs import Run, run_name
from legion.domain.tickets import Fail, ParkReason, Retry, Ticket, Unpark
from legion.jobs.world import World
from legion.runner import launch
from legion.runner.journal import JournalEvent
from legion.store import questions, tickets
from legion.store.database import Transaction


def listener(world: World, ticket: Ticket, this_run: Run) -> Callable[[JournalEvent], None]:
    """Hears every event of the run's journal, again from the first after a restart."""

    def hear(event: JournalEvent) -> None:
        key = event.facts.get("question")
        if not isinstance(key, str):
            return
        if event.kind == "asked":
            _ask(world, ticket, this_run, key, event)
        elif event.kind == "answered":
            _close(world, key, allowed=event.facts.get("allowed") is True)

    return hear


def answer(world: World, question: Question, *, allowed: bool, why: str) -> bool:
    """Tell the runner. False if it is gone, and with it the one who asked."""
    folder = world.data.runs / run_name(question.ticket, question.run)
    return launch.permit(folder, question.key, allowed, why)


def settle(tx: Transaction, question: Question, *, allowed: bool, why: str) -> None:
    """A question of the engine: its ticket waits for it, and goes on as the answer says."""
    questions.settle(tx, question.id, allowed=allowed, why=why)
    ticket = tickets.get(tx, question.ticket)
    if ticket.parked is None or ticket.parked.reason is not ParkReason.QUESTION:
        return
    if not question.key.startswith(questions.ATTEMPTS):
        tickets.move(tx, ticket.id, Unpark())
        return
    tickets.move(tx, ticket.id, Fail("a person wants more attempts" if allowed else ticket.reason))
    if allowed:
        tickets.move(tx, ticket.id, Retry())


def settle_overdue(world: World) -> None:
    """Silence is a no."""
    with world.store.read() as tx:
        if not questions.overdue(tx):
            return
    with world.store.write() as tx:
        for question in questions.overdue(tx):
            settle(tx, question, allowed=False, why=questions.TOO_LATE)


def close_all(world: World, this_run: Run) -> None:
    """The run has ended: nobody waits for an answer any more."""
    with world.store.write() as tx:
        for question in questions.open_ones(tx, run=this_run.id):
            questions.settle(tx, question.id, allowed=False, why="its run ended first")


def _ask(world: World, ticket: Ticket, this_run: Run, key: str, event: JournalEvent) -> None:
    words = f"May it use {event.facts.get('tool')}: {event.facts.get('input')}"
    with world.store.write() as tx:
        questions.ask(
            tx,
            key=key,
            project=ticket.project,
            ticket=ticket.id,
            run=this_run.id,
            words=words,
            deadline=event.time + world.user.claude.answer_within,
        )


def _close(world: World, key: str, *, allowed: bool) -> None:
    with world.store.write() as tx:
        question = questions.by_key(tx, key)
        if question is not None and question.settled_at is None:
            questions.settle(tx, question.id, allowed=allowed, why="" if allowed else "no answer in time")
