"""Tickets in the database: nothing of them is lost, they move by the rules only, and lists are what they say."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy.exc import IntegrityError

from legion.domain.errors import NotFound, StateConflict
from legion.domain.events import EventKind
from legion.domain.tickets.evidence import Bound
from legion.domain.tickets.spec import LandingGate, ReviewPolicy, StartPoint, TicketSpec
from legion.domain.tickets.ticket import (
    Change,
    Fail,
    Park,
    ParkReason,
    Propose,
    Resume,
    Retry,
    Start,
    StartPointUsed,
    State,
    Stop,
    Ticket,
    TryAgain,
    Unpark,
)
from legion.store import events
from legion.store.board import tickets
from legion.store.database import schema
from tests.store.making import COMMIT, TREE, add_project, add_ticket, land, stop

FULL_WISH = TicketSpec(
    title='-- \'a "title"\nwith; everything 🙂',
    text="text",
    context="context",
    criteria="criteria",
    plan="plan",
    after=(2, 1),
    files=("src/*.py", "a b"),
    proofs=("make test", "echo '$HOME'"),
    bound=(Bound(criterion=0, by="make test"),),
    acceptance=("smoke",),
    climbs=True,
    checkpoint=True,
    epic="epic",
    priority=-3,
    driver="claude",
    command="./agent --now",
    model="model",
    max_attempts=2,
    asks=True,
    budget=2.5,
    dispatcher="5f2c1d7e",
    tools=("Read", "Bash"),
    alone=True,
    retires=(1,),
    undoes=1,
    review=ReviewPolicy.RISKY,
    gate=LandingGate.PERSON,
    team="tech_lead_team",
    crew="00ff",
    labels=("urgent",),
    on=("gpu",),
)


def test_every_field_of_a_wish_comes_back(store, project):
    plain = TicketSpec(title="", text="")
    assert all(getattr(FULL_WISH, field.name) != getattr(plain, field.name) for field in fields(TicketSpec))
    with store.write() as tx:
        add_ticket(tx, project.id)
        add_ticket(tx, project.id)
        created = tickets.create(tx, project.id, FULL_WISH)
    expected = Ticket(
        id=3, project=project.id, spec=FULL_WISH, state=State.QUEUED, version=1, created_at=tx.now, moved_at=tx.now
    )
    assert created == expected
    with store.read() as tx:
        assert tickets.get(tx, 3) == created
        assert tickets.get_many(tx, (3, 1)) == (created, tickets.get(tx, 1))
        last = events.after(tx, 0)[-1]
    assert (last.kind, last.ticket, last.project) == (EventKind.TICKET_CREATED, 3, project.id)
    assert last.data == {"title": FULL_WISH.title, "after": [2, 1], "state": "queued"}


def test_every_field_of_a_ticket_is_written_by_a_move(store, project):
    """Steps that together touch every field; after each the database holds what the rules say."""
    seen = []
    steps = (
        Start(COMMIT, behind=1),
        Resume("the machine slept"),
        Start(COMMIT),
        Propose(Change(base=COMMIT, commit=TREE), claims=("a.py::f",)),
        TryAgain("red", "it fails", StartPoint(base=TREE, tree=COMMIT, lost=("a.py::g",)), skips=2),
        Start(COMMIT),
        StartPointUsed(),
        Park(ParkReason.LIMIT, "till noon", 99.5),
        Unpark(),
        Fail("no"),
        Retry("once more"),
    )
    with store.write() as tx:
        ticket = add_ticket(tx, project.id)
    for step in steps:
        with store.write() as tx:
            ticket = tickets.move(tx, ticket.id, step, expected_version=ticket.version)
        with store.read() as tx:
            assert tickets.get(tx, ticket.id) == ticket
        seen.append(ticket)
    with store.write() as tx:
        seen.append(land(tx, ticket.id))
    never = [field.name for field in fields(Ticket) if len({str(getattr(one, field.name)) for one in seen}) == 1]
    assert never == ["id", "project", "spec", "unchecked", "retired", "place", "created_at"]


def test_a_move_is_told_with_its_reason(store, project):
    with store.write() as tx:
        add_ticket(tx, project.id)
        tickets.move(tx, 1, Stop("not needed"))
    with store.read() as tx:
        last = events.after(tx, 0)[-1]
    assert (last.kind, last.ticket, last.project, last.at) == (EventKind.TICKET_MOVED, 1, project.id, 1000.0 + 2)
    assert last.data == {
        "step": "stop",
        "from": "queued",
        "to": "stopped",
        "attempt": 0,
        "reason": "not needed",
        "rule": "person",
    }


def test_an_illegal_move_changes_nothing(store, project):
    with store.write() as tx:
        before = add_ticket(tx, project.id)
    with pytest.raises(StateConflict, match="cannot go that way now"), store.write() as tx:
        tickets.move(tx, 1, Propose(Change(base=COMMIT, commit=TREE)))
    with store.read() as tx:
        assert tickets.get(tx, 1) == before
        assert events.last(tx) == 2


def test_a_move_decided_on_an_old_version_is_refused(store, project):
    with store.write() as tx:
        seen = add_ticket(tx, project.id)
        tickets.move(tx, 1, Stop())
        tickets.move(tx, 1, Retry())
    with pytest.raises(StateConflict, match="look at it again"), store.write() as tx:
        tickets.move(tx, 1, Start(COMMIT), expected_version=seen.version)
    with store.read() as tx:
        assert tickets.get(tx, 1).state is State.QUEUED


def test_an_unknown_ticket_is_said(store):
    with store.write() as tx:
        for asking in (
            lambda: tickets.get(tx, 9),
            lambda: tickets.get_many(tx, (9,)),
            lambda: tickets.move(tx, 9, Stop()),
            lambda: tickets.drop(tx, 9),
        ):
            with pytest.raises(NotFound, match=r"There is no ticket 9: see `legion status`\."):
                asking()


def test_a_ticket_cannot_come_after_one_that_does_not_exist(store, project):
    with pytest.raises(IntegrityError), store.write() as tx:
        add_ticket(tx, project.id, after=(77,))
    with store.read() as tx:
        assert tickets.live(tx) == ()


def test_live_tickets_are_those_that_have_not_ended_without_their_long_texts(store, project):
    with store.write() as tx:
        other = add_project(tx, "other")
        for number in range(4):
            add_ticket(tx, project.id, title=str(number), context="long", proofs=("make",))
        add_ticket(tx, other.id)
        land(tx, 1)
        stop(tx, 2)
        tickets.move(tx, 3, Park(ParkReason.PAUSED, "wait"))
    with store.read() as tx:
        assert [ticket.id for ticket in tickets.live(tx)] == [3, 4, 5]
        mine = tickets.live(tx, project.id)
        whole = tickets.get(tx, 3)
    assert [ticket.id for ticket in mine] == [3, 4]
    assert mine[0] == replace(whole, spec=replace(whole.spec, text="", context=""))
    with store.write() as tx:
        tickets.move(tx, 2, Retry())
        assert [ticket.id for ticket in tickets.live(tx, project.id)] == [2, 3, 4]


def test_ended_tickets_come_in_pages_newest_first(store, project):
    with store.write() as tx:
        other = add_project(tx, "other")
        for _ in range(9):
            add_ticket(tx, project.id)
        add_ticket(tx, other.id)
    for number in (5, 1, 9, 3, 10):
        with store.write() as tx:
            stop(tx, number)
    with store.write() as tx:
        for number in (8, 2):
            stop(tx, number)
    expected = [8, 2, 3, 9, 1, 5]
    with store.read() as tx:
        for size in (1, 2, 4):
            seen: list[int] = []
            page = tickets.recent(tx, project.id, size)
            while page:
                seen += [ticket.id for ticket in page]
                page = tickets.recent(tx, project.id, size, before=page[-1])
            assert seen == expected, "also where a page ends between two that ended at the same moment"
        assert [ticket.id for ticket in tickets.recent(tx, None, 99)] == [8, 2, 10, 3, 9, 1, 5]
        assert [ticket.id for ticket in tickets.recent(tx, project.id, 2, state=State.STOPPED)] == [8, 2]
        assert tickets.recent(tx, project.id, 99, state=State.FAILED) == ()


def test_counts_states_and_edges_tell_of_the_whole_board(store, project):
    with store.write() as tx:
        other = add_project(tx, "other")
        add_ticket(tx, project.id)
        add_ticket(tx, project.id, after=(1,))
        add_ticket(tx, project.id, after=(2, 1))
        add_ticket(tx, other.id)
        land(tx, 1)
        stop(tx, 4)
        tickets.drop(tx, 4)
    with store.read() as tx:
        assert tickets.counts(tx, project.id) == {State.DONE: 1, State.QUEUED: 2}
        assert tickets.counts(tx, other.id) == {}
        assert tickets.counts(tx) == {State.DONE: 1, State.QUEUED: 2}
        assert tickets.states_of(tx, (1, 2, 4, 99)) == {1: State.DONE, 2: State.QUEUED}
        assert tickets.states_of(tx, range(2000)) == {1: State.DONE, 2: State.QUEUED, 3: State.QUEUED}
        assert tickets.edges(tx, project.id) == {1: (), 2: (1,), 3: (2, 1)}
        assert tickets.dependants(tx, 1) == (2, 3)


def test_a_dropped_ticket_is_off_the_board_and_its_story_stays(store, project):
    with store.write() as tx:
        add_ticket(tx, project.id, title="gone")
        tickets.drop(tx, 1)
    with store.read() as tx:
        with pytest.raises(NotFound):
            tickets.get(tx, 1)
        assert tickets.live(tx) == tickets.recent(tx, project.id, 9) == ()
        assert tickets.dropped(tx, (1, 2)) == {1}
        assert tickets.edges(tx, project.id) == {}
        assert [event.kind for event in events.of_ticket(tx, 1)] == [EventKind.TICKET_CREATED, EventKind.TICKET_DROPPED]
    with store.write() as tx:
        assert add_ticket(tx, project.id).id == 2, "its number is not given again"


def test_a_ticket_in_hand_or_waited_for_cannot_be_dropped(store, project):
    with store.write() as tx:
        add_ticket(tx, project.id)
        add_ticket(tx, project.id, after=(1,))
        tickets.move(tx, 1, Start(COMMIT))
        with pytest.raises(StateConflict, match="stop it first with `legion stop 1`"):
            tickets.drop(tx, 1)
        stop(tx, 1)
        with pytest.raises(StateConflict, match="waited for by 2: drop those first"):
            tickets.drop(tx, 1)
        tickets.drop(tx, 2)
        tickets.drop(tx, 1)
    with store.read() as tx:
        assert tickets.counts(tx) == {}


def test_a_megabyte_of_text_comes_back_whole(store, project):
    long = "häßlich 🙂 \\ ' \"\n\t" * 60_000
    assert len(long.encode()) > 1_000_000
    with store.write() as tx:
        created = add_ticket(tx, project.id, context=long, text=long)
        tickets.move(tx, created.id, Start(COMMIT))
        tickets.move(tx, created.id, TryAgain("red", long))
    with store.read() as tx:
        found = tickets.get(tx, created.id)
    assert (found.spec.context, found.spec.text, found.feedback) == (long, long, long)


def test_what_no_database_can_hold_becomes_a_visible_mark(store, project):
    """A program may print NUL bytes and broken characters: they must not stop the work, on neither database."""
    with store.write() as tx:
        created = add_ticket(tx, project.id, title="a\x00b", text="half \udc80 character", proofs=("x\x00\udc80",))
        tickets.move(tx, created.id, Stop("because \x00 of \udcff"))
    with store.read() as tx:
        found = tickets.get(tx, created.id)
        last = events.after(tx, 0)[-1]
    assert found.spec.title == created.spec.title == "a\N{REPLACEMENT CHARACTER}b"
    assert found.spec.text == "half \N{REPLACEMENT CHARACTER} character"
    assert found.reason == "because \N{REPLACEMENT CHARACTER} of \N{REPLACEMENT CHARACTER}"
    assert last.data["to"] == "stopped"


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(title=st.text(), texts=st.lists(st.text(), min_size=4, max_size=4), files=st.lists(st.text(), max_size=3))
def test_any_text_comes_back(store, title, texts, files):
    text, context, criteria, plan = texts
    spec = TicketSpec(title=title, text=text, context=context, criteria=criteria, plan=plan, files=tuple(files))
    with store.write() as tx:
        known = schema.projects.c.id
        owner = tx.execute(schema.projects.select().order_by(known)).first()
        owner_id = owner.id if owner is not None else add_project(tx).id
        created = tickets.create(tx, owner_id, spec)
    with store.read() as tx:
        found = tickets.get(tx, created.id).spec
    for name in ("title", "text", "context", "criteria", "plan"):
        assert getattr(found, name) == getattr(spec, name).replace("\x00", "\N{REPLACEMENT CHARACTER}")
    assert found.files == spec.files
