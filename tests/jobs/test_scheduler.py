"""The scheduler with a real store: claims are released at last, and one project's bad settings hold no other."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from legion.domain.scheduling.decide import Claim, JobKind
from legion.domain.scheduling.job_places import Wake
from legion.jobs.scheduling.scheduler import Scheduler, UnreleasedClaims
from legion.service.views import doctor, status
from legion.store.board import projects
from legion.store.work import claims
from legion.wire.board import DaemonLine
from tests.jobs.office import Office
from tests.store.making import add_project, add_ticket
from tests.support.board import Board

DAEMON = DaemonLine(pid=1, url="", version="", data_dir="", started_at=0.0, sandbox="")


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    one = Office(tmp_path)
    yield one
    one.close()


def claimed(office: Office, kind: JobKind, subject: int) -> Claim:
    with office.context.store.write() as tx:
        return claims.claim(tx, kind, subject, "here")


def active(office: Office) -> list[tuple[JobKind, int]]:
    with office.context.store.read() as tx:
        return [(claim.kind, claim.subject) for claim in claims.active(tx)]


def test_a_claim_that_is_added_while_another_is_released_is_not_lost(office: Office):
    unreleased = UnreleasedClaims(office.context.store)
    first, second = claimed(office, JobKind.LAND, 1), claimed(office, JobKind.BASELINE, 1)
    unreleased.add(first)
    late = [second]

    def job_breaks() -> None:
        while late:
            unreleased.add(late.pop())

    office.context.store.on_commit(job_breaks)
    unreleased.release_all()
    assert active(office) == [(JobKind.BASELINE, 1)]
    unreleased.release_all()
    assert active(office) == []


def test_a_job_whose_claim_cannot_be_released_now_is_released_later_whatever_the_store_says(office: Office):
    scheduler = Scheduler(office.context)
    claim = claimed(office, JobKind.RUN, 4711)
    rename(office, "events", "events_away")
    scheduler.run_job(claim)
    rename(office, "events_away", "events")
    assert active(office) == [(JobKind.RUN, 4711)]
    backoff = office.context.live.scheduler.backoffs.get((JobKind.RUN, 4711))
    assert backoff is not None
    scheduler.decide_once()
    assert active(office) == []


def rename(office: Office, table: str, name: str) -> None:
    with closing(sqlite3.connect(office.context.data.database)) as connection:
        connection.execute(f"ALTER TABLE {table} RENAME TO {name}")


def test_one_unreadable_legion_toml_holds_its_own_project_and_no_other(office: Office):
    with office.context.store.write() as tx:
        bad = replace(projects.get(tx, office.project), config_text="[agents]\nparalel = 3\n")
        projects.save(tx, bad)
        add_project(tx, "bob")
        add_ticket(tx, office.project)
    Scheduler(office.context).decide_once()
    held = office.context.live.scheduler.unreadable.current
    assert set(held) == {office.project}
    assert "paralel" in held[office.project]
    assert active(office) == []
    page = status.status(office.context, DAEMON, str(office.root), False)
    assert page.project is not None
    assert any("cannot be read" in note and "legion trust" in note for note in page.project.notes)
    findings = doctor.doctor(office.context, str(office.root)).findings
    assert [one.ok for one in findings if one.name == "legion.toml"] == [False]


def test_an_outdated_command_takes_none_of_its_group_with_it(tmp_path: Path):
    board = Board(tmp_path)
    versions = {number: board.put(number, state="parked").version for number in (1, 2, 3)}
    Scheduler(board.context)._apply([Wake(1, versions[1]), Wake(2, versions[2] - 1), Wake(3, versions[3])])
    parked = [number for number, ticket in board.tickets.items() if ticket.parked is not None]
    board.close()
    assert parked == [2]


def test_a_failed_decision_is_retried_ever_later_and_the_status_says_why(office: Office):
    scheduler = Scheduler(office.context)
    undecided = office.context.live.scheduler.undecided
    rename(office, "claims", "claims_away")
    lengths = []
    for _ in range(6):
        scheduler.try_to_decide()
        lengths += [one.length for one in undecided.current.values()]
    assert lengths == [1, 2, 4, 8, 10, 10]
    page = status.status(office.context, DAEMON, str(office.root), False)
    assert page.project is not None
    assert any(note.startswith("nothing new starts; tried again in 10 s: ") for note in page.project.notes)
    rename(office, "claims_away", "claims")
    scheduler.try_to_decide()
    assert not undecided.current
