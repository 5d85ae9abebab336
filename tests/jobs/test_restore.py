"""A database made anew from the boards in the hubs: what is refused, and what a kill leaves."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import update

from legion.domain.errors import LegionError
from legion.domain.events import EventKind
from legion.domain.runs import Outcome
from legion.domain.tickets.ticket import Start, State
from legion.git.core.errors import BoardMoved
from legion.git.hub.board_ref import REF, BoardRef
from legion.git.hub.repository import Hub
from legion.jobs.backup import restore
from legion.jobs.backup.mirror import Mirror
from legion.store import board_records as records
from legion.store import events
from legion.store.board import tickets
from legion.store.board_records import BoardCondition
from legion.store.database import schema
from legion.store.database.transactions import Store, sqlite_url
from legion.store.work import runs
from legion.system.crash import Point
from tests.jobs.office import Office
from tests.store.making import COMMIT, add_ticket, dies_at
from tests.support.repository import Repository

GARBAGE = b"no database at all" * 500


class Place:
    """A project with a hub, three tickets, and a copy of its board; an agent is at work on the last."""

    def __init__(self, folder: Path) -> None:
        self.office = Office(folder / "office")
        self.context = self.office.context
        self.data = self.context.data
        self.hub = self.data.project(1) / "hub.git"
        Hub.create(Repository(folder / "theirs").root / ".git", self.hub)
        with self.context.store.write() as tx:
            for _ in range(3):
                add_ticket(tx, 1)
            tickets.move(tx, 3, Start(COMMIT))
            runs.start(tx, 3, 1)
        self.mirror = Mirror(self.context)
        assert self.mirror.write()

    @property
    def board(self) -> BoardRef:
        return BoardRef(self.hub)

    @property
    def url(self) -> str:
        return sqlite_url(self.data.database)

    def damage(self) -> None:
        self.office.close()
        for part in self.data.root.glob("legion.db*"):
            part.unlink()
        self.data.database.write_bytes(GARBAGE)

    def rebuild(self) -> restore.Rebuilt:
        assert restore.refuse_sound(self.url) in (BoardCondition.DAMAGED, BoardCondition.LOST)
        return restore.rebuild(self.data, self.url, restore.boards(self.data), 1000.0)

    def try_to(self) -> None:
        self.rebuild()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    one = Place(tmp_path)
    yield one
    one.office.close()


def test_who_was_at_work_is_queued_again_and_numbers_are_not_given_twice(place: Place):
    (place.data.runs / "ticket-8-run-5").mkdir()
    place.damage()
    done = place.rebuild()
    assert (done.resumed, done.landed) == (1, 0)
    assert done.kept is not None
    assert done.kept.read_bytes() == GARBAGE
    store = Store(place.url)
    with store.write() as tx:
        ticket = tickets.get(tx, 3)
        assert (ticket.state, ticket.interrupted, ticket.attempt) == (State.QUEUED, True, 1)
        assert [run.outcome for run in runs.of_ticket(tx, 3)] == [Outcome.LOST]
        assert add_ticket(tx, 1).id == 9, "a folder of a later ticket is there"
        assert runs.start(tx, 1, 1).id == 6
        assert events.latest(tx, 1, EventKind.REBUILT) is not None
    store.close()


@pytest.mark.parametrize("point", [Point.REBUILD_BEFORE_ASIDE, Point.REBUILD_BEFORE_PUBLISH])
def test_a_rebuild_that_is_killed_is_made_again(place: Place, point: Point):
    place.damage()
    dies_at(point, place.try_to)
    place.rebuild()
    assert records.condition(place.url) is BoardCondition.SOUND
    assert [kept.read_bytes() for kept in place.data.root.glob("*.damaged-*")] == [GARBAGE]


def test_a_rebuild_that_is_killed_at_its_end_is_whole(place: Place):
    place.damage()
    dies_at(Point.REBUILD_AFTER_PUBLISH, place.try_to)
    with pytest.raises(LegionError, match="is sound"):
        place.rebuild()


def _break_ref(place: Place) -> None:
    (place.board.path / REF).write_text("0" * 39 + "\n")


def _break_objects(place: Place) -> None:
    for loose in (place.board.path / "objects").glob("[0-9a-f][0-9a-f]/*"):
        loose.chmod(0o600)
        loose.write_bytes(b"garbage")


def _lose_objects(place: Place) -> None:
    for loose in (place.board.path / "objects").glob("[0-9a-f][0-9a-f]/*"):
        if place.board.tip() != f"{loose.parent.name}{loose.name}":
            loose.unlink()


def _write_nonsense(place: Place) -> None:
    _rewrite(place, {records.HEAD: b"{}"})


def _break_a_ticket(place: Place) -> None:
    _rewrite(place, {"tickets/0/1.json": b"{"})


def _leave_out_a_ticket(place: Place) -> None:
    _rewrite(place, {"tickets/0/1.json": b"{}"})


def _come_from_the_future(place: Place) -> None:
    head = json.loads(place.board.read()[records.HEAD])
    _rewrite(place, {records.HEAD: json.dumps({**head, "schema": 99}).encode()})


def _rewrite(place: Place, files: dict[str, bytes]) -> None:
    place.board.write(files, expected=place.board.tip(), message="by hand", when=1)


@pytest.mark.parametrize(
    ("harm", "says"),
    [
        (_break_ref, "is damaged"),
        (_break_objects, "is damaged"),
        (_lose_objects, "is damaged"),
        (_write_nonsense, "is damaged"),
        (_break_a_ticket, "is damaged"),
        (_leave_out_a_ticket, "do not make a database"),
        (_come_from_the_future, "newer Legion"),
    ],
)
def test_a_board_that_cannot_be_used_is_one_sentence_and_changes_nothing(
    place: Place, harm: Callable[[Place], None], says: str
):
    place.damage()
    harm(place)
    with pytest.raises(LegionError, match=says) as refused:
        place.rebuild()
    assert str(place.data.projects) in refused.value.message or "newer" in refused.value.message
    assert "\n" not in refused.value.message
    assert place.data.database.read_bytes() == GARBAGE


def test_a_board_is_written_over_nobody_elses(place: Place):
    with pytest.raises(BoardMoved):
        place.board.write({}, expected="a" * 40, whole=True, message="late", when=1)


def test_the_board_of_another_database_is_set_aside_and_never_written_over(place: Place):
    before = place.board.read()
    with place.context.store.write() as tx:
        # As a database that begins anew: the same project, made at another time.
        tx.execute(update(schema.projects).values(created_at=5.0))
        add_ticket(tx, 1)
    assert Mirror(place.context).write()
    assert place.board.read() != before
    (aside,) = place.hub.glob("board-before-*")
    aside.rename(place.hub / "elsewhere")
    (place.hub / "board").rename(place.hub / "new")
    (place.hub / "elsewhere").rename(place.hub / "board")
    assert place.board.read() == before


def test_a_damaged_copy_is_set_aside_and_made_anew(place: Place):
    _lose_objects(place)
    with place.context.store.write() as tx:
        add_ticket(tx, 1)
    assert [place.mirror.write(), place.mirror.write()] == [False, True]
    assert len([name for name in place.board.read() if name.startswith("tickets/")]) == 4
    assert len(list(place.hub.glob("board-before-*"))) == 1


def test_a_copy_is_gone_on_with_and_swept(place: Place):
    tip = place.board.tip()
    assert Mirror(place.context).write()
    assert place.board.tip() == tip, "nothing happened since"
    with place.context.store.write() as tx:
        add_ticket(tx, 1)
    assert place.mirror.write()
    assert len([name for name in place.board.read() if name.startswith("tickets/")]) == 4
    place.board.sweep()
    assert len(place.board.read()) == 5
    loose = [name for _, _, names in os.walk(place.board.objects) for name in names if len(name) == 38]
    assert loose == []
