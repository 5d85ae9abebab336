"""A real daemon on a folder of its own, spoken to by the real client, in the words of the domain."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import psutil

from legion.client import discovery, start
from legion.client.legion import Legion
from legion.client.start import DaemonProcess
from legion.domain.tickets.ticket import ENDED
from legion.system.paths import DataDir
from legion.wire.board import WaitState
from legion.wire.dispatch import Dispatch, NewTicket
from legion.wire.projects import AddProject, CollectResult, Trust, Where
from legion.wire.ticket_pages import TicketPage
from legion.wire.tickets import Acted, Action
from tests.support.migrated import migrated_file
from tests.support.repository import Repository
from tests.support.session import under_test
from tests.support.settings import without_trial
from tests.support.warm import Forked, warm

SOURCE = Path(__file__).parents[2] / "src"
PATIENCE = 90.0
_LOOK_AGAIN = 0.1
_ENDS = [state.value for state in ENDED]
PLAIN = (sys.executable,)
"""To launch a daemon as a person's is: for measurements, and for tests of the start itself."""


class Squad:
    """One person's Legion: a daemon that can be killed and started again, and a project or more."""

    def __init__(
        self,
        folder: Path,
        *,
        settings: str = "",
        database: str = "",
        launch: Sequence[str] = (),
        module: str = "legion.daemon",
    ) -> None:
        """`launch` comes before the daemon's own command line; the interpreter is its last word.

        Without it the daemon is forked from a warm process. `module` is one that becomes the daemon.
        """
        self.folder = folder
        self.launch = launch
        self._module = module
        self.data = DataDir(folder / "data")
        self.settings = folder / "config.toml"
        lines = f'[daemon]\ndatabase = "{database}"\n' if database else ""
        self.settings.write_text(without_trial(f"{settings}\n{lines}"))
        self._on_sqlite = not database
        self.process: subprocess.Popen[bytes] | Forked | None = None
        self._found: tuple[object, Legion] | None = None
        self._adopted: list[str] = []

    @contextlib.contextmanager
    def with_settings(self, text: str) -> Iterator[None]:
        """These settings instead of the person's own, for the length of the block."""
        before = self.settings.read_text()
        self.settings.write_text(without_trial(text))
        yield
        self.settings.write_text(before)

    @property
    def log(self) -> str:
        return self.data.daemon_log.read_text() if self.data.daemon_log.exists() else ""

    def start(self, extra: Mapping[str, str] | None = None, *, port: int | None = 20000) -> Squad:
        """Start the daemon and return once it answers. `port` is the first one it tries; None: as the settings say."""
        self.data.prepare()
        self._copy_database()
        reading, writing = os.pipe()
        env = {
            **{name: value for name, value in os.environ.items() if not name.startswith("LEGION_")},
            "PYTHONPATH": str(SOURCE),
            "LEGION_CONFIG": str(self.settings),
            "LEGION_READY_FD": str(writing),
            **(extra or {}),
        }
        words = ["--data-dir", str(self.data.root), *(["--port", str(port)] if port is not None else [])]
        with self.data.daemon_log.open("ab") as log:
            if not self.launch and (source := warm(SOURCE)).fits(env):
                handles = {1: log.fileno(), 2: log.fileno(), writing: writing}
                self.process = source.start(self._module, words, env, Path.cwd(), handles)
            else:
                argv = [*(self.launch or PLAIN), "-m", self._module, *words]
                self.process = subprocess.Popen(argv, env=env, pass_fds=[writing], stdout=log, stderr=log)
        os.close(writing)
        with os.fdopen(reading, "rb") as said:
            word = said.readline().strip()
        if word != b"ready" and "LEGION_CRASH_AT" not in (extra or {}):
            raise AssertionError(f"the daemon said {word!r}; its log:\n{self.log[-3000:]}")
        return self

    def _copy_database(self) -> None:
        """Without a `launch`, the first start finds the database as the migrations leave it."""
        if self._on_sqlite and not self.launch and not self.data.database.exists() and under_test():
            migrated_file(self.data.database)

    @property
    def client(self) -> Legion:
        """Found once per start: each search is a request of its own."""
        if self.process is None or self.process.poll() is not None:
            return discovery.find(self.data.root)
        if self._found is None or self._found[0] is not self.process:
            self._found = (self.process, discovery.find(self.data.root))
        return self._found[1]

    def kill(self) -> None:
        """kill -9, and nothing else."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def end(self) -> int:
        """An orderly end, as `legion down` or a service manager brings it."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)

    def adopt(self, repository: Repository) -> Project:
        """`legion init` and `legion trust`."""
        project = self.init(repository)
        project.trust()
        return project

    def init(self, repository: Repository) -> Project:
        """`legion init` alone: nothing of the repository may run yet."""
        added = self.client.add_project(AddProject(path=str(repository.root)))
        self._adopted.append(added.root)
        return Project(self, repository, hub=Path(added.hub))

    def cli(
        self, *words: str, cwd: Path, stdin: str = "", extra: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """The real command line, as a process of its own."""
        env = {
            **{name: value for name, value in os.environ.items() if not name.startswith("LEGION_")},
            "PYTHONPATH": str(SOURCE),
            "LEGION_CONFIG": str(self.settings),
            **self.found_by(),
            **(extra or {}),
        }
        if (source := warm(SOURCE)).fits(env):
            return source.run("legion", words, env, cwd, stdin=stdin, patience=PATIENCE)
        argv = [sys.executable, "-m", "legion", *words]
        return subprocess.run(argv, cwd=cwd, env=env, input=stdin, capture_output=True, text=True, timeout=PATIENCE)

    def found_by(self) -> dict[str, str]:
        """The variables by which a command finds this Legion."""
        return {"LEGION_DATA_DIR": str(self.data.root)}

    def processes(self) -> list[psutil.Process]:
        """Everything alive that belongs to this folder: the daemon, runners, sandboxes, agents."""
        found = {one.pid: one for one in processes_of(self.folder)}
        # A forked daemon does not name its folder.
        if self.process is not None and self.process.poll() is None:
            with contextlib.suppress(psutil.NoSuchProcess):
                found[self.process.pid] = psutil.Process(self.process.pid)
        return [found[pid] for pid in sorted(found)]

    def fork_server(self) -> psutil.Process:
        assert self.process is not None
        found = []
        for child in psutil.Process(self.process.pid).children():
            # A git that just ended has no command line any more.
            with contextlib.suppress(psutil.Error):
                if "legion.runner.forkserver" in child.cmdline():
                    found.append(child)
        (server,) = found
        return server

    def close(self) -> None:
        """Whatever the test left running ends."""
        if self.process is not None and self.process.poll() is None:
            for root in self._roots():
                with contextlib.suppress(Exception):
                    self.client.stop_all(Where(cwd=root))
            self.process.kill()
            self.process.wait()
        for process in self.processes():
            with contextlib.suppress(psutil.Error):
                process.kill()

    def _roots(self) -> list[str]:
        """Of all projects; those that a command added are asked for, which costs more than the rest of an end."""
        if self._adopted:
            return self._adopted
        with contextlib.suppress(Exception):
            return [project.root for project in self.client.status(None).projects]
        return []


def processes_of(folder: Path) -> list[psutil.Process]:
    """The processes that name the folder in their command lines, without this one."""
    named = {pid for pid in psutil.pids() if os.fsencode(folder) in _command_line(pid)} - {os.getpid()}
    found = []
    for pid in sorted(named):
        with contextlib.suppress(psutil.NoSuchProcess):
            found.append(psutil.Process(pid))
    return found


def _command_line(pid: int) -> bytes:
    """Read by hand: psutil asks for much more of each process, and there are hundreds."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


class Project:
    """A repository in this squad's care, from the person's side."""

    def __init__(self, squad: Squad, repository: Repository, hub: Path) -> None:
        self.squad = squad
        self.repository = repository
        self.hub = hub
        self.cwd = str(repository.root)

    def dispatch(self, title: str, command: str = "", **fields: object) -> int:
        """A ticket whose agent is a shell command."""
        return self.dispatch_all([new(title, command, **fields)])[0]

    def dispatch_all(self, tickets: Sequence[NewTicket]) -> list[int]:
        return self.squad.client.dispatch(Dispatch(cwd=self.cwd, tickets=list(tickets))).ids

    def until_settled(self, *ids: int, patience: float = PATIENCE) -> WaitState:
        """Wait until nothing more happens by itself to these tickets, or to any."""
        deadline = time.monotonic() + patience
        last = 0
        while True:
            state = self.squad.client.wait(self.cwd, list(ids), after_event=last, timeout=5)
            if state.settled:
                return state
            last = state.last_event
            self._refuse_silence(deadline)

    def until(self, ticket: int, state: str, patience: float = PATIENCE) -> TicketPage:
        deadline = time.monotonic() + patience
        last = 0
        while (page := self.ticket(ticket)).ticket.state != state:
            waits = True
            while waits:
                seen = self.squad.client.wait(self.cwd, [ticket], after_event=last, timeout=5)
                last = seen.last_event
                # A page costs more than a line, and an end does not pass while we do not look.
                waits = state in _ENDS and seen.tickets[0].state != state
                if seen.settled and seen.tickets[0].state != state:
                    # It waits for a person, and the daemon answers each such request at once.
                    select.select([], [], [], _LOOK_AGAIN)
                self._refuse_silence(deadline)
        return page

    def until_true(self, holds: Callable[[], bool], patience: float = PATIENCE) -> None:
        """Look again after every event until it holds."""
        deadline = time.monotonic() + patience
        last = self.squad.client.status(None).last_event
        if holds():
            return
        for _ in self.squad.client.events(last):
            if holds():
                return
            self._refuse_silence(deadline)
        raise AssertionError(f"the events ended\n{self.squad.log[-3000:]}")

    def until_idle(self, ticket: int) -> TicketPage:
        """Wait until no agent is at work on the ticket any more."""
        self.until_true(lambda: all(run.ended_at is not None for run in self.ticket(ticket).runs))
        return self.ticket(ticket)

    def ticket(self, ticket: int) -> TicketPage:
        return self.squad.client.ticket(ticket)

    def state(self, ticket: int) -> str:
        return self.ticket(ticket).ticket.state

    def states(self) -> dict[int, str]:
        return {line.id: line.state for line in self.squad.client.status(self.cwd, True).tickets}

    @property
    def worktrees(self) -> Path:
        return Path(self.squad.client.worktrees(self.cwd).root)

    def worktree(self, ticket: int) -> Path:
        return self.worktrees / f"ticket-{ticket}"

    def kept(self, ticket: int, path: str) -> str | None:
        """A file that the ticket's agent left, in its worktree or since then in the trash."""
        with contextlib.suppress(FileNotFoundError):
            return (self.worktree(ticket) / path).read_text()
        # A worktree only ever moves from there to here, so looking in this order misses nothing.
        found = [place / path for place in self.worktrees.glob(f".trash/*-ticket-{ticket}") if (place / path).exists()]
        return found[-1].read_text() if found else None

    def landed(self, path: str) -> str | None:
        """A file as the target has it."""
        words = ["git", f"--git-dir={self.hub}", "show", f"refs/legion/target:{path}"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        return done.stdout if done.returncode == 0 else None

    def hub_git(self, *words: str) -> str:
        """Plain git, for a look into the hub."""
        argv = ["git", f"--git-dir={self.hub}", *words]
        return subprocess.run(argv, capture_output=True, text=True, check=True).stdout

    def landed_titles(self) -> list[str]:
        """The subjects of the target's first-parent history, newest first."""
        return self.hub_git("log", "--first-parent", "--format=%s", "refs/legion/target").splitlines()

    def history(self) -> list[str]:
        """The subjects of all commits in the target."""
        return self.hub_git("log", "--format=%s", "refs/legion/target").splitlines()

    def stop(self, ticket: int) -> Acted:
        return self.squad.client.stop(ticket, Action())

    def retry(self, ticket: int, feedback: str = "") -> Acted:
        return self.squad.client.retry(ticket, Action(feedback=feedback))

    def trust(self) -> None:
        shown = self.squad.client.trustable(self.cwd)
        self.squad.client.trust(Trust(cwd=self.cwd, hashes=[text.hash for text in shown.texts]))

    def pause(self) -> None:
        self.squad.client.pause(Where(cwd=self.cwd))

    def resume(self) -> None:
        self.squad.client.resume(Where(cwd=self.cwd))

    def collect(self) -> CollectResult:
        return self.squad.client.collect(Where(cwd=self.cwd))

    def notes(self) -> str:
        """What `legion status` says about the project beside its tickets."""
        line = self.squad.client.status(self.cwd).project
        assert line is not None
        return "\n".join(line.notes)

    def log(self, ticket: int) -> str:
        return self.squad.client.log(ticket).text

    def _refuse_silence(self, deadline: float) -> None:
        if time.monotonic() > deadline:
            raise AssertionError(f"nothing settled in time: {self.states()}\n{self.squad.log[-3000:]}")


def new(title: str, command: str = "", **fields: object) -> NewTicket:
    return replace(NewTicket(title=title, command=command), **fields)  # type: ignore[arg-type]


@contextlib.contextmanager
def squad(folder: Path, *, launch: Sequence[str] = (), **settings: str) -> Iterator[Squad]:
    one = Squad(folder, launch=launch, **settings)
    try:
        one.start()
        yield one
    finally:
        one.close()


@contextlib.contextmanager
def forked_daemons() -> Iterator[None]:
    """Daemons that this process starts as a command does are forked from the warm process, too."""
    exec_daemon = start.start_process

    def start_daemon(data_dir: Path, *, ready: int, log: int) -> DaemonProcess:
        env = {**os.environ, "PYTHONPATH": str(SOURCE), "LEGION_READY_FD": str(ready)}
        if not (source := warm(SOURCE)).fits(env):
            return exec_daemon(data_dir, ready=ready, log=log)
        words = ["--data-dir", str(data_dir)]
        return source.start("legion.daemon", words, env, data_dir, {1: log, 2: log, ready: ready})

    start.start_process = start_daemon
    try:
        yield
    finally:
        start.start_process = exec_daemon


@contextlib.contextmanager
def adopted_project() -> Iterator[Project]:
    """A project of a squad of its own. The path of its folder is short: terminals are sockets below it."""
    with tempfile.TemporaryDirectory(prefix="legion-") as folder, squad(Path(folder)) as one:
        yield one.adopt(Repository(Path(folder) / "shop"))
