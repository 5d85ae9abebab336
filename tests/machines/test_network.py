"""The harness of faults does what it says: links that are cut, slow, one-way or broken, and machines as namespaces."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from legion.demo.machines.link_process import GOOD, LOSSY, ONLY_DOWN, ONLY_UP, SLOW, Flow, LinkState
from legion.demo.machines.play import BadLink
from tests.machines.network import needs_namespaces, network

PATIENCE = 20.0
SILENCE = 0.3
"""Long enough for a byte that is not held back."""


class EchoServer:
    """Sends everything back, and keeps what it received."""

    def __init__(self, address: str = "127.0.0.1") -> None:
        self._listener = socket.create_server((address, 0))
        self.port = self._listener.getsockname()[1]
        self.received = b""
        self.arrived = threading.Condition()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                threading.Thread(target=self._echo, args=(connection,), daemon=True).start()

    def _echo(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            while piece := connection.recv(65536):
                with self.arrived:
                    self.received += piece
                    self.arrived.notify_all()
                connection.sendall(piece)

    def wait_for(self, content: bytes) -> None:
        with self.arrived:
            assert self.arrived.wait_for(lambda: self.received == content, PATIENCE), self.received

    def close(self) -> None:
        with contextlib.suppress(OSError):
            # Wakes the thread that accepts: until then the kernel keeps the listener.
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@pytest.fixture
def server() -> Iterator[EchoServer]:
    made = EchoServer()
    yield made
    made.close()


@pytest.fixture
def link(server: EchoServer) -> Iterator[BadLink]:
    with BadLink(server.port) as made:
        yield made


@pytest.fixture
def dialled(link: BadLink) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", link.port), PATIENCE) as connection:
        yield connection


def exact(connection: socket.socket, size: int) -> bytes:
    connection.settimeout(PATIENCE)
    found = b""
    while len(found) < size:
        piece = connection.recv(size - len(found))
        assert piece, "the connection ended"
        found += piece
    return found


def is_silent(connection: socket.socket) -> bool:
    connection.settimeout(SILENCE)
    try:
        connection.recv(1)
    except TimeoutError:
        return True
    return False


def test_a_good_link_passes_everything_and_both_ends(dialled: socket.socket):
    content = os.urandom(3_000_000)

    def send() -> None:
        dialled.sendall(content)
        dialled.shutdown(socket.SHUT_WR)

    threading.Thread(target=send, daemon=True).start()
    assert exact(dialled, len(content)) == content
    assert dialled.recv(1) == b""


def test_what_is_sent_over_a_cut_link_arrives_when_it_is_healed(
    link: BadLink, dialled: socket.socket, server: EchoServer
):
    link.cut()
    dialled.sendall(b"later")
    assert is_silent(dialled)
    assert server.received == b""
    link.heal()
    assert exact(dialled, 5) == b"later"


def test_over_a_one_way_link_only_one_direction_is_silent(link: BadLink, dialled: socket.socket, server: EchoServer):
    link.change(ONLY_UP)
    dialled.sendall(b"one")
    server.wait_for(b"one")
    assert is_silent(dialled)
    link.change(ONLY_DOWN)
    assert exact(dialled, 3) == b"one"
    dialled.sendall(b"two")
    assert is_silent(dialled)
    assert server.received == b"one"
    link.change(GOOD)
    assert exact(dialled, 3) == b"two"


def test_a_slow_link_costs_each_answer_200_ms_and_not_each_byte(link: BadLink, dialled: socket.socket):
    link.change(SLOW)
    started = time.monotonic()
    dialled.sendall(b"x" * 40_000)
    exact(dialled, 40_000)
    assert time.monotonic() - started >= 0.2


def test_bandwidth_is_limited(link: BadLink, dialled: socket.socket):
    link.change(LinkState(down=Flow(bytes_per_second=100_000)))
    started = time.monotonic()
    dialled.sendall(b"x" * 60_000)
    exact(dialled, 60_000)
    assert time.monotonic() - started >= 0.3


def test_a_lossy_link_breaks_connections_by_its_seed(link: BadLink):
    link.change(LOSSY)

    def pieces() -> int:
        with socket.create_connection(("127.0.0.1", link.port), PATIENCE) as connection:
            for number in range(400):
                try:
                    connection.sendall(b"x")
                    exact(connection, 1)
                except (ConnectionError, AssertionError):
                    return number
        return 400

    lengths = [pieces() for _ in range(3)]
    assert min(lengths) < 400
    assert len(set(lengths)) > 1


def test_connections_are_reset_and_new_ones_are_accepted(link: BadLink, dialled: socket.socket):
    dialled.sendall(b"a")
    exact(dialled, 1)
    link.break_connections()
    dialled.settimeout(PATIENCE)
    with pytest.raises(ConnectionResetError):
        dialled.recv(1)
    with socket.create_connection(("127.0.0.1", link.port), PATIENCE) as fresh:
        fresh.sendall(b"b")
        assert exact(fresh, 1) == b"b"


def test_a_link_to_nothing_resets_its_callers():
    with contextlib.ExitStack() as stack:
        # A port that is taken and does not listen: no other process can open it meanwhile.
        nothing = stack.enter_context(socket.socket())
        nothing.bind(("127.0.0.1", 0))
        link = stack.enter_context(BadLink(nothing.getsockname()[1]))
        dialled = stack.enter_context(socket.create_connection(("127.0.0.1", link.port), PATIENCE))
        dialled.settimeout(PATIENCE)
        with pytest.raises(ConnectionResetError):
            dialled.recv(1)


CALLER = """
import socket, sys
caller = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
caller.settimeout(0.1)
number = 0

