"""The relay between the person's terminal and a runner, as the runner sees it."""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from legion.wire.terminal import FrameKind, FrameReader, Hello, TerminalSize, frame
from tests.support.attacks import Attacker, Door, attack

PATIENCE = 60.0

RELAY = """
import signal, sys
from legion.client.terminal import relay
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGWINCH})
relay(sys.argv[1], message="Ctrl-Q leaves.")
"""
"""It gets the signal of a resize later than the keys: never."""


def frames(runner: socket.socket) -> Iterator[tuple[FrameKind, bytes]]:
    reader = FrameReader()
    while data := runner.recv(1 << 16):
        yield from reader.feed(data)


def resize(terminal: int, columns: int, rows: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


@dataclass(frozen=True, kw_only=True)
class Relayed:
    terminal: int
    """The person's side."""
    shell: int
    """The other side, as the program that reads the terminal next has it."""
    runner: socket.socket
    client: subprocess.Popen[bytes]


@pytest.fixture
def relayed(tmp_path: Path) -> Iterator[Relayed]:
    terminal, slave = os.openpty()
    resize(terminal, 87, 21)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "terminal"))
        listener.listen()
        listener.settimeout(PATIENCE)
        argv = [sys.executable, "-c", RELAY, str(tmp_path / "terminal")]
        with subprocess.Popen(argv, stdin=slave, stdout=slave, stderr=slave) as client:
            try:
                runner, _ = listener.accept()
                runner.settimeout(PATIENCE)
                with runner:
                    yield Relayed(terminal=terminal, shell=slave, runner=runner, client=client)
            finally:
                client.kill()
                os.close(slave)
                os.close(terminal)


def test_keys_that_are_typed_after_a_resize_arrive_after_the_new_size(relayed: Relayed):
    seen = frames(relayed.runner)
    kind, content = next(seen)
    assert (kind, Hello.from_bytes(content).size) == (FrameKind.HELLO, TerminalSize(columns=87, rows=21))
    resize(relayed.terminal, 61, 19)
    os.write(relayed.terminal, b"x")
    kind, content = next(seen)
    assert (kind, TerminalSize.from_bytes(content)) == (FrameKind.SIZE, TerminalSize(columns=61, rows=19))
    assert next(seen) == (FrameKind.KEYS, b"x")


@attack(Attacker.REPOSITORY, Door.KEYS)
def test_what_was_typed_behind_the_key_that_leaves_does_not_reach_the_shell(relayed: Relayed):
    until_shown(relayed, b"Ctrl-Q leaves.")
    # More than one read takes.
    os.write(relayed.terminal, b"\x11" + b"touch x\n" * 1200)
    assert relayed.client.wait(PATIENCE) == 0
    os.set_blocking(relayed.shell, False)
    with pytest.raises(BlockingIOError):
        os.read(relayed.shell, 1)


@pytest.mark.parametrize(
    ("drawn", "last"),
    [
        (b"lines", b"\x1b[999;1H\r\n\x1b[J"),
        (b"\x1b[?1049hscreen", b"\x1b[?1049l\x1b[J"),
        (b"\x1b[?1049hscreen\x1b[?1049llines", b"\x1b[999;1H\r\n\x1b[J"),
    ],
    ids=["among-lines", "own-screen", "own-screen-left"],
)
def test_whoever_leaves_gets_their_title_and_a_free_line(relayed: Relayed, drawn: bytes, last: bytes):
    next(frames(relayed.runner))
    relayed.runner.sendall(frame(FrameKind.OUTPUT, drawn))
    shown = until_shown(relayed, drawn[-5:])
    assert b"\x1b[22;0t" in shown
    os.write(relayed.terminal, b"\x11")
    rest = until_shown(relayed, last)
    assert b"\x1b[23;0t" in rest
    assert rest.endswith(last), "what moves the cursor comes before"


def until_shown(relayed: Relayed, words: bytes) -> bytes:
    shown = b""
    while words not in shown:
        shown += os.read(relayed.terminal, 4096)
    return shown


def test_the_key_that_leaves_works_as_soon_as_it_is_named(relayed: Relayed):
    until_shown(relayed, b"Ctrl-Q leaves.")
    assert not termios.tcgetattr(relayed.terminal)[3] & termios.ICANON, "the terminal would drop Ctrl-Q"
    os.write(relayed.terminal, b"\x11")
    assert relayed.client.wait(PATIENCE) == 0
