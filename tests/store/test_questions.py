"""Questions: asked once, settled once, open in between."""

from __future__ import annotations

import pytest

from legion.domain.errors import NotFound, StateConflict
from legion.domain.events import EventKind
from legion.domain.questions import QuestionKind, SettledBy
from legion.domain.tickets.ticket import Cause, Change, Fail, Park, ParkReason, Propose, Retry, Start, Stop, Unpark
from legion.store import events
from legion.store.board import questions, tickets
from legion.store.work import runs
from tests.store.making import COMMIT, add_ticket


@pytest.fixture
def run(store, project):
    with store.write() as tx:
        return runs.start(tx, add_ticket(tx, project.id).id, 1)


def ask(tx, run, key="k", words="May it?"):
    kind = QuestionKind.PERMISSION
    return questions.ask(
        tx,
        key=key,
        kind=kind,
        project=1,
        ticket=run.ticket,
        run=run.id,
        words=words,
        deadline=99.0,
        facts={"tool": "T"},
    )


def test_the_same_key_is_the_same_question(store, run):
    with store.write() as tx:
        first = ask(tx, run)
        again = ask(tx, run, words="other words")
        other = ask(tx, run, key="other")
    assert (again, other.id) == (first, first.id + 1)
    with store.read() as tx:
        assert questions.open_ones(tx) == (first, other)
        assert questions.by_key(tx, "k") == first
        assert questions.by_key(tx, "nobody asked") is None
        asked = [event for event in events.of_ticket(tx, run.ticket) if event.kind is EventKind.QUESTION_ASKED]
    assert [event.data["words"] for event in asked] == ["May it?", "May it?"]


def test_a_question_is_settled_once(store, run):
    with store.write() as tx:
        question = ask(tx, run)
        settled = questions.settle(tx, question.id, "yes", "sure")
    assert (question.choices, question.fallback, question.facts) == (("yes", "no"), "no", {"tool": "T"})
    assert (settled.allowed, settled.choice, settled.why, settled.settled_at) == (True, "yes", "sure", tx.now)
    with store.read() as tx:
        assert questions.open_ones(tx) == ()
        assert questions.get(tx, question.id) == settled
    with store.write() as tx, pytest.raises(StateConflict, match="settled already"):
        questions.settle(tx, question.id, "no")


def test_open_questions_are_found_by_their_run(store, project, run):
    with store.write() as tx:
        mine = ask(tx, run)
        other = runs.start(tx, add_ticket(tx, project.id).id, 1)
        ask(tx, other, key="other")
    with store.read() as tx:
        assert questions.open_ones(tx, run=run.id) == (mine,)
        with pytest.raises(NotFound, match="legion inbox"):
            questions.get(tx, 77)


def test_an_agent_without_a_ticket_asks_with_choices_of_its_own(store, project):
    with store.write() as tx:
        asked = questions.ask(
            tx,
            key="k",
            kind=QuestionKind.ASK,
            project=project.id,
            agent="one",
            words="Which?",
            choices=("a", "b"),
            fallback="a",
            deadline=99.0,
        )
    with store.read() as tx:
        assert questions.open_ones(tx, agent="one") == (asked,)
        assert questions.open_ones(tx, agent="another") == ()
    assert (asked.ticket, asked.run, asked.choices, asked.fallback) == (None, None, ("a", "b"), "a")


@pytest.mark.parametrize(
    ("step", "kind", "choices", "on"),
    [
        (Park(ParkReason.BUDGET, "it spent 2 dollars"), QuestionKind.BUDGET, ("more", "leave"), Unpark()),
        (
            Fail("gave up", "both changed a.txt", cause=Cause.CONFLICT),
            QuestionKind.CONFLICT,
            ("retry", "leave"),
            Retry("so"),
        ),
    ],
)
def test_what_a_ticket_cannot_get_over_is_asked_with_the_move_and_withdrawn_with_the_next(
    store, project, step, kind, choices, on
):
    with store.write() as tx:
        ticket = add_ticket(tx, project.id).id
        tickets.move(tx, ticket, Start(COMMIT))
        tickets.move(tx, ticket, step)
        (asked,) = questions.open_ones(tx, ticket=ticket)
    assert (asked.kind, asked.choices, asked.fallback, asked.run) == (kind, choices, "leave", None)
    assert asked.facts["why"] in ("it spent 2 dollars", "gave up")
    with store.write() as tx:
        tickets.move(tx, ticket, on)
        gone = questions.get(tx, asked.id)
        assert questions.open_ones(tx) == ()
    assert (gone.settled_by, gone.choice) == (SettledBy.END, "leave")


@pytest.mark.parametrize("step", [Park(ParkReason.PAUSED, "a person"), Fail("gave up", "red", cause=Cause.CHECKS)])
def test_what_a_person_did_or_can_see_anyway_is_no_question(store, project, step):
    with store.write() as tx:
        ticket = add_ticket(tx, project.id).id
        tickets.move(tx, ticket, Start(COMMIT))
        tickets.move(tx, ticket, step)
        assert questions.open_ones(tx) == ()


def test_a_dropped_ticket_asks_nothing_any_more(store, project):
    with store.write() as tx:
        ticket = add_ticket(tx, project.id).id
        tickets.move(tx, ticket, Start(COMMIT))
        tickets.move(tx, ticket, Fail("gave up", "", cause=Cause.CONFLICT))
        tickets.drop(tx, ticket)
        assert questions.open_ones(tx) == ()


def test_the_question_about_a_change_outlives_a_wake_but_not_a_stop(store, project):
    with store.write() as tx:
        ticket = add_ticket(tx, project.id).id
        for step in (Start(COMMIT), Propose(Change(base=COMMIT, commit=COMMIT))):
            tickets.move(tx, ticket, step)
        asked = questions.ask(
            tx,
            key="change:1",
            kind=QuestionKind.CHANGE,
            project=project.id,
            ticket=ticket,
            words="May this change land?",
            deadline=99.0,
        )
        tickets.move(tx, ticket, Park(ParkReason.QUESTION, "it changed protected files"))
        tickets.move(tx, ticket, Unpark())
        assert questions.open_ones(tx) == (asked,)
        tickets.move(tx, ticket, Stop())
        gone = questions.get(tx, asked.id)
    assert (gone.settled_by, gone.choice, gone.allowed) == (SettledBy.END, "no", False)
