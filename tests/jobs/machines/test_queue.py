"""The queue of jobs for machines, on a real Postgres."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator

import psycopg
import pytest

from legion.jobs.machines import postgres_queue
from legion.jobs.machines.engine import EngineUnavailable, JobEngine, PlacedJob
from legion.jobs.machines.postgres_queue import PostgresQueue
from tests.support.postgres import fresh_database


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with fresh_database() as url:
        yield url


@pytest.fixture
def queue(url: str) -> Iterator[PostgresQueue]:
    """Empty, in the database that all tests of this module share."""
    queue = PostgresQueue(url)
    with psycopg.connect(_conninfo(url), autocommit=True) as connection:
        connection.execute("TRUNCATE legion_jobs.procrastinate_jobs, legion_jobs.procrastinate_workers CASCADE")
        connection.execute("TRUNCATE legion_jobs.queue_machines")
    yield queue
    queue.close()


def _conninfo(url: str) -> str:
    return url.replace("+psycopg", "")


def _job(run: str, *, generation: int = 1, machine: str = "m1", priority: int = 0) -> PlacedJob:
    return PlacedJob(run=run, generation=generation, machine=machine, project=7, priority=priority)


def _runs(jobs: object) -> list[str]:
    return [job.run for job in jobs]  # type: ignore[attr-defined]


def test_a_machine_takes_its_own_jobs_by_priority_then_by_age(queue: PostgresQueue):
    engine: JobEngine = queue
    for job in (_job("a"), _job("b", priority=5), _job("c"), _job("other", machine="m2", priority=9)):
        engine.place(job)
    assert engine.take("m1", 2) == [_job("b", priority=5), _job("a")]
    assert engine.take("m1", 2, running=[("a", 1), ("b", 1)]) == [_job("c")]
    assert _runs(engine.take("m2", 9)) == ["other"]


def test_a_repeated_place_changes_nothing_at_any_time(queue: PostgresQueue):
    for _ in range(2):
        queue.place(_job("a"))
    assert _runs(queue.take("m1", 9)) == ["a"]
    queue.place(_job("a"))
    assert queue.take("m1", 9, running=[("a", 1)]) == []
    queue.finish("a", 1)
    queue.place(_job("a"))
    assert queue.take("m1", 9) == []
    queue.place(_job("a", generation=2))
    assert queue.take("m1", 9) == [_job("a", generation=2)]


def test_a_job_whose_answer_was_lost_is_returned_again_beyond_the_limit(queue: PostgresQueue):
    for name in "abc":
        queue.place(_job(name))
    assert _runs(queue.take("m1", 2)) == ["a", "b"]
    assert _runs(queue.take("m1", 0, running=[("b", 1)])) == ["a"]
    assert _runs(queue.take("m1", 2, running=[("a", 1), ("b", 1)])) == ["c"]


def test_a_job_that_was_given_past_the_queue_counts_as_taken(queue: PostgresQueue):
    for _ in range(2):
        queue.place(_job("a"), taken=True)
    assert queue.take("m1", 9, running=[("a", 1)]) == []
    assert _runs(queue.take("m1", 0)) == ["a"], "the machine does not know of it"
    queue.place(_job("b"))
    queue.place(_job("c"), taken=True)
    assert sorted(_runs(queue.take("m1", 9, running=[("a", 1)]))) == ["b", "c"], "whichever was marked, none is lost"
    for name in "abc":
        queue.finish(name, 1)
    assert queue.take("m1", 9) == []


def test_a_head_that_starts_again_returns_what_the_last_one_took(queue: PostgresQueue, url: str):
    queue.place(_job("a"))
    queue.take("m1", 1)
    second = PostgresQueue(url)
    try:
        assert _runs(second.take("m1", 1)) == ["a"]
        assert second.take("m1", 1, running=[("a", 1)]) == []
    finally:
        second.close()


@pytest.mark.parametrize("taken", [False, True], ids=["waiting", "taken"])
def test_a_cancelled_job_is_gone_for_good(queue: PostgresQueue, taken: bool):
    queue.place(_job("a"))
    if taken:
        queue.take("m1", 1)
    for _ in range(2):
        queue.cancel("a", 1)
    assert queue.take("m1", 9) == []
    queue.place(_job("a"))
    queue.finish("a", 1)
    queue.cancel("unknown", 1)
    assert queue.take("m1", 9) == []


def test_only_jobs_of_silent_machines_are_stalled(queue: PostgresQueue, url: str):
    for machine in ("m1", "m2"):
        queue.place(_job(f"on-{machine}", machine=machine))
        queue.place(_job(f"waits-for-{machine}", machine=machine))
        queue.take(machine, 1)
    assert queue.stalled(90) == []
    with psycopg.connect(_conninfo(url), autocommit=True) as connection:
        connection.execute(
            "UPDATE legion_jobs.procrastinate_workers SET last_heartbeat = last_heartbeat - interval '91 seconds'"
        )
    queue.renew("m2")
    assert _runs(queue.stalled(90)) == ["on-m1"]
    queue.renew("m1")
    assert queue.stalled(90) == []


def test_ended_jobs_are_deleted_only_when_they_are_old(queue: PostgresQueue, url: str):
    queue.place(_job("old"))
    queue.place(_job("waits"))
    queue.finish("old", 1)
    queue.prune(1)
    queue.place(_job("old"))
    assert _runs(queue.take("m1", 9)) == ["waits"]
    with psycopg.connect(_conninfo(url), autocommit=True) as connection:
        connection.execute("UPDATE legion_jobs.procrastinate_events SET at = at - interval '2 hours'")
    queue.prune(1)
    queue.place(_job("old"))
    assert _runs(queue.take("m1", 9)) == ["waits", "old"]


def test_heads_that_ask_at_once_never_get_the_same_job(queue: PostgresQueue, url: str):
    names = [f"run{number}" for number in range(40)]
    for name in names:
        queue.place(_job(name))
    heads = [PostgresQueue(url) for _ in range(3)]
    got: list[str] = []

    def take_all(head: PostgresQueue) -> None:
        while jobs := head.take("m1", 1, running=[(name, 1) for name in names]):
            got.extend(_runs(jobs))

    threads = [threading.Thread(target=take_all, args=(head,)) for head in heads]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for head in heads:
        head.close()
    assert sorted(got) == sorted(names)


def test_heads_that_start_at_once_share_one_set_of_tables_and_machines():
    with fresh_database() as url:
        heads: list[PostgresQueue] = []
        threads = [threading.Thread(target=lambda: heads.append(PostgresQueue(url))) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for head in heads:
            head.renew("m1")
            head.close()
        assert len(heads) == 4
        with psycopg.connect(_conninfo(url)) as connection:
            (workers,) = connection.execute("SELECT count(*) FROM legion_jobs.procrastinate_workers").fetchone() or ()
            (outside,) = (
                connection.execute(
                    "SELECT count(*) FROM pg_tables WHERE tablename LIKE 'procrastinate%' AND schemaname = 'public'"
                ).fetchone()
                or ()
            )
        assert (workers, outside) == (1, 0)


def test_steps_of_a_newer_procrastinate_are_taken_once():
    with fresh_database() as url:
        assert postgres_queue.migrate(_conninfo(url)) == ("schema",)
        last = "03.03.00_01_pre_priority_lock_fetch_job.sql"
        with psycopg.connect(_conninfo(url), autocommit=True) as connection:
            connection.execute("DELETE FROM legion_jobs.queue_steps WHERE name = %s", (last,))
        assert postgres_queue.migrate(_conninfo(url)) == (last,)
        assert postgres_queue.migrate(_conninfo(url)) == ()


def test_a_database_that_does_not_answer_is_an_error_of_the_engine(tmp_path):
    with pytest.raises(EngineUnavailable, match=r"did not answer: .*No such file"):
        PostgresQueue(f"postgresql+psycopg://legion@/none?host={tmp_path}")


def test_without_postgres_procrastinate_is_never_imported():
    code = "import sys, legion.daemon.main, legion.jobs.machines.engine; assert 'procrastinate' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
