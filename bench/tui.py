"""The terminal UI in a real pseudo-terminal: first paint, first full screen, keys, processor and memory under load.

The load is a board of a thousand tickets and thirty agents that print constantly.
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import statistics
import struct
import sys
import termios
import threading
import time
from pathlib import Path

import psutil

from bench.report import Report
from tests.api.serving import serving
from tests.support.board import Board

TICKETS, AGENTS = 1000, 30
_REST, _LOAD, _KEYS = 10.0, 15.0, 60
_ROUNDS = 5
_SIZE = (120, 40)
_PATIENCE = 60.0


def run(folder: Path, report: Report) -> None:
    with serving(folder) as served:
        board = served.board
        _starts(board, report)
        _at_rest(board, report)
        _under_load(board, report)


class _Terminal:
    """`legion` in a pseudo-terminal, and what it writes."""

    def __init__(self, board: Board) -> None:
        env = {
            **{name: value for name, value in os.environ.items() if not name.startswith("LEGION_")},
            "LEGION_DATA_DIR": str(board.data.root),
            "LEGION_CONFIG": str(board.data.root / "config.toml"),
            "PYTHONPATH": str(Path(__file__).parents[1] / "src"),
            "TERM": "xterm-256color",
        }
        self.began = time.monotonic()
        self.pid, self.handle = pty.fork()
        if self.pid == 0:
            os.chdir(board.cwd)
            os.execve(sys.executable, [sys.executable, "-m", "legion"], env)
        columns, lines = _SIZE
        fcntl.ioctl(self.handle, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.process = psutil.Process(self.pid)

    def read(self, seconds: float) -> bytes:
        """What is written within that time; returns with the first piece."""
        if not select.select([self.handle], [], [], seconds)[0]:
            return b""
        try:
            return os.read(self.handle, 1 << 20)
        except OSError:
            # The program has ended.
            return b""

    def until(self, word: bytes) -> float:
        """Seconds from the start until it has written that."""
        seen, deadline = b"", time.monotonic() + _PATIENCE
        while word not in seen:
            assert time.monotonic() < deadline, seen[-2000:]
            seen += self.read(0.5)
        return time.monotonic() - self.began

    def drain(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self.read(left)

    def key(self, letter: bytes) -> float:
        """Seconds until the first answer on the screen. What was written before is read first."""
        while self.read(0.0):
            continue
        began = time.monotonic()
        os.write(self.handle, letter)
        self.read(5.0)
        return time.monotonic() - began

    def cpu(self) -> float:
        used = self.process.cpu_times()
        return used.user + used.system

    def close(self) -> None:
        os.write(self.handle, b"q")
        while os.waitpid(self.pid, os.WNOHANG) == (0, 0):
            self.read(0.05)
        os.close(self.handle)


def _starts(board: Board, report: Report) -> None:
    board.put(1, "First", "working")
    board.put(2, "Second", "queued", after=[1])
    firsts, fulls = [], []
    for _ in range(_ROUNDS):
        terminal = _Terminal(board)
        firsts.append(terminal.until(b"Legion"))
        fulls.append(terminal.until(b"live"))
        terminal.close()
    report.value("terminal UI: first paint", statistics.median(firsts), "s", aim=0.3)
    report.value("terminal UI: first full screen", statistics.median(fulls), "s", aim=1.0)


def _at_rest(board: Board, report: Report) -> None:
    terminal = _Terminal(board)
    terminal.until(b"live")
    terminal.drain(3.0)
    before = terminal.cpu()
    terminal.drain(_REST)
    report.value("at rest: CPU of the UI", (terminal.cpu() - before) / _REST * 100, "% of a core", aim=5)
    terminal.close()


def _under_load(board: Board, report: Report) -> None:
    board.reset()
    for id in range(1, TICKETS + 1):
        state = "working" if id <= AGENTS else ("done", "queued", "failed", "landing")[id % 4]
        board.put(id, f"Ticket number {id} of the load", state)
    runs = [board.run(id, "It starts.\n", ended=False) for id in range(1, AGENTS + 1)]
    stop = threading.Event()
    printing = threading.Thread(target=_print, args=(board, runs, stop), daemon=True)
    terminal = _Terminal(board)
    terminal.until(b"live")
    printing.start()
    terminal.drain(3.0)
    before = terminal.cpu()
    terminal.drain(_LOAD)
    load = f"{TICKETS} tickets, {AGENTS} agents that print"
    report.value(f"{load}: CPU of the UI", (terminal.cpu() - before) / _LOAD * 100, "% of a core", aim=30)
    took = sorted(terminal.key(b"jk"[number % 2 : number % 2 + 1]) for number in range(_KEYS))
    report.value(f"{load}: a key, p95", took[int(len(took) * 0.95)] * 1000, "ms", aim=50)
    report.value(f"{load}: memory of the UI", terminal.process.memory_info().rss / 1e6, "MB", aim=120)
    stop.set()
    printing.join()
    terminal.close()


def _print(board: Board, runs: list[int], stop: threading.Event) -> None:
    number = 0
    while not stop.wait(0.1):
        for run in runs:
            number += 1
            board.print(run, f"> Edit: app/file{number % 50}.py\nThat is line {number} of the output of run {run}.\n")
