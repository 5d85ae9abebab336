"""The queue of jobs for machines in Postgres, through Procrastinate: one queue per machine.

Procrastinate has the locks, priorities, heartbeats and stalled jobs. None of its workers runs here: the head takes
jobs for a machine and sends them. Only a daemon on Postgres imports this module.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Collection, Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import psycopg
from procrastinate import App, PsycopgConnector
from procrastinate.exceptions import AlreadyEnqueued, ConnectorException
from procrastinate.jobs import Job, Status
from procrastinate.schema import SchemaManager

from legion.jobs.machines.engine import EngineUnavailable, PlacedJob, RunKey

# The tables of the queue, in a Postgres schema of their own: those of Procrastinate, by its migrations, and ours.

SCHEMA = "legion_jobs"
SEARCH_PATH = f"-c search_path={SCHEMA}"

_LOCK = "SELECT pg_advisory_lock(hashtext('legion.jobs'))"
_STEPS = "CREATE TABLE IF NOT EXISTS queue_steps (name text PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())"
_OURS = (
    # A worker of Procrastinate has a number and a heartbeat only. A machine keeps its number when the head restarts.
    "CREATE TABLE IF NOT EXISTS queue_machines (machine text PRIMARY KEY, worker_id bigint NOT NULL)",
    # Procrastinate's own index covers waiting jobs only.
    "CREATE INDEX IF NOT EXISTS queue_jobs_key ON procrastinate_jobs (queueing_lock)",
    "CREATE INDEX IF NOT EXISTS queue_jobs_waiting ON procrastinate_jobs (queue_name, id) WHERE status = 'todo'",
    "CREATE INDEX IF NOT EXISTS queue_jobs_taken ON procrastinate_jobs (queue_name) WHERE status = 'doing'",
)


def migrate(conninfo: str) -> tuple[str, ...]:
    """Create or update the tables; returns the names of the steps that it took. Heads that start at once take turns."""
    shipped = {file.name: file for file in Path(SchemaManager.get_migrations_path()).glob("*.sql")}
    # The session's end releases the lock.
    with psycopg.connect(conninfo, autocommit=True, options=SEARCH_PATH) as connection:
        connection.execute(_LOCK)
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
        connection.execute(_STEPS)
        (found,) = connection.execute("SELECT to_regclass('procrastinate_jobs')").fetchone() or (None,)
        if found is None:
            with connection.transaction():
                connection.execute(SchemaManager.get_schema())
                _record(connection, *shipped)
            steps = ["schema"]
        else:
            steps = sorted(shipped.keys() - _recorded(connection))
            for name in steps:
                with connection.transaction():
                    connection.execute(shipped[name].read_bytes())
                    _record(connection, name)
        for statement in _OURS:
            connection.execute(statement)
    return tuple(steps)


def _recorded(connection: psycopg.Connection[tuple[object, ...]]) -> set[object]:
    return {name for (name,) in connection.execute("SELECT name FROM queue_steps").fetchall()}


def _record(connection: psycopg.Connection[tuple[object, ...]], *names: str) -> None:
    with connection.cursor() as cursor:
        cursor.executemany("INSERT INTO queue_steps (name) VALUES (%s)", [(name,) for name in names])


TASK = "legion.run"
_OPEN = (Status.TODO.value, Status.DOING.value)
_CONNECTIONS = 4
_PATIENCE = 10.0
"""Seconds to wait for a free connection, and for a lost server to be back."""
_HEARTBEAT = 1.0
"""Seconds for which one sign of life is enough, of a machine that asks for jobs."""
_QUICK = f"{SEARCH_PATH} -c synchronous_commit=off"
"""Commits do not wait for the disk: the rows of placed runs decide, and a job that the server lost is queued again."""
_MACHINE = "SELECT worker_id FROM queue_machines WHERE machine = %(machine)s"
_ADD_MACHINE = (
    "INSERT INTO queue_machines (machine, worker_id) VALUES (%(machine)s, %(worker)s)"
    " ON CONFLICT (machine) DO UPDATE SET worker_id = queue_machines.worker_id RETURNING worker_id"
)
_Answer = TypeVar("_Answer")


class PostgresQueue:
    """A JobEngine. It owns a thread with an event loop, since Procrastinate takes jobs with coroutines only."""

    def __init__(self, url: str) -> None:
        """`url` as the store has it. Creates and updates the tables. Raises EngineUnavailable."""
        conninfo = f"postgresql://{url.partition('://')[2]}"
        with _translated():
            migrate(conninfo)
        self._app = App(
            connector=PsycopgConnector(
                conninfo=conninfo, kwargs={"options": _QUICK}, min_size=1, max_size=_CONNECTIONS, timeout=_PATIENCE
            )
        )
        self._jobs = self._app.job_manager
        self._workers: dict[str, int] = {}
        """The number of each machine as a worker of Procrastinate, as the table has it."""
        self._renewed: dict[str, float] = {}
        """When the last sign of life of each machine was written, by the monotonic clock."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="queue", daemon=True)
        self._thread.start()
        try:
            self._wait(self._open())
        except BaseException:
            self._end_thread()
            raise

    def place(self, job: PlacedJob, *, taken: bool = False) -> None:
        self._wait(self._place(job, taken))

    def cancel(self, run: str, generation: int) -> None:
        self._wait(self._close(run, generation, Status.CANCELLED))

    def take(self, machine: str, most: int, *, running: Collection[RunKey] = ()) -> Sequence[PlacedJob]:
        return self._wait(self._take(machine, most, running))

    def renew(self, machine: str) -> None:
        self._wait(self._renew(machine, after=0.0))

    def finish(self, run: str, generation: int) -> None:
        self._wait(self._close(run, generation, Status.SUCCEEDED))

    def stalled(self, seconds: float) -> Sequence[PlacedJob]:
        jobs = self._wait(self._jobs.get_stalled_jobs(task_name=TASK, seconds_since_heartbeat=seconds))
        return [_read(job) for job in jobs]

    def prune(self, hours: int) -> None:
        self._wait(self._jobs.delete_old_jobs(nb_hours=hours, include_cancelled=True, include_aborted=True))

    def close(self) -> None:
        self._wait(self._app.close_async())
        self._end_thread()

    async def _open(self) -> None:
        await self._app.open_async()

    async def _place(self, job: PlacedJob, taken: bool) -> None:
        if await self._jobs.list_jobs_async(queueing_lock=_key(job.run, job.generation)):
            return
        task = self._app.configure_task(
            TASK,
            queue=job.machine,
            priority=job.priority,
            lock=_key(job.run, job.generation),
            queueing_lock=_key(job.run, job.generation),
        )
        with suppress(AlreadyEnqueued):  # by another head, since the list above
            await task.defer_async(run=job.run, generation=job.generation, project=job.project)
        if taken:
            # Should another job come first, the machine's next request returns that one: it is not running there.
            await self._jobs.fetch_job(queues=[job.machine], worker_id=await self._renew(job.machine, after=_HEARTBEAT))

    async def _take(self, machine: str, most: int, running: Collection[RunKey]) -> list[PlacedJob]:
        worker = await self._renew(machine, after=_HEARTBEAT)
        taken = map(_read, await self._jobs.list_jobs_async(queue=machine, status=Status.DOING.value))
        jobs = [job for job in taken if job.key not in running]
        while len(jobs) < most:
            job = await self._jobs.fetch_job(queues=[machine], worker_id=worker)
            if job is None:
                break
            jobs.append(_read(job))
        return jobs

    async def _renew(self, machine: str, *, after: float) -> int:
        worker = self._workers.get(machine)
        if worker is None:
            worker = self._workers[machine] = await self._worker(machine)
        now = time.monotonic()
        if now - self._renewed.get(machine, -after) >= after:
            await self._jobs.update_heartbeat(worker_id=worker)
            self._renewed[machine] = now
        return worker

    async def _worker(self, machine: str) -> int:
        rows = await self._app.connector.execute_query_all_async(_MACHINE, machine=machine)
        if rows:
            return int(rows[0]["worker_id"])
        made = await self._jobs.register_worker()
        row = await self._app.connector.execute_query_one_async(_ADD_MACHINE, machine=machine, worker=made)
        if row["worker_id"] != made:  # another head was faster
            await self._jobs.unregister_worker(made)
        return int(row["worker_id"])

    async def _close(self, run: str, generation: int, end: Status) -> None:
        """Give the job its end, once: two heads may do so at the same moment."""
        for job in await self._jobs.list_jobs_async(queueing_lock=_key(run, generation)):
            if job.status not in _OPEN or job.id is None:
                continue
            if end is Status.CANCELLED and await self._jobs.cancel_job_by_id_async(job.id):
                continue
            taken_end = Status.ABORTED if end is Status.CANCELLED else end
            try:
                await self._jobs.finish_job_by_id_async(job.id, taken_end, delete_job=False)
            except ConnectorException:
                if (await self._jobs.get_job_status_async(job.id)).value in _OPEN:
                    raise

    def _wait(self, work: Coroutine[Any, Any, _Answer]) -> _Answer:
        with _translated():
            return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _end_thread(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (ConnectorException, psycopg.Error) as error:
        cause = error.__cause__ or error
        raise EngineUnavailable(f"The queue in Postgres did not answer: {cause}") from error


def _key(run: str, generation: int) -> str:
    return f"{run}/{generation}"


def _read(job: Job) -> PlacedJob:
    given = job.task_kwargs
    return PlacedJob(
        run=str(given["run"]),
        generation=int(str(given["generation"])),
        machine=job.queue,
        project=int(str(given["project"])),
        priority=job.priority,
    )
