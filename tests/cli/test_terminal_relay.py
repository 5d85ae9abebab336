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

from legion.wire.terminal import FrameKind, FrameReader, Hello, TerminalSize

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
            os.close(slave)
            try:
                runner, _ = listener.accept()
                runner.settimeout(PATIENCE)
                with runner:
                    yield Relayed(terminal=terminal, runner=runner, client=client)
            finally:
                client.kill()
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


def test_the_key_that_leaves_works_as_soon_as_it_is_named(relayed: Relayed):
    shown = b""
    while b"Ctrl-Q leaves." not in shown:
        shown += os.read(relayed.terminal, 4096)
    assert not termios.tcgetattr(relayed.terminal)[3] & termios.ICANON, "the terminal would drop Ctrl-Q"
    os.write(relayed.terminal, b"\x11")
    assert relayed.client.wait(PATIENCE) == 0
