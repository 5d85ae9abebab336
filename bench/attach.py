"""A key in an attached terminal: how much later its echo comes than in a terminal without Legion in between."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import socket
import statistics
import struct
import subprocess
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator
from pathlib import Path

from websockets.sync.client import connect

from bench.report import Report
from legion.drivers import Program
from legion.drivers.terminal_options import TerminalOptions
from legion.runner.launch import Launcher, stop, wait
from legion.runner.spec import TERMINAL_SOCKET, RunSpec, write_spec
from legion.wire.terminal import Attach, NewByHand
from tests.support.legion import PLAIN, Project, Squad
from tests.support.repository import CHECK, Repository

KEYS = 400
_ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "TERM": "xterm"}
_ECHO = ("cat",)
_RELAY = "import sys; from legion.client.terminal import relay; relay(sys.argv[1])"


def run(folder: Path, report: Report) -> None:
    report.part("attach: a key and its echo")
    with _attached(folder) as far, _plain() as near:
        ours, plain = [], []
        for _ in range(KEYS):
            # In turn, so that a busy moment of the machine hits both.
            plain.append(near())
            ours.append(far())
    added = (statistics.median(ours) - statistics.median(plain)) * 1000
    report.value("plain terminal, a key and its echo", statistics.median(plain) * 1000, "ms")
    report.value("attached, the same (median)", statistics.median(ours) * 1000, "ms")
    report.value("attached, one in twenty is slower than", statistics.quantiles(ours, n=20)[-1] * 1000, "ms")
    report.value("added to a key (median)", added, "ms", aim=5)
    _page(folder / "page", report)


def _page(folder: Path, report: Report) -> None:
    """The page's WebSocket, in turn with `legion attach` to another run of the same program and daemon."""
    folder.mkdir()
    squad = Squad(folder, launch=PLAIN)
    squad.start()
    try:
        project = squad.adopt(Repository(folder / "shop", CHECK))
        near, far = (_by_hand(project) for _ in range(2))
        address = squad.client.attach(near, Attach()).socket
        with _on_terminal([sys.executable, "-c", _RELAY, address]) as master, _on_page(project, far) as press_page:
            _until_raw(master)
            press = _key(master)
            pairs = [(press(), press_page()) for _ in range(KEYS)]
    finally:
        squad.close()
    attached, paged = ([pair[at] for pair in pairs] for at in range(2))
    report.value("a daemon's agent, attached: a key and its echo", statistics.median(attached) * 1000, "ms")
    report.value("on the page's WebSocket, the same (median)", statistics.median(paged) * 1000, "ms")
    report.value("on the page, one in twenty is slower than", statistics.quantiles(paged, n=20)[-1] * 1000, "ms")
    added = (statistics.median(paged) - statistics.median(attached)) * 1000
    report.value("the page adds to a key (median)", added, "ms", aim=5)


def _by_hand(project: Project) -> int:
    wanted = NewByHand(cwd=project.cwd, name="Echo", program="cat")
    (ticket,) = project.squad.client.new_by_hand(wanted).ids
    project.until(ticket, "working")
    return ticket


@contextlib.contextmanager
def _on_page(project: Project, ticket: int) -> Iterator[Callable[[], float]]:
    squad = project.squad
    url = squad.client.web_addresses().local.replace("http", "ws")
    headers = {"Authorization": f"Bearer {squad.data.token.read_text().strip()}"}
    with connect(f"{url}/ws/tickets/{ticket}/terminal", additional_headers=headers, proxy=None) as socket:
        with contextlib.suppress(TimeoutError):
            while socket.recv(1.0):
                pass

        def press() -> float:
            began = time.perf_counter()
            socket.send(b"kx")
            socket.recv(10)
            return time.perf_counter() - began

        yield press


def _key(master: int) -> Callable[[], float]:
    def press() -> float:
        began = time.perf_counter()
        os.write(master, b"x")
        select.select([master], [], [], 10)
        os.read(master, 4096)
        return time.perf_counter() - began

    return press


@contextlib.contextmanager
def _plain() -> Iterator[Callable[[], float]]:
    """A program on a terminal, as a terminal emulator has it."""
    with _on_terminal(list(_ECHO)) as master:
        yield _key(master)


@contextlib.contextmanager
def _attached(folder: Path) -> Iterator[Callable[[], float]]:
    """The same program on a terminal of a runner, and the relay of `legion attach` on a second one."""
    run_dir, launcher = folder / "run", Launcher()
    program = Program(argv=_ECHO, cwd=folder, env=_ENV, terminal=True)
    options = TerminalOptions().to_json()
    write_spec(run_dir, RunSpec(run="bench", program=program, driver="terminal", options=options, sandbox=None))
    launcher.start(run_dir)
    address = str(run_dir / TERMINAL_SOCKET)
    _until_open(address)
    try:
        with _on_terminal([sys.executable, "-c", _RELAY, address]) as master:
            _until_raw(master)
            yield _key(master)
    finally:
        stop(run_dir, 0)
        wait(run_dir)
        launcher.close()


@contextlib.contextmanager
def _on_terminal(argv: list[str]) -> Iterator[int]:
    master, slave = os.openpty()
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    process = subprocess.Popen(argv, stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
    os.close(slave)
    try:
        yield master
    finally:
        process.kill()
        process.wait()
        os.close(master)


def _until_open(address: str) -> None:
    while True:
        with socket.socket(socket.AF_UNIX) as trial, contextlib.suppress(OSError):
            trial.connect(address)
            return
        time.sleep(0.05)


def _until_raw(master: int) -> None:
    """The relay has taken over the terminal, and what came before is read."""
    while termios.tcgetattr(master)[tty.LFLAG] & termios.ECHO:
        time.sleep(0.05)
    time.sleep(0.5)
    while select.select([master], [], [], 0.2)[0]:
        os.read(master, 65536)
