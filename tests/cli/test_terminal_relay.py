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
from pathlib import Path

from legion.wire.terminal import FrameKind, FrameReader, Hello, TerminalSize

LATE_SIGNAL = """
import signal, sys
from legion.client.terminal import relay
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGWINCH})
relay(sys.argv[1])
"""
"""A relay that gets the signal of a resize later than the keys."""


def frames(runner: socket.socket) -> Iterator[tuple[FrameKind, bytes]]:
    reader = FrameReader()
    while data := runner.recv(1 << 16):
        yield from reader.feed(data)


def resize(terminal: int, columns: int, rows: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def test_keys_that_are_typed_after_a_resize_arrive_after_the_new_size(tmp_path: Path):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "terminal"))
    listener.listen()
    listener.settimeout(60)
    terminal, slave = os.openpty()
    resize(terminal, 87, 21)
    argv = [sys.executable, "-c", LATE_SIGNAL, str(tmp_path / "terminal")]
    with listener, subprocess.Popen(argv, stdin=slave, stdout=slave, stderr=slave) as client:
        os.close(slave)
        try:
            runner, _ = listener.accept()
            runner.settimeout(60)
            seen = frames(runner)
            kind, content = next(seen)
            assert (kind, Hello.from_bytes(content).size) == (FrameKind.HELLO, TerminalSize(columns=87, rows=21))
            resize(terminal, 61, 19)
            os.write(terminal, b"x")
            kind, content = next(seen)
            assert (kind, TerminalSize.from_bytes(content)) == (FrameKind.SIZE, TerminalSize(columns=61, rows=19))
            assert next(seen) == (FrameKind.KEYS, b"x")
            runner.close()
        finally:
            client.kill()
            os.close(terminal)
