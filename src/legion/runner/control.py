"""The control socket of a run: JSON lines over a unix socket in its folder. Versioned, and tolerant of unknown
requests.

Requests are `status`, `follow` (a line comes whenever the journal has grown), `stop`, `interrupt`, `leave` (an
interrupt, unless people are at the run's terminal), `tell` (a message for the agent) and `permit` (a person's answer to
its question). The end of the connection is the end of the run.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import selectors
import socket
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from legion.domain.text import to_json
from legion.drivers import ControlRequest, InterruptRequest, PermissionAnswer, StopRequest, TellRequest
from legion.runner.spec import CONTROL_SOCKET

VERSION = 1
LONGEST_LINE = 1 << 21
_CHUNK = 1 << 16
_BELL = b'{"version": 1, "bell": true}\n'


@contextlib.contextmanager
def gate(run_dir: Path) -> Iterator[None]:
    """Held while a runner takes its lock and opens its socket, and while another process checks for one.

    So a check never makes a runner believe that the lock is taken, and a process that sees the lock held finds the
    socket open.
    """
    handle = os.open(run_dir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextlib.contextmanager
def _address(run_dir: Path, name: str = CONTROL_SOCKET) -> Iterator[str]:
    """A socket's address holds 107 bytes and folder names may be longer, so on Linux a handle names the folder."""
    if sys.platform != "linux":
        yield str(run_dir / name)
        return
    handle = os.open(run_dir, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{handle}/{name}"
    finally:
        os.close(handle)


def bind(listener: socket.socket, run_dir: Path, name: str) -> None:
    """Bind a socket to this name in the run's folder, in place of one that a killed runner left."""
    with contextlib.suppress(FileNotFoundError):
        (run_dir / name).unlink()
    with _address(run_dir, name) as address:
        listener.bind(address)


def connect(run_dir: Path, timeout: float | None, name: str = CONTROL_SOCKET) -> socket.socket:
    """A connection to the run's living runner; OSError if no runner listens."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.settimeout(timeout)
        with _address(run_dir, name) as address:
            connection.connect(address)
    except BaseException:
        connection.close()
        raise
    return connection


def send(connection: socket.socket, ask: str, **facts: object) -> None:
    connection.sendall(to_json({"version": VERSION, "ask": ask, **facts}).encode() + b"\n")


class _Command(Enum):
    """What can be asked."""

    STATUS = "status"
    FOLLOW = "follow"
    STOP = "stop"
    INTERRUPT = "interrupt"
    LEAVE = "leave"
    TELL = "tell"
    PERMIT = "permit"


class _UnknownCommand(Exception):
    """A request that is not understood, with the sentence to answer it."""


def _understand(line: bytes) -> tuple[_Command, ControlRequest | None]:
    """The request, and the part of it that concerns the program."""
    try:
        message = json.loads(line)
        version, ask = message["version"], message["ask"]
    except (ValueError, KeyError, TypeError):
        raise _UnknownCommand("This is not a message with a version and an ask; send one JSON object a line.") from None
    if version != VERSION:
        raise _UnknownCommand(f"This runner speaks version {VERSION}, not {version!r}; use that version.")
    try:
        word = _Command(ask)
    except ValueError:
        known = ", ".join(word.value for word in _Command)
        raise _UnknownCommand(f"This runner does not know {ask!r}; ask one of {known}.") from None
    match word:
        case _Command.STOP:
            return word, StopRequest(grace=_grace(message))
        case _Command.INTERRUPT:
            return word, InterruptRequest(then=_tell(message) if "text" in message else None)
        case _Command.LEAVE:
            return word, InterruptRequest()
        case _Command.TELL:
            return word, _tell(message)
        case _Command.PERMIT:
            why = _text(message, "why") if "why" in message else ""
            return word, PermissionAnswer(
                question=_text(message, "question"), allowed=message.get("allowed") is True, why=why
            )
        case _:
            return word, None


def _grace(message: Mapping[str, object]) -> float | None:
    grace = message.get("grace")
    if grace is None:
        return None
    if isinstance(grace, bool) or not isinstance(grace, int | float) or not grace >= 0:
        raise _UnknownCommand(f"A grace of {grace!r} is not a number of seconds; send one, or none.")
    return grace


def _tell(message: Mapping[str, object]) -> TellRequest:
    return TellRequest(id=_text(message, "id"), text=_text(message, "text"))


def _text(message: Mapping[str, object], name: str) -> str:
    value = message.get(name)
    if not isinstance(value, str):
        raise _UnknownCommand(f"This ask needs {name!r} as text; send it.")
    return value


@dataclass(eq=False)
class _Caller:
    """One connection. A client that does not read its replies is cut off."""

    socket: socket.socket
    received: bytearray = field(default_factory=bytearray)
    follows: bool = False


class ControlServer:
    """The runner's end. It has one file descriptor to wait for, however many clients there are, so any loop can host
    it.
    """

    def __init__(self, run_dir: Path, run: str) -> None:
        self._run_dir = run_dir
        self._run = run
        self._selector = selectors.DefaultSelector()
        self._callers: set[_Caller] = set()
        self.people: Callable[[], int] = lambda: 0
        """How many people are at the run's terminal."""
        self._received: set[str] = set()
        """Messages, by their ids."""
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.setblocking(False)
        bind(self._listener, run_dir, CONTROL_SOCKET)
        self._listener.listen(64)
        self._selector.register(self._listener, selectors.EVENT_READ)

    def fileno(self) -> int:
        return self._selector.fileno()

    def take(self) -> Sequence[ControlRequest]:
        asks: list[ControlRequest] = []
        for key, _ in self._selector.select(0):
            if isinstance(key.data, _Caller):
                asks += self._read(key.data)
            else:
                self._accept()
        return asks

    def ring(self) -> None:
        """Notify the followers that the journal has grown. One byte in a full pipe is as good as two."""
        for caller in [caller for caller in self._callers if caller.follows]:
            try:
                caller.socket.send(_BELL)
            except BlockingIOError:
                continue
            except OSError:
                self._drop(caller)

    def close(self) -> None:
        """Refuse new connections and close the open ones."""
        with contextlib.suppress(FileNotFoundError):
            (self._run_dir / CONTROL_SOCKET).unlink()
        for caller in list(self._callers):
            self._drop(caller)
        self._listener.close()
        self._selector.close()

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except BlockingIOError:
            return
        connection.setblocking(False)
        caller = _Caller(connection)
        self._callers.add(caller)
        self._selector.register(connection, selectors.EVENT_READ, caller)

    def _read(self, caller: _Caller) -> list[ControlRequest]:
        try:
            data = caller.socket.recv(_CHUNK)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        caller.received += data
        if not data or len(caller.received) > LONGEST_LINE:
            self._drop(caller)
            return []
        *lines, rest = caller.received.split(b"\n")
        caller.received = bytearray(rest)
        answers = [self._answer(caller, bytes(line)) for line in lines]
        return [ask for ask in answers if ask is not None]

    def _answer(self, caller: _Caller, line: bytes) -> ControlRequest | None:
        """Answer one line at once, and pass on what concerns the program."""
        try:
            word, ask = _understand(line)
        except _UnknownCommand as strange:
            self._send(caller, {"version": VERSION, "ok": False, "error": str(strange)})
            return None
        caller.follows = caller.follows or word is _Command.FOLLOW
        reply = {"version": VERSION, "ok": True, "run": self._run, "runner": os.getpid()}
        if word is _Command.LEAVE:
            reply["others"] = self.people()
        self._send(caller, reply)
        return None if reply.get("others") or self._is_repeated(ask) else ask

    def _is_repeated(self, ask: ControlRequest | None) -> bool:
        """Whether the message arrived before: a sender that got no confirmation may repeat its request."""
        message = ask.then if isinstance(ask, InterruptRequest) else ask
        if not isinstance(message, TellRequest):
            return False
        known = message.id in self._received
        self._received.add(message.id)
        return known

    def _send(self, caller: _Caller, message: dict[str, object]) -> None:
        try:
            caller.socket.send(to_json(message).encode() + b"\n")
        except OSError:
            self._drop(caller)

    def _drop(self, caller: _Caller) -> None:
        if caller in self._callers:
            self._callers.discard(caller)
            self._selector.unregister(caller.socket)
            caller.socket.close()
