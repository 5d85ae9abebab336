"""A daemon's rooms without its conductor: everything is real and nothing starts, so that rights can be tried out.

Whoever is hired here never gets a turn; its run is written down as one that goes on, and its token is a real one.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import uvicorn

from legion.api.app import make_app
from legion.client.http import DaemonAddress, DaemonConnection
from legion.client.legion import Legion
from legion.config.files.user import UserConfig
from legion.daemon.main import wired
from legion.domain.runs import Outcome
from legion.domain.tickets.ticket import Park, ParkReason, Start
from legion.jobs.agent import plan_approval
from legion.jobs.context import Context
from legion.service.entry.callers import CallerRegistry
from legion.service.operations import Service
from legion.store.board import tickets
from legion.store.staff import agents, tokens
from legion.store.work import runs
from legion.system.paths import DataDir
from legion.wire.agents import HireAgent, Hired, ToolAnswer
from legion.wire.board import DaemonLine
from legion.wire.projects import AddProject, Trust
from tests.support.legion import Squad
from tests.support.migrated import migrated_store
from tests.support.repository import CHECK, Repository
from tests.support.settings import PLAIN_SETTINGS

PERSONS = "the-persons-token"


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.up = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.up.set()


@dataclass(frozen=True, kw_only=True)
class Employee:
    """An agent as it calls Legion in the middle of a turn."""

    id: str
    name: str
    run: int
    token: str
    office: Office

    @property
    def legion(self) -> Legion:
        return self.office.client(self.token, session=self.id)

    def use(self, tool: str, request: str = "", **arguments: object) -> ToolAnswer:
        return use(self.legion, tool, request, **arguments)


def use(legion: Legion, tool: str, request: str = "", **arguments: object) -> ToolAnswer:
    body = {"arguments": arguments, "request": request or os.urandom(8).hex()}
    return legion.understood(ToolAnswer, legion.line.ask("POST", f"/v1/tools/{tool}", body=body))


class Office:
    def __init__(self, context: Context, port: int, cwd: str) -> None:
        self.context = context
        self.port = port
        self.cwd = cwd

    @property
    def person(self) -> Legion:
        return self.client(PERSONS)

    def client(self, token: str, session: str = "") -> Legion:
        return Legion(DaemonAddress(port=self.port, token=token, session=session))

    def line(self, token: str) -> DaemonConnection:
        return self.client(token).line

    def hire(self, name: str, by: Employee | None = None, **wanted: object) -> Employee:
        legion = self.person if by is None else by.legion
        cwd = self.cwd if by is None else ""
        hired = legion.hire(HireAgent(task="stand there", name=name, cwd=cwd, **wanted))  # type: ignore[arg-type]
        return self.at_work(hired)

    def at_work(self, hired: Hired) -> Employee:
        with self.context.store.write() as tx:
            agent = agents.get(tx, hired.id)
            run = runs.start_turn(tx, agent, f"prompt-of-{agent.number}-{time.monotonic_ns()}")
            token = tokens.issue(tx, run=run.id, agent=agent.id)
        return Employee(id=hired.id, name=hired.name, run=run.id, token=token, office=self)

    def of_ticket(self, ticket: int) -> str:
        """The token of a ticket's agent at work."""
        with self.context.store.write() as tx:
            run = runs.start(tx, ticket, 1)
            return tokens.issue(tx, run=run.id, ticket=ticket)

    def propose(self, ticket: int, plan: str) -> None:
        """A run of the ticket ends with this plan."""
        with self.context.store.write() as tx:
            begun = tickets.move(tx, ticket, Start("c" * 40))
            runs.end(tx, runs.start(tx, ticket, begun.attempt).id, Outcome.FINISHED)
            plan_approval.propose(tx, tickets.move(tx, ticket, Park(ParkReason.QUESTION, "its plan waits")), plan)

    def end(self, run: int) -> None:
        with self.context.store.write() as tx:
            runs.end(tx, run, Outcome.FINISHED)


class QuietSquad(Squad):
    """A squad in which nothing starts: the service answers in this process, and there is no daemon."""

    def __init__(self, folder: Path, here: Office) -> None:
        super().__init__(folder)
        self.office = here

    @property
    def client(self) -> Legion:
        return self.office.person

    def found_by(self) -> dict[str, str]:
        return {"LEGION_URL": f"http://127.0.0.1:{self.office.port}", "LEGION_TOKEN": PERSONS}


@contextlib.contextmanager
def office(folder: Path, user: UserConfig | None = None, config: str = CHECK) -> Iterator[Office]:
    data = DataDir(folder / "data")
    data.prepare()
    migrated_store(data.database).close()
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    with wired(user or PLAIN_SETTINGS, data, url) as (context, news, _conductor, _keeper):
        # No run starts here, and a fork server that is left alone imports every driver.
        context.launcher.close()
        line = DaemonLine(pid=os.getpid(), url=url, version="", data_dir="", started_at=time.time(), sandbox="")
        service = Service(context, news, daemon=line, end=lambda: None)
        app = make_app(CallerRegistry(context, service, news), token=PERSONS, hosts=("127.0.0.1", "localhost"))
        server = _Server(uvicorn.Config(app, log_level="critical", lifespan="off", timeout_graceful_shutdown=1))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            assert server.up.wait(20)
            repository = Repository(folder / "ada", config)
            here = Office(context, port, str(repository.root))
            here.person.add_project(AddProject(path=here.cwd))
            shown = here.person.trustable(here.cwd)
            here.person.trust(Trust(cwd=here.cwd, hashes=[text.hash for text in shown.texts]))
            yield here
        finally:
            news.close()
            server.should_exit = True
            thread.join(20)
            listener.close()
