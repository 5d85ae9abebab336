"""The real service on a real SQLite with one project, and a test's hand on its rows. Nothing runs: no agent, no job."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sqlalchemy import bindparam, delete, insert, text, update

from legion import __version__
from legion.config.files.user import CurrentSettings
from legion.domain.events import EventKind
from legion.domain.questions import Question, QuestionKind
from legion.domain.runs import Outcome
from legion.domain.tickets.ticket import (
    AskReview,
    Cause,
    Change,
    Fail,
    Land,
    Park,
    ParkReason,
    Propose,
    Prove,
    Start,
    State,
    Step,
    Stop,
    Ticket,
)
from legion.drivers import Program
from legion.jobs.context import Context
from legion.jobs.run.job import run_dir
from legion.runner.launch import Launcher
from legion.runner.probe import SandboxKind, SandboxState
from legion.runner.spec import RunFolder, RunSpec, write_spec
from legion.service.entry.callers import CallerRegistry
from legion.service.operations import Caller, Service
from legion.service.shared.commit_signal import CommitSignal
from legion.store import events
from legion.store.board import questions, tickets
from legion.store.database import schema
from legion.store.database.prepared import PreparedStatement
from legion.store.database.transactions import Store, Transaction
from legion.store.staff import agents, tokens
from legion.store.work import runs
from legion.system.paths import DataDir
from legion.wire.agents import HireAgent
from legion.wire.board import DaemonLine
from legion.wire.projects import AddProject, Trust
from legion.wire.table import Operation
from tests.store.making import add_ticket
from tests.support.migrated import migrated_store
from tests.support.repository import Repository
from tests.support.settings import PLAIN_SETTINGS

CHECKS = '[checks.test]\nrun = "make test"\n'
_KEPT = (schema.projects, schema.counters)
_EMPTY = [PreparedStatement(delete(table)) for table in schema.metadata.sorted_tables if table not in _KEPT]
"""Before each test: SQLAlchemy would take ten times as long for them."""
_COUNT = PreparedStatement(
    update(schema.counters).where(schema.counters.c.name == bindparam("counter")).values(value=bindparam("number"))
)


class WatchedSignal(CommitSignal):
    """Says when a thread starts to wait."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.waiting = threading.Semaphore(0)

    def wait(self, after: int, timeout: float) -> bool:
        self.waiting.release()
        return super().wait(after, timeout)


class WatchedCallers(CallerRegistry):
    """Notes what reaches the service.

    `trouble` is raised instead of the answers; `instead` holds answers, by operation, that need a program at work.
    """

    def __init__(self, context: Context, service: Service, news: CommitSignal) -> None:
        super().__init__(context, service, news)
        self.forget()

    def forget(self) -> None:
        self.asked: list[str] = []
        self.sent: list[Mapping[str, Any]] = []
        self.names: list[str] = []
        """The callers."""
        self.trouble: BaseException | None = None
        self.instead: dict[str, object] = {}

    def perform(self, caller: Caller, row: Operation, arguments: Mapping[str, Any]) -> Any:
        self.asked.append(row.name)
        self.sent.append(arguments)
        self.names.append(caller.id)
        if self.trouble is not None:
            raise self.trouble
        if row.name in self.instead:
            return self.instead[row.name]
        return super().perform(caller, row, arguments)


