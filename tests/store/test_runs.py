"""Runs: numbered, counted by generation, ended once."""

from __future__ import annotations

import uuid

import pytest

from legion.domain.errors import NotFound, StateConflict
from legion.domain.events import EventKind
from legion.domain.runs import Outcome, Run
from legion.store import events
from legion.store.work import machines, runs
from tests.store.making import add_ticket


@pytest.fixture
def ticket(store, project) -> int:
    with store.write() as tx:
        number: int = add_ticket(tx, project.id).id
    return number


def test_a_run_starts_and_ends_with_its_events(store, project, ticket):
    with store.write() as tx:
        started = runs.start(tx, ticket, 1)
    assert started == Run(
        id=1,
        project=project.id,
        ticket=ticket,
        attempt=1,
        generation=1,
        started_at=tx.now,
        conversation=started.conversation,
    )
    with store.read() as tx:
        assert runs.active(tx) == (started,)
        assert runs.latest(tx, ticket) == runs.get(tx, 1) == started
    with store.write() as tx:
        ended = runs.end(tx, 1, Outcome.FAILED, "exit code 3", saved="abc")
    assert (ended.outcome, ended.ended_at, ended.detail, ended.saved) == (Outcome.FAILED, tx.now, "exit code 3", "abc")
    with store.read() as tx:
        assert runs.active(tx) == ()
        assert runs.of_ticket(tx, ticket) == (ended,)
        started_event, ended_event = events.of_ticket(tx, ticket)[-2:]
    assert (started_event.kind, started_event.project) == (EventKind.RUN_STARTED, project.id)
    assert started_event.data == {"run": 1, "attempt": 1, "generation": 1}
    assert (ended_event.kind, ended_event.project) == (EventKind.RUN_ENDED, project.id)
    assert ended_event.data == {"run": 1, "attempt": 1, "outcome": "failed", "detail": "exit code 3", "saved": "abc"}


def test_the_generation_counts_how_often_this_attempt_was_lost(store, project, ticket):
    with store.write() as tx:
        other = add_ticket(tx, project.id).id
        generations = []
        for attempt, outcome in (
            (1, Outcome.LOST),
            (1, Outcome.STOPPED),
            (1, Outcome.LOST),
            (1, Outcome.FINISHED),
            (2, Outcome.LOST),
            (2, Outcome.FINISHED),
        ):
            run = runs.start(tx, ticket, attempt)
            runs.end(tx, run.id, outcome)
            generations.append(run.generation)
        assert runs.start(tx, other, 1).generation == 1
    assert generations == [1, 2, 2, 3, 1, 2]


def test_a_run_ends_once(store, ticket):
    with store.write() as tx:
        runs.start(tx, ticket, 1)
        runs.end(tx, 1, Outcome.LOST)
    with pytest.raises(StateConflict, match="has ended already"), store.write() as tx:
        runs.end(tx, 1, Outcome.FINISHED)
    with store.read() as tx:
        assert runs.get(tx, 1).outcome is Outcome.LOST


def test_unknown_runs_and_tickets_are_said(store):
    with store.write() as tx:
        with pytest.raises(NotFound):
            runs.get(tx, 5)
        with pytest.raises(NotFound):
            runs.end(tx, 5, Outcome.LOST)
        assert runs.latest(tx, 5) is None
        assert runs.of_ticket(tx, 5) == ()


def test_all_runs_of_a_ticket_share_one_conversation(store, project, ticket):
    with store.write() as tx:
        first = runs.start(tx, ticket, 1)
        runs.end(tx, first.id, Outcome.LOST)
        again = runs.start(tx, ticket, 1)
        runs.end(tx, again.id, Outcome.FAILED)
        other = runs.start(tx, add_ticket(tx, project.id).id, 1)
        later = runs.start(tx, ticket, 2)
    assert uuid.UUID(first.conversation).version == 4
    assert first.conversation == again.conversation == later.conversation
    assert other.conversation != first.conversation


def test_how_a_run_reaches_its_model_is_written_down(store, project, ticket):
    with store.write() as tx:
        run = runs.start(tx, ticket, 1)
        runs.note_access(tx, run.id, "anthropic")
    with store.read() as tx:
        assert runs.get(tx, run.id).access == "anthropic"


def test_a_machine_with_one_run_that_waits_and_one_at_work_gets_news_of_both(store, project):
    with store.write() as tx:
        first, second = (runs.start(tx, add_ticket(tx, project.id).id, 1) for _ in range(2))
        code = machines.invite(tx, name="desk", labels=["far"], slots=2, seconds=60)
        joined = machines.join(tx, code, boot="b", version="1", protocol=1, toolchain="t")
        assert joined is not None
        _, desk = joined
        machines.place(tx, first, desk)
        machines.take(tx, first.id, "worker")
        before = machines.news(tx)[desk.id]
        machines.place(tx, second, desk)
        after = machines.news(tx)[desk.id]
    assert (before.has_waiting, after.has_waiting) == (False, True)
    assert before.facts != after.facts
