"""A batch whose settings cannot be read: no link of a chain may bring them, also where a later one fixes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from legion.domain.events import EventKind
from legion.domain.tickets.ticket import Change, Propose, Prove, Start, State
from legion.git.hub.repository import Hub
from legion.jobs.landing.batch import Batch
from legion.jobs.landing.queue import MergeQueue
from legion.jobs.landing.speculation import Speculation
from legion.store.board import projects, tickets
from tests.jobs.office import Office
from tests.store.making import add_ticket
from tests.support.repository import Repository


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    one = Office(tmp_path / "office")
    yield one
    one.close()


def test_a_legion_toml_that_cannot_be_read_is_sent_back_though_the_next_change_fixes_it(office: Office, tmp_path: Path):
    theirs = Repository(tmp_path / "theirs")
    base = theirs.commit("start", {"legion.toml": "[agents]\nparallel = 2\n"})
    broken = theirs.commit("broken", {"legion.toml": "[agents]\nparalel = 2\n"})
    fixed = theirs.commit("fixed", {"legion.toml": "[agents]\nparallel = 3\n", "more.txt": "more\n"})
    hub = Hub.create(theirs.root / ".git", office.context.data.project(office.project) / "hub.git")
    hub.start_target(base)
    with office.context.store.write() as tx:
        numbers = []
        for change in (Change(base=base, commit=broken), Change(base=base, commit=fixed)):
            numbers.append(add_ticket(tx, office.project).id)
            for step in (Start(base), Propose(change), Prove()):
                tickets.move(tx, numbers[-1], step)
        batch = tickets.get_many(tx, numbers)
    project = office.context.project(office.project)
    speculation = Speculation(office.context, MergeQueue(office.context, office.project))
    landed = Batch(office.context, project, batch, with_upstream=False).land(speculation, frozenset())
    assert landed is None
    with office.context.store.read() as tx:
        first, second = tickets.get_many(tx, numbers)
    assert (first.state, second.state) == (State.QUEUED, State.LANDING)
    assert "its legion.toml cannot be read" in first.reason
    assert hub.target() == base


def test_a_person_who_went_back_while_a_change_landed_has_nothing_to_absorb(office: Office, tmp_path: Path):
    """Their branch is older than the target. A land job that tried to absorb it again and again would never end."""
    theirs = Repository(tmp_path / "theirs")
    older, newer = theirs.commit("older", {"a.txt": "1\n"}), theirs.commit("newer", {"a.txt": "2\n"})
    landed = theirs.commit("by a ticket", {"b.txt": "1\n"})
    hub = Hub.create(theirs.root / ".git", office.context.data.project(office.project) / "hub.git")
    hub.start_target(landed)
    with office.context.store.write() as tx:
        record = projects.get(tx, office.project)
        went_back = replace(record, target=landed, person_tip=older, person_absorbed=newer)
        projects.save(tx, went_back, EventKind.PERSON_SEEN, {"tip": older})
    project = office.context.project(office.project)
    assert project.record.upstream_pending
    speculation = Speculation(office.context, MergeQueue(office.context, office.project))
    assert Batch(office.context, project, (), with_upstream=True).land(speculation, frozenset()) is None
    assert not office.context.project(office.project).record.upstream_pending
    assert hub.target() == landed