class Board:
    def __init__(self, folder: Path, *, sandbox: str = "", store: Store | None = None) -> None:
        """`sandbox` says why none works; empty: one does. Without a store it gets an SQLite of its own."""
        self.data = DataDir(folder / "data")
        self.data.prepare()
        self.store = store or migrated_store(self.data.database)
        self.context = Context(
            data=self.data,
            store=self.store,
            launcher=Launcher(),
            settings=CurrentSettings(PLAIN_SETTINGS),
            sandbox=SandboxState(kind=SandboxKind.PROCESS_GROUPS, works=not sandbox, why=sandbox or "it works"),
            url="",
            machine="here",
            clock=time.time,
        )
        self.news = WatchedSignal(self.store)
        self.down = threading.Event()
        line = DaemonLine(pid=4242, url="", version=__version__, data_dir="", started_at=time.time(), sandbox="works")
        self.service = Service(self.context, self.news, daemon=line, end=self.down.set)
        self.callers = WatchedCallers(self.context, self.service, self.news)
        if not (folder / "shop").exists():
            made = Repository(folder / "shop", CHECKS)
            made.git("checkout", "--quiet", "-b", "change")
            made.commit("A change", {"README.txt": "hello, world\n"})
            made.git("checkout", "--quiet", "main")
        self.repository = Repository.at(folder / "shop")
        self.cwd = str(self.repository.root)
        self.base, self.change = self.repository.git("rev-parse", "main", "change").split()
        self.service.add_project(AddProject(path=self.cwd))
        self.trust()
        with self.store.read() as tx:
            self._counters = {row.name: row.value for row in tx.execute(schema.counters.select())}
            self._trusted = [dict(row._mapping) for row in tx.execute(schema.trusted.select())]

    def close(self) -> None:
        self.news.close()
        self.context.launcher.close()
        self.store.close()

    def trust(self) -> None:
        hashes = [text.hash for text in self.service.trustable(self.cwd).texts]
        self.service.trust(Trust(cwd=self.cwd, hashes=hashes))

    def reset(self) -> None:
        """Only the project is left. Numbers of events continue."""
        with self.store.write() as tx:
            tx.execute(text("PRAGMA defer_foreign_keys = ON"))
            for statement in _EMPTY:
                tx.run(statement, {})
            for name in {row.name for row in tx.execute(schema.counters.select())} - {"event"}:
                self._count(tx, name, self._counters.get(name, 0))
            tx.execute(insert(schema.trusted), self._trusted)
            tx.execute(update(schema.projects).values(paused=False))
        # The next run has the number of one that was.
        shutil.rmtree(self.data.runs)
        self.data.prepare()
        queue = self.context.live.queue
        queue.tests.remove(list(queue.tests.current))
        queue.suspected.remove(list(queue.suspected.current))
        queue.blamed.remove(list(queue.blamed.current))
        self.callers.forget()
        self.down.clear()
        while self.news.waiting.acquire(blocking=False):
            pass

    @property
    def last_event(self) -> int:
        with self.store.read() as tx:
            return events.last(tx)

    @property
    def tickets(self) -> dict[int, Ticket]:
        with self.store.read() as tx:
            ids = [row.id for row in tx.execute(schema.tickets.select().where(schema.tickets.c.dropped_at.is_(None)))]
            return {ticket.id: ticket for ticket in tickets.get_many(tx, ids)}

    def put(self, id: int, title: str = "", state: str = "queued", reason: str = "", **spec: Any) -> Ticket:
        """A ticket in that state: a new one with that number, or one that is there and moves on."""
        cause = spec.pop("cause", Cause.ATTEMPT)
        with self.store.write() as tx:
            if id not in tickets.states_of(tx, [id]):
                self._count(tx, "ticket", id - 1)
                values: dict[str, Any] = {"title": title or f"Ticket {id}", "text": "Make it so.", "command": "agent"}
                values |= {name: tuple(one) if isinstance(one, list) else one for name, one in spec.items()}
                add_ticket(tx, 1, **values)
            ticket = tickets.get(tx, id)
            gone = len(self._way(ticket.state.value, "", cause))
            for step in self._way(state, reason, cause)[gone:]:
                ticket = tickets.move(tx, id, step)
            return ticket

    def happen(self, *about: int | None) -> None:
        """An event about each of these tickets; about none without an argument."""
        with self.store.write() as tx:
            for ticket in about or (None,):
                tx.record(EventKind.TICKET_REPORTED, project=1, ticket=ticket, data={})

    def run(self, ticket: int, output: str = "", *, ended: bool = True, driver: str = "") -> int:
        """A run of a ticket that has printed that. With a driver its program has started, as far as files show."""
        with self.store.write() as tx:
            run = runs.start(tx, ticket, 1)
            if driver:
                program = Program(argv=("true",), cwd=self.data.root, env={})
                write_spec(
                    run_dir(self.context, run), RunSpec(run=run.name, program=program, driver=driver, sandbox=None)
                )
            # Before a client can ask for it.
            file = RunFolder(run_dir(self.context, run)).output
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(output, newline="")
            if ended:
                runs.end(tx, run.id, Outcome.FINISHED)
        return run.id

    def prepare(self, id: int) -> None:
        """Its worktree is ready and its program starts."""
        with self.store.read() as tx:
            RunFolder(run_dir(self.context, runs.get(tx, id))).spec.write_text("{}")

    def print(self, id: int, output: str) -> None:
        """Add to what a run has printed."""
        with self._output(id).open("a", newline="") as printed:
            printed.write(output)

    def _output(self, id: int) -> Path:
        with self.store.read() as tx:
            file = RunFolder(run_dir(self.context, runs.get(tx, id))).output
        file.parent.mkdir(parents=True, exist_ok=True)
        return file

    def end_run(self, id: int) -> None:
        with self.store.write() as tx:
            runs.end(tx, id, Outcome.FINISHED)

    def token_of_agent(self) -> tuple[str, str]:
        """The id of a standing agent in a turn, and its token."""
        hired = self.service.hire(HireAgent(task="stand there", cwd=self.cwd))
        with self.store.write() as tx:
            run = runs.start_turn(tx, agents.get(tx, hired.id), "prompt")
            return hired.id, tokens.issue(tx, run=run.id, agent=hired.id)

    def token_of_ticket(self, id: int) -> str:
        run = self.run(id, ended=False)
        with self.store.write() as tx:
            return tokens.issue(tx, run=run, ticket=id)

    def ask(self, id: int = 3, **different: Any) -> None:
        """A question that was asked two minutes ago and has an hour."""
        facts: dict[str, Any] = {
            "kind": QuestionKind.PERMISSION,
            "ticket": 12,
            "words": "May it use WebFetch: https://example.test",
            "deadline": time.time() + 3475,
            "choices": ("yes", "no"),
            "fallback": "no",
        }
        with self.store.write() as tx:
            self._count(tx, "question", id - 1)
            questions.ask(tx, key=f"question {id}", project=1, **(facts | different))
            tx.execute(update(schema.questions).values(asked_at=time.time() - 125))

    def question(self, id: int = 3) -> Question:
        with self.store.read() as tx:
            return questions.get(tx, id)

    def _count(self, tx: Transaction, name: str, value: int) -> None:
        tx.run(_COUNT, {"counter": name, "number": value})

    def _way(self, state: str, reason: str, cause: Cause) -> tuple[Step, ...]:
        """The moves of a new ticket to that state."""
        start, propose = Start(self.base), Propose(Change(base=self.base, commit=self.change))
        ways: dict[str, tuple[Step, ...]] = {
            "queued": (),
            "working": (start,),
            "checking": (start, propose),
            "reviewing": (start, propose, AskReview(("reviewer",), "it asks for it")),
            "landing": (start, propose, Prove()),
            "done": (start, propose, Prove(), Land(self.change)),
            "failed": (start, Fail(reason, cause=cause)),
            "parked": (start, Park(ParkReason.PAUSED, reason or "paused by a person")),
            "stopped": (Stop(),),
        }
        return ways[State(state).value]
