"""The daemon's side of runs: find, start, wait, stop. Adopt or start, never just start.

All state is in the runs' folders, so a new daemon sees what the last one saw. No run is held in memory, and any thread
may call any function here.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import legion
from legion.drivers import registry
from legion.drivers.profile import DriverProfile
from legion.runner import container, control, tree
from legion.runner.host import StartReply
from legion.runner.journal import JournalEvent, JournalKind, JournalReader, read_journal
from legion.runner.spec import RunFolder, RunnerError, RunResult, read_result, read_spec
from legion.system import cgroups, crash, files
from legion.system.crash import Point

START_PATIENCE = 30.0
ANSWER_PATIENCE = 2.0
_PASSED_ON = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LEGION_CRASH_AT", "LEGION_CRASH_LOG")


class RunnerFailed(RunnerError):
    pass


class RunnerSilent(RunnerError):
    pass


class RunNotStarted(RunnerError):
    pass


@dataclass(frozen=True)
class FreshRun:
    """The program was never started: start it."""


@dataclass(frozen=True)
class LivingRun:
    """A runner has it: wait for it."""


@dataclass(frozen=True)
class EndedRun:
    result: RunResult


@dataclass(frozen=True)
class LostRun:
    """The program was started, its runner is gone and left no result. None of its processes is alive."""


def settle(run_dir: Path) -> FreshRun | LivingRun | EndedRun | LostRun:
    """What has become of a run."""
    result = read_result(run_dir)
    if result is not None:
        return EndedRun(result)
    if not run_dir.is_dir():
        return FreshRun()
    with control.gate(run_dir):
        if _has_runner(run_dir):
            return LivingRun()
        # It may have ended between the two checks.
        result = read_result(run_dir)
        events = read_journal(run_dir)
    if result is not None:
        return EndedRun(result)
    if not any(event.kind == JournalKind.STARTING.value for event in events):
        return FreshRun()
    _end_remains(run_dir, events)
    return LostRun()


def is_held(run_dir: Path) -> bool:
    """Does a runner have it now?"""
    with control.gate(run_dir):
        return _has_runner(run_dir)


def wait(
    run_dir: Path, on_event: Callable[[JournalEvent], None] | None = None, *, after: int = 0
) -> EndedRun | LostRun:
    """Block until the run has ended. Events of its journal with a number above `after` are passed on as they happen."""
    if isinstance(settle(run_dir), FreshRun):
        raise RunNotStarted(f"The run in {run_dir} was never started; start it before waiting for it.")
    follower = _JournalFollower(run_dir, on_event, after)
    for _ in bells(run_dir):
        follower.catch_up()
    # A runner that is just ending closes its socket a moment before it frees its lock.
    with contextlib.suppress(FileNotFoundError):
        _wait_for_lock(run_dir)
    follower.catch_up()
    state = settle(run_dir)
    return state if isinstance(state, EndedRun) else LostRun()


def stop(run_dir: Path, grace: float | None = None) -> bool:
    """Request the end: an interrupt now, a kill after the grace. False if no runner lives."""
    return _ask(run_dir, "stop", grace=grace) is not None


def interrupt(run_dir: Path, id: str = "", text: str = "") -> bool:
    """Send the program what Ctrl-C sends, and the message to continue with, if any. False if no runner lives."""
    return _ask(run_dir, "interrupt", **({"id": id, "text": text} if text else {})) is not None


def leave(run_dir: Path) -> int | None:
    """Interrupt it unless other people are at its terminal: how many there are. None if no runner lives."""
    try:
        answer = _ask(run_dir, "leave")
    except RunnerError:
        # A runner of an earlier release does not count them.
        answer = _ask(run_dir, "interrupt")
    return None if answer is None else int(answer.get("others", 0))


def tell(run_dir: Path, id: str, text: str) -> bool:
    """Send a message to the agent in its current turn. False if no runner lives."""
    return _ask(run_dir, "tell", id=id, text=text) is not None


def permit(run_dir: Path, question: str, allowed: bool, why: str = "") -> bool:
    """A person's answer to a question of this run. False if no runner lives."""
    return _ask(run_dir, "permit", question=question, allowed=allowed, why=why) is not None


