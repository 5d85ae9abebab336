"""A Legion without a daemon: real store, hub, merge queue and passes over the forge; the test plays the agents.

There are no checks, so nothing is started, and a round costs milliseconds. `Desk.round` is what a daemon does between
two looks at the forge.
"""

from __future__ import annotations

import time
from pathlib import Path

from legion.config.files.user import CurrentSettings
from legion.domain.errors import LegionError
from legion.domain.forge.connections import TicketPull
from legion.domain.tickets.ticket import Change, Propose, Prove, Start, State, Ticket
from legion.jobs.context import Context
from legion.jobs.forge.sync import sync
from legion.jobs.landing import target
from legion.jobs.landing.job import _QueueWorker
from legion.jobs.trees import ProjectContext
from legion.runner.launch import Launcher
from legion.runner.probe import SandboxKind, SandboxState
from legion.service.forge import connections
from legion.service.forge.actions import ForgeActions
from legion.service.projects import registry, trust
from legion.store.board import forges, tickets
from legion.system.paths import DataDir
from legion.wire.forge import AddForge
from legion.wire.projects import AddProject, Trust
from tests.support.github_app import StandIn
from tests.support.migrated import migrated_store
from tests.support.repository import Repository
from tests.support.settings import PLAIN_SETTINGS

CONFIG = '[landing]\ntarget = "pr"\nmode = "squash"\n'
SETTINGS = PLAIN_SETTINGS


class Desk:
    """`folder` holds one Legion; `shop` is its person's checkout. Another Desk on the same folder continues."""

    def __init__(self, folder: Path, shop: Repository) -> None:
        self.folder = folder
        self.shop = shop
        self.data = DataDir(folder / "data")
        self.data.prepare()
        self.store = migrated_store(self.data.database)
        self.context = Context(
            data=self.data,
            store=self.store,
            launcher=Launcher(),
            settings=CurrentSettings(SETTINGS),
            sandbox=SandboxState(kind=SandboxKind.PROCESS_GROUPS, works=True, why="it works"),
            url="",
            machine="here",
            clock=time.time,
        )
        self.actions = ForgeActions(self.context)
        self.cwd = str(shop.root)
        self.forge: StandIn

    def again(self) -> Desk:
        """The same Legion, as another process opens it."""
        return Desk(self.folder, self.shop)

    def close(self) -> None:
        self.store.close()

    def connect(self, forge: StandIn, *, token: str = "robot-token") -> Desk:
        self.forge = forge
        self.adopt()
        wanted = AddForge(cwd=self.cwd, kind="github", address=forge.hosted.full_name, url=forge.url, key=token)
        connections.add(self.context, wanted)
        self.look()
        return self

    def adopt(self) -> None:
        """`legion init` and `legion trust`."""
        registry.add(self.context, AddProject(path=self.cwd))
        hashes = [text.hash for text in trust.trustable(self.context, self.cwd).texts]
        trust.trust(self.context, Trust(cwd=self.cwd, hashes=hashes))

    @property
    def project(self) -> ProjectContext:
        return self.context.project(1)

    @property
    def tickets(self) -> dict[int, Ticket]:
        with self.store.read() as tx:
            live = tickets.live(tx)
            ended = tickets.recent(tx, None, 100)
            return {one.id: one for one in tickets.get_many(tx, [one.id for one in (*live, *ended)])}

    def pull(self, ticket: int) -> TicketPull:
        with self.store.read() as tx:
            found = forges.pull_of(tx, ticket)
        assert found is not None
        return found

    def state(self, ticket: int = 1) -> str:
        return self.tickets[ticket].state.value

    def opened(self, title: str = "Add a greeting", body: str = "Please.") -> int:
        """An issue that became a pull request; the number of the latter."""
        self.forge.hosted.open_issue(title, body, labels=("legion:go",))
        assert self.round() == ""
        found = max(number for number, one in self.forge.hosted.issues.items() if one.pull is not None)
        return found

    def look(self) -> str:
        """One pass over the forge. Returns what went wrong."""
        try:
            sync(self.context, 1, self.actions)
        except LegionError as trouble:
            return trouble.message
        return ""

    def round(self, files: dict[str, str] | None = None) -> str:
        """Look, let agents finish, land; then the same look again, as after each event."""
        trouble = self.look()
        self.work(files)
        self.land()
        return self.look() or trouble

    def work(self, files: dict[str, str] | None = None) -> None:
        """Every ticket that waits gets a change: a file that names its attempt, or these."""
        for ticket in self.tickets.values():
            if ticket.state is not State.QUEUED:
                continue
            with self.store.write() as tx:
                ticket = tickets.move(tx, ticket.id, Start(self.context.project(ticket.project).target))
            base = ticket.base or self.project.target
            made = files or {f"ticket-{ticket.id}-{ticket.attempt}.txt": ticket.feedback or "first\n"}
            commit = self._commit(base, made, self.context.project(ticket.project))
            with self.store.write() as tx:
                tickets.move(tx, ticket.id, Propose(Change(base=base, commit=commit)))
                tickets.move(tx, ticket.id, Prove())

    def _commit(self, base: str, files: dict[str, str], project: ProjectContext) -> str:
        hub = project.hub.path
        self.shop.git("fetch", "--quiet", str(hub), "+refs/legion/*:refs/hub/*")
        self.shop.git("checkout", "--quiet", "--force", "--detach", base)
        commit = self.shop.commit("work", files)
        # Where git-lfs is installed, its hook would look for the content of pointers.
        self.shop.git("push", "--quiet", "--no-verify", str(hub), f"{commit}:refs/legion/test/{commit}")
        self.shop.git("checkout", "--quiet", "--force", "main")
        return commit

    def land(self, project: int = 1) -> None:
        """The merge queue, until it is empty."""
        target.finish_open_landings(self.context, self.context.project(project))
        _QueueWorker(self.context, project).clear()
