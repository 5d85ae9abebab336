"""Claims: one at a time, and the outdated generation can neither finish nor write."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import insert
from sqlalchemy.exc import IntegrityError

from legion.domain.errors import StateConflict
from legion.domain.scheduling.decide import Claim, JobKind
from legion.store.database import schema
from legion.store.database.errors import StaleClaim
from legion.store.database.transactions import Store
from legion.store.work import claims as jobs
from tests.store.making import in_a_process


def claim_in(store: Store, subject: int = 7) -> Claim:
    with store.write() as tx:
        return jobs.claim(tx, JobKind.RUN, subject, "here")


def finish_in(store: Store, claim: Claim) -> None:
    with store.write() as tx:
        jobs.finish(tx, claim)


def test_a_job_is_claimed_once_and_again_after_it_is_finished(store):
    first = claim_in(store)
    with pytest.raises(StateConflict, match="is running already"):
        claim_in(store)
    with store.read() as tx:
        assert jobs.active(tx) == (first,)
    finish_in(store, first)
    second = claim_in(store)
    assert (first.generation, second.generation) == (1, 2)
    assert second.id != first.id


def test_other_kinds_and_subjects_are_other_jobs(store):
    with store.write() as tx:
        claims = [jobs.claim(tx, kind, subject, "here") for kind in JobKind for subject in (1, 2)]
        assert jobs.active(tx) == tuple(claims)
    assert {claim.generation for claim in claims} == {1}


def test_a_claim_comes_back_as_it_was_made(store):
    with store.write() as tx:
        made = jobs.claim(tx, JobKind.LAND, 3, "machine-9", until=12.5)
    assert made == Claim(id=1, kind=JobKind.LAND, subject=3, generation=1, machine="machine-9", until=12.5, active=True)
    with store.read() as tx:
        assert jobs.active(tx) == (made,)


def test_an_outdated_generation_cannot_finish_or_write(store):
    old = claim_in(store)
    finish_in(store, old)
    new = claim_in(store)
    with store.read() as tx:
        assert not jobs.still_mine(tx, old)
        assert jobs.still_mine(tx, new)
    with pytest.raises(StaleClaim, match="leave it alone"):
        finish_in(store, old)
    with store.read() as tx:
        assert jobs.active(tx) == (new,)


def test_a_finished_claim_cannot_be_finished_twice(store):
    claim = claim_in(store)
    finish_in(store, claim)
    with pytest.raises(StaleClaim):
        finish_in(store, claim)


def test_of_many_threads_one_gets_the_job(store):
    def attempt(_: int) -> Claim | None:
        try:
            return claim_in(store)
        except StateConflict:
            return None

    for generation in range(1, 6):
        with ThreadPoolExecutor(8) as threads:
            won = [claim for claim in threads.map(attempt, range(8)) if claim is not None]
        assert [claim.generation for claim in won] == [generation]
        finish_in(store, won[0])


def test_of_two_processes_one_gets_the_job(migrated_url, store):
    def attempt() -> None:
        mine = Store(migrated_url)
        try:
            claim_in(mine)
        finally:
            mine.close()

    with ThreadPoolExecutor(4) as threads:
        codes = list(threads.map(lambda _: in_a_process(attempt), range(4)))
    assert sorted(codes) == [0, 99, 99, 99]
    with store.read() as tx:
        assert len(jobs.active(tx)) == 1


def test_the_database_itself_refuses_a_second_active_claim(store):
    claim_in(store)
    row = {"id": 99, "kind": JobKind.RUN, "subject": 7, "generation": 9, "machine": "", "active": True, "claimed_at": 0}
    with pytest.raises(IntegrityError), store.write() as tx:
        tx.execute(insert(schema.claims), [row])
    with pytest.raises(IntegrityError), store.write() as tx:
        tx.execute(insert(schema.claims), [row | {"active": False, "generation": 1}])