class Launcher:
    """Starts runners, from a warm process of its own where the system can fork."""

    def __init__(self) -> None:
        self._server: _ForkServer | None = None
        self._lock = threading.Lock()

    def warm(self) -> None:
        """Have the warm process ready before the first run needs it."""
        if sys.platform == "linux":
            with self._lock:
                self._living_server()

    def start(self, run_dir: Path) -> None:
        """Start a runner on this run, and return once it can be reached. Safe to repeat: the program starts once."""
        crash.reach(Point.RUNNER_LAUNCH_BEFORE_START)
        answer = self._try(run_dir)
        if not answer and not self._server_lives():
            answer = self._try(run_dir)
        crash.reach(Point.RUNNER_LAUNCH_AFTER_START)
        word, _, sentence = answer.partition(" ")
        if word == StartReply.FAILED.value:
            raise RunnerFailed(sentence)
        if not word:
            raise RunnerFailed(f"The runner of {run_dir} died at once; {RunFolder(run_dir).complaints} may say why.")

    def close(self) -> None:
        """End the warm process. Runs live on."""
        with self._lock:
            if self._server is not None:
                self._server.close()
                self._server = None

    def _try(self, run_dir: Path) -> str:
        """The new runner's answer, or nothing if it died before giving one."""
        reading, writing = os.pipe()
        try:
            if sys.platform == "linux":
                self._fork(run_dir, writing)
            else:
                _spawn(run_dir, writing)
        except BaseException:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        with os.fdopen(reading, "rb") as answers:
            if not tree.readable(answers.fileno(), START_PATIENCE):
                raise RunnerSilent(
                    f"No runner for {run_dir} answered in {START_PATIENCE:g} s; is the machine overloaded?"
                )
            return answers.read().decode()

    def _fork(self, run_dir: Path, starter: int) -> None:
        profile = _profile(run_dir)
        with self._lock:
            try:
                self._living_server().ask(run_dir, starter, profile)
            except (BrokenPipeError, ConnectionResetError):
                self._server = self._replacement()
                self._server.ask(run_dir, starter, profile)

    def _living_server(self) -> _ForkServer:
        if self._server is None or not self._server.lives():
            self._server = self._replacement()
        return self._server

    def _replacement(self) -> _ForkServer:
        if self._server is not None:
            self._server.close()
        return _ForkServer()

    def _server_lives(self) -> bool:
        with self._lock:
            return self._server is not None and self._server.lives()


class ServerProcess(Protocol):
    """What the launcher needs of the process that it started."""

    def kill(self) -> None: ...

    def wait(self) -> int: ...


def start_server(argv: Sequence[str], env: Mapping[str, str], handles: Sequence[int]) -> ServerProcess:
    """Start the fork server as a session of its own that inherits nothing but these handles."""
    return subprocess.Popen(argv, cwd="/", env=env, stdin=subprocess.DEVNULL, pass_fds=handles, start_new_session=True)


class _ForkServer:
    """One fork server and our ends of its sockets: one for plain programs, one for drivers that need an SDK."""

    def __init__(self) -> None:
        self._programs, programs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._agents, agents = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with programs, agents:
            handles = programs.fileno(), agents.fileno()
            argv = [*_python("legion.runner.forkserver"), *map(str, handles)]
            self._process = start_server(argv, _environment(), handles)

    def ask(self, run_dir: Path, starter: int, profile: DriverProfile) -> None:
        requests = self._agents if profile.heavy else self._programs
        socket.send_fds(requests, [os.fsencode(run_dir.absolute())], [starter])

    def lives(self) -> bool:
        """It never writes to us, so anything to read is the end of a socket."""
        return tree.first_readable((self._programs, self._agents), 0) is None

    def close(self) -> None:
        self._programs.close()
        self._agents.close()
        # It needs no orderly end, and does not read its sockets while it imports.
        self._process.kill()
        self._process.wait()