def is_answered():
    global number
    number += 1
    content = b"%d" % number
    try:
        caller.sendto(content, (sys.argv[1], int(sys.argv[2])))
        while caller.recv(10) != content:
            pass
    except OSError:
        return False
    return True

for wanted in sys.stdin:
    if wanted == "answered\\n":
        while not is_answered():
            pass
    else:
        wanted = "answered\\n" if any([is_answered() for _ in range(5)]) else wanted
    print(wanted, end="", flush=True)
"""
"""Asked for `answered`, it calls until an answer comes; asked for `silent`, it calls five times and listens briefly."""


class CallServer:
    """Answers each datagram, and counts them."""

    def __init__(self, address: str) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind((address, 0))
        self.port = self._socket.getsockname()[1]
        self.calls = 0
        self.called = threading.Condition()
        threading.Thread(target=self._answer, daemon=True).start()

    def _answer(self) -> None:
        while True:
            content, caller = self._socket.recvfrom(10)
            with self.called:
                self.calls += 1
                self.called.notify_all()
            with contextlib.suppress(OSError):
                self._socket.sendto(content, caller)

    def until_more_than(self, calls: int) -> None:
        with self.called:
            assert self.called.wait_for(lambda: self.calls > calls, PATIENCE), "no call came"


@needs_namespaces()
def test_a_namespace_is_cut_and_healed_in_each_direction():
    with network() as net:
        host = net.add("m1")
        server = CallServer(net.address)
        process = host.start([sys.executable, "-c", CALLER, net.address, str(server.port)], asked=True)

        def assert_call_is(expected: str) -> None:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(f"{expected}\n".encode())
            process.stdin.flush()
            assert process.stdout.readline().decode() == f"{expected}\n"

        assert_call_is("answered")
        host.cut()
        calls = server.calls
        assert_call_is("silent")
        assert server.calls == calls
        host.heal()
        assert_call_is("answered")
        host.lose_what_it_is_sent()
        calls = server.calls
        assert_call_is("silent")
        server.until_more_than(calls)
        host.heal_directions()
        assert_call_is("answered")
        host.lose_what_it_sends()
        calls = server.calls
        assert_call_is("silent")
        assert server.calls == calls
        host.heal_directions()
        assert_call_is("answered")


LONELY = """
import subprocess
subprocess.Popen(["sleep", "300"], start_new_session=True)
print("up", flush=True)
"""


@needs_namespaces()
def test_without_power_every_process_of_a_machine_is_gone():
    with network() as net:
        process = net.add("m1").start([sys.executable, "-c", f"{LONELY}\nimport signal; signal.pause()"])
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        held = os.dup(process.stdout.fileno())
        net.hosts["m1"].power_off()
        # The end of the file comes when the last process that could write to it is gone.
        assert select.select([held], [], [], PATIENCE)[0]
        assert os.read(held, 1) == b""
        os.close(held)
