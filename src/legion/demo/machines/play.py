"""`legion demo --machines 3`: tickets on several machines, one of which is cut off in the middle and comes back."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import TypeVar

import legion
from legion.cli.base.output import Cell, Colour, Screen, count
from legion.client.legion import Legion
from legion.demo.machines.link_process import CUT, GOOD, LinkState
from legion.demo.scratch import running_scratch
from legion.demo.stage import SCRIPTS, DemoFolder, prepare
from legion.demo.story import StoryLine, StoryPrinter
from legion.wire.dispatch import Dispatch, NewTicket
from legion.wire.errors import LegionError
from legion.wire.machines import InviteMachine
from legion.wire.projects import AddProject, Trust

_SETTINGS = ("listen_addresses=", "fsync=off", "synchronous_commit=off", "shared_buffers=32MB", "max_connections=100")
_USER, _DATABASE = "legion", "postgres"


@contextmanager
def private_postgres() -> Iterator[str]:
    """Its URL, during the block. Raises LegionError where Postgres is not installed."""
    programs, user = _programs(), _ordinary_user()
    # Postgres refuses to be root, and another user cannot look into the demo's own folder.
    folder = Path(tempfile.mkdtemp(prefix="legion-pg-"))
    try:
        if user is not None:
            os.chown(folder, user.pw_uid, user.pw_gid)
        data = folder / "data"
        _run(
            programs / "initdb",
            *("-D", str(data), "-U", _USER, "--auth=trust", "-E", "UTF8", "--no-locale", "--no-sync"),
            folder=folder,
            user=user,
        )
        options = " ".join(f"-c {setting}" for setting in _SETTINGS)
        start = ("start", "-w", "-t", "60", "-l", str(folder / "log"), "-o", f"-k {folder} {options}")
        _run(programs / "pg_ctl", "-D", str(data), *start, folder=folder, user=user)
        try:
            yield f"postgresql+psycopg://{_USER}@/{_DATABASE}?host={folder}"
        finally:
            with suppress(LegionError):
                _run(programs / "pg_ctl", "-D", str(data), "stop", "-m", "immediate", folder=folder, user=user)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path:
    """The packaged ones come first: those on PATH may be wrappers."""
    packaged = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/initdb")]
    if packaged:
        return max(packaged, key=lambda folder: int(folder.parent.name))
    found = shutil.which("initdb")
    if found is None:
        raise LegionError(
            "Machines need a board in Postgres: install it (Debian: apt install postgresql) and try again."
        )
    return Path(found).resolve().parent


def _ordinary_user() -> pwd.struct_passwd | None:
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "daemon"):
        with suppress(KeyError):
            return pwd.getpwnam(name)
    raise LegionError("Postgres refuses to run as root, and there is no user postgres: run the demo as another user.")


def _run(program: Path, *words: str, folder: Path, user: pwd.struct_passwd | None) -> None:
    # Output goes to a file: the server keeps a pipe open as long as it lives.
    with (folder / "output").open("wb") as output:
        done = subprocess.run(
            [program, *words],
            cwd=folder,
            env={"PATH": os.defpath, "LC_ALL": "C", "HOME": str(folder)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            check=False,
            start_new_session=True,
            user=user.pw_uid if user else None,
            group=user.pw_gid if user else None,
            extra_groups=[] if user else None,
        )
    if done.returncode != 0:
        text = " ".join((folder / "output").read_text(errors="replace").split())
        raise LegionError(f"{program.name} failed: {text[-400:]}")


class BadLink:
    """Forwards connections to `port`; connect to `self.port` instead. Good until `change`."""

    def __init__(self, port: int, *, host: str = "127.0.0.1", listen: str = "127.0.0.1", seed: int = 0) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "legion.demo.machines.link_process", listen, host, str(port), str(seed)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.port = int(self._read())

    def change(self, state: LinkState) -> None:
        """Returns when the state holds."""
        self._ask(json.dumps(state.as_json()))

    def cut(self) -> None:
        self.change(CUT)

    def heal(self) -> None:
        self.change(GOOD)

    def break_connections(self) -> None:
        """Reset every connection, as a router does that was restarted. New ones are accepted."""
        self._ask("break")

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()

    def _ask(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()
        self._read()

    def _read(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"The link's process ended with {self._process.wait(10)}.")
        return line.strip()

    def __enter__(self) -> BadLink:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


LABEL = "demo"
"""Every machine has it, and the head has not."""
_GRACE = 10.0


@dataclass(frozen=True, kw_only=True)
class DemoMachine:
    name: str
    link: BadLink
    process: subprocess.Popen[bytes]


@contextmanager
def machines(head: Legion, folder: Path, names: Sequence[str], *, slots: int) -> Iterator[dict[str, DemoMachine]]:
    """Invited and started. Workers, links and what the workers started end with the block."""
    made: dict[str, DemoMachine] = {}
    with ExitStack() as stack:
        try:
            for name in names:
                wanted = InviteMachine(name=name, labels=[LABEL], slots=slots, host="127.0.0.1")
                address, _, secret = head.invite_machine(wanted).line.partition("/#")
                link = stack.enter_context(BadLink(int(address.rpartition(":")[2])))
                line = f"https://127.0.0.1:{link.port}/#{secret}"
                made[name] = DemoMachine(name=name, link=link, process=_worker(folder / name, line))
            yield made
        finally:
            for machine in made.values():
                machine.link.heal()
            for machine in made.values():
                _end(machine.process)


def _worker(folder: Path, line: str) -> subprocess.Popen[bytes]:
    folder.mkdir()
    (folder / "config.toml").write_text("# The settings of this machine.\n")
    env = {name: value for name, value in os.environ.items() if not name.startswith("LEGION_")}
    env |= {"LEGION_CONFIG": str(folder / "config.toml"), "PYTHONPATH": str(Path(legion.__file__).parents[1])}
    argv = [sys.executable, "-P", "-m", "legion", "--data-dir", str(folder / "data"), "join", line]
    with (folder / "worker.log").open("ab") as log:
        return subprocess.Popen(argv, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(_GRACE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


Seen = TypeVar("Seen")
_LEASE = 6.0
"""Seconds until the head gives runs away; 90 usually."""
_LOOK = 0.2
_PATIENCE = 180.0
_SLOTS = 2
_STEPS = 5
"""Seconds that each ticket works."""
_LATE = "refs/legion/late"


@dataclass(kw_only=True)
class MachineDemoSummary:
    """`legion demo --machines N --json`."""

    schema: str = "legion.demomachines/1"
    ok: bool
    problems: list[str] = field(default_factory=list)
    seconds: float
    folder: str
    tickets: int
    landed: int
    twice: int
    """Tickets that landed more than once."""
    runs: dict[str, int]
    """How many runs each machine finished."""
    lapsed: int
    """Runs that were taken from the machine that was cut off."""
    late: int
    """Trees of such runs that arrived later and were kept."""


def main(folder: Path | None, number: int, *, as_json: bool, screen: Screen) -> int:
    """Run the demo. Returns 0 where everything ended as it should."""
    stream = sys.stderr if as_json else sys.stdout
    printer = StoryPrinter(stream, replace(screen, tty=False, colours=False) if as_json else screen, board=False)
    stage = prepare(folder)
    stage.scratch.use()
    printer.print_line(screen.bold(f"Legion demo: one head, {count(number, 'machine')}, and a cable that is pulled"))
    printer.print_line("The machines are processes with folders of their own; the agents are plain programs.")
    printer.print_line(screen.line(Cell(f"All files are in {stage.folder}", Colour.DIM)))
    names = [f"m{one}" for one in range(1, number + 1)]
    with private_postgres() as url:
        settings = stage.scratch.settings
        more = f'[daemon]\ndatabase = "{url}"\nmachine_lease = {_LEASE}\n'
        settings.write_text(settings.read_text().replace("[daemon]\n", more, 1))
        with (
            running_scratch(stage.scratch, SCRIPTS, repository=stage.repository) as running,
            machines(running.legion, stage.folder, names, slots=_SLOTS) as crew,
        ):
            summary = _MachineDemo(stage, running.legion, crew, printer).run()
    if as_json:
        sys.stdout.write(json.dumps(asdict(summary), indent=2 if screen.tty else None) + "\n")
    for problem in summary.problems:
        printer.print_line(problem)
    return 0 if summary.ok else LegionError.exit_code


class _MachineDemo:
    def __init__(self, stage: DemoFolder, head: Legion, crew: Mapping[str, DemoMachine], printer: StoryPrinter) -> None:
        self._stage = stage
        self._head = head
        self._crew = crew
        self._printer = printer
        self._cwd = str(stage.repository)
        self._hub = Path()
        self._tickets: list[int] = []

    def run(self) -> MachineDemoSummary:
        problems = []
        try:
            self._until(lambda: len(self._ready()) == len(self._crew), "all machines")
            self._play()
        except LegionError as stuck:
            problems.append(stuck.message)
        return self._summary(problems)

    def _play(self) -> None:
        self._say(f"legion machine invite, legion machine join: {', '.join(self._crew)} have joined", "done")
        self._hub = Path(self._head.add_project(AddProject(path=self._cwd)).hub)
        hashes = [text.hash for text in self._head.trustable(self._cwd).texts]
        self._head.trust(Trust(cwd=self._cwd, hashes=hashes))
        wanted = [_ticket(number) for number in range(1, 2 * len(self._crew) + 1)]
        self._tickets = self._head.dispatch(Dispatch(cwd=self._cwd, tickets=wanted)).ids
        self._say(f"legion dispatch --on {LABEL}: {count(len(wanted), 'ticket')}", "queued")
        victim = self._crew["m1"]
        self._until(self._counts_on_first, "a run on m1")
        self._say("every machine has work; the cable of m1 is pulled", "failed")
        victim.link.cut()
        self._until(lambda: self._states("m1").get("lapsed", 0) > 0, "the end of m1's lease")
        self._say(
            f"m1 stopped its agents by itself; after {_LEASE:.0f} s of silence its runs start elsewhere", "parked"
        )
        self._until(self._all_done, "the last landing")
        self._say("every ticket is checked and has landed, without m1", "done")
        victim.link.heal()
        self._say("the cable of m1 is plugged in again", "working")
        self._until(lambda: "m1" in self._ready(), "the return of m1")
        self._until(lambda: self._late() > 0, "the late work of m1")
        self._say("what m1 had in its trees arrives and is kept as late work; it lands nowhere", "done")

    def _ready(self) -> list[str]:
        return [one.name for one in self._head.machines().machines if not one.head and one.state == "open"]

    def _states(self, machine: str) -> Counter[str]:
        """How many of its runs are in which state; none where it could not join."""
        if machine not in {one.name for one in self._head.machines().machines}:
            return Counter()
        return Counter(one.state for one in self._head.machine_log(machine, limit=1000).runs)

    def _counts_on_first(self) -> bool:
        """An agent on m1 has written something."""
        there = [one.ticket for one in self._head.machine_log("m1").runs if one.state == "taken" and one.ticket]
        return any("tile" in self._head.log(ticket).text for ticket in there)

    def _all_done(self) -> bool:
        return all(self._head.ticket(one).ticket.state == "done" for one in self._tickets)

    def _late(self) -> int:
        return len(self._git("for-each-ref", _LATE).splitlines())

    def _git(self, *words: str) -> str:
        return self._stage.git(f"--git-dir={self._hub}", *words)

    def _say(self, text: str, state: str) -> None:
        self._printer.print_event(StoryLine(text, state))

    def _until(self, seen: Callable[[], Seen], what: str) -> Seen:
        """Look again and again. Raises LegionError where it takes too long."""
        while not (found := seen()):
            if self._printer.seconds > _PATIENCE:
                raise LegionError(f"The demo waited {_PATIENCE:.0f} s, and {what} did not come.")
            time.sleep(_LOOK)
        return found

    def _summary(self, problems: list[str]) -> MachineDemoSummary:
        subjects = Counter(self._git("log", "--format=%s", "refs/legion/target").splitlines()) if self._tickets else {}
        titles = [_title(number) for number in range(1, len(self._tickets) + 1)]
        landed = sum(1 for title in titles if subjects[title] > 0)
        twice = sum(1 for title in titles if subjects[title] > 1)
        runs = {name: self._states(name)["ended"] for name in self._crew}
        if self._tickets:
            shared = ", ".join(f"{name} finished {number}" for name, number in runs.items())
            self._say(f"{landed} of {len(titles)} tickets landed, {twice} of them twice; {shared}", "done")
        return MachineDemoSummary(
            ok=not problems and landed == len(titles) and not twice,
            problems=problems,
            seconds=self._printer.seconds,
            folder=str(self._stage.folder),
            tickets=len(titles),
            landed=landed,
            twice=twice,
            runs=runs,
            lapsed=self._states("m1")["lapsed"],
            late=self._late() if self._tickets else 0,
        )


def _title(number: int) -> str:
    return f"Count the tiles of room {number}"


def _ticket(number: int) -> NewTicket:
    work = f"for tile in $(seq {_STEPS}); do echo tile $tile | tee -a room-{number}.txt; sleep 1; done"
    return NewTicket(title=_title(number), command=work, on=[LABEL])