def _profile(run_dir: Path) -> DriverProfile:
    """The driver of the spec; a spec that cannot be read is reported by its runner."""
    try:
        return read_spec(run_dir).profile
    except RunnerError:
        return registry.PROFILES[registry.COMMAND]


def _spawn(run_dir: Path, starter: int) -> None:
    """The slow way: a fresh interpreter per runner."""
    argv = [*_python("legion.runner.host"), str(run_dir.absolute()), str(starter)]
    subprocess.run(argv, cwd="/", env=_environment(), stdin=subprocess.DEVNULL, pass_fds=(starter,), check=True)


def _python(module: str) -> list[str]:
    """This interpreter, limited to its own modules (-P) and ours."""
    return [sys.executable, "-P", "-m", module]


def _environment() -> dict[str, str]:
    """Little of the daemon's environment: runners need none of it, and programs get what their spec says."""
    passed_on = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    # This Legion before any other, and the paths of the daemon's own Python.
    places = (str(Path(legion.__file__).parent.parent), os.environ.get("PYTHONPATH"))
    return {**passed_on, "PYTHONPATH": os.pathsep.join(filter(None, places))}


def _has_runner(run_dir: Path) -> bool:
    lock = RunFolder(run_dir).lock
    return lock.exists() and files.is_locked(lock)


def _wait_for_lock(run_dir: Path) -> None:
    """Returns when no runner holds the lock. The lock is taken shared and released at once, so it blocks no runner."""
    handle = os.open(RunFolder(run_dir).lock, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_SH)
    finally:
        os.close(handle)


def bells(run_dir: Path, patience: float | None = None) -> Iterator[None]:
    """One item for every time that the journal may have grown, until the runner ends or if it has already.

    TimeoutError where it lives on for longer than `patience`, in seconds.
    """
    deadline = None if patience is None else time.monotonic() + patience
    try:
        with control.connect(run_dir, patience) as connection:
            control.send(connection, "follow")
            while connection.recv(4096):
                yield
                if deadline is not None:
                    if (left := deadline - time.monotonic()) <= 0:
                        raise TimeoutError
                    connection.settimeout(left)
    except TimeoutError:
        raise
    except OSError:
        # No runner listens.
        return


def _end_remains(run_dir: Path, events: list[JournalEvent]) -> None:
    """Ends what a killed runner leaves: a half-built sandbox or, without a sandbox, the processes of its program."""
    if RunFolder(run_dir).elsewhere.exists():
        return
    with contextlib.suppress(FileNotFoundError, ValueError):
        pid, since = RunFolder(run_dir).session.read_text().split()
        tree.end_remains(int(pid), int(since))
    for event in events:
        first, born = event.facts.get("pid"), event.facts.get("since")
        if event.kind == JournalKind.STARTED.value and isinstance(first, int) and isinstance(born, int):
            tree.end_remains(first, born)
    container.end(run_dir)
    tree.end_marked(run_dir)
    home = cgroups.find()
    if home is not None:
        home.group(run_dir).remove()


def _ask(run_dir: Path, ask: str, **facts: object) -> Mapping[str, Any] | None:
    """The runner's answer; None if no runner lives."""
    try:
        with control.connect(run_dir, ANSWER_PATIENCE) as connection:
            control.send(connection, ask, **facts)
            with connection.makefile("rb") as answers:
                line = answers.readline()
    except TimeoutError:
        raise RunnerSilent(
            f"The runner of {run_dir} did not answer in {ANSWER_PATIENCE:g} s; if it never does, kill it by its pid."
        ) from None
    except OSError:
        return None
    answer: dict[str, Any] | None = json.loads(line) if line else None
    if answer is not None and not answer["ok"]:
        raise RunnerError(answer["error"])
    return answer


class _JournalFollower:
    """Passes on new journal events, each once."""

    def __init__(self, run_dir: Path, on_event: Callable[[JournalEvent], None] | None, after: int) -> None:
        self._journal = JournalReader(run_dir, after)
        self._on_event = on_event

    def catch_up(self) -> None:
        if self._on_event is None:
            return
        for event in self._journal.read_on():
            self._on_event(event)
