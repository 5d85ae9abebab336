"""A real gateway process, and helpers to send it requests and read its ledger."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import legion
from legion.gateway import lifecycle
from legion.gateway.access.provider import NO_KEY, KeySource, KeyStyle, Provider, ProviderDialect, write_providers
from legion.gateway.accounting.ledger import LedgerPosition, LimitEntry, Line, RequestEntry, read
from legion.gateway.files.folder import GatewayFolder
from legion.gateway.files.passes import Pass, grant
from tests.gateway.upstream import PATIENCE
from tests.support.legion import SOURCE
from tests.support.warm import Forked, warm

BODY = b'{"model":"claude-sonnet-4-5","stream":true,"max_tokens":100}'
MODULE = "legion.gateway"
_numbers = count(1)
T = TypeVar("T")


@dataclass
class Running:
    """A gateway and the folder that it serves."""

    folder: GatewayFolder
    url: str
    pid: int

    def provide(
        self,
        url: str,
        key: KeySource = NO_KEY,
        *,
        name: str = "main",
        auth: KeyStyle = KeyStyle.API_KEY,
        kind: ProviderDialect = ProviderDialect.ANTHROPIC,
        **more: Any,
    ) -> None:
        write_providers(self.folder, [Provider(name=name, url=url, key=key, auth=auth, kind=kind, **more)])

    def grant(self, **facts: Any) -> tuple[str, str]:
        """A run of its own and its token."""
        run = f"ticket-1-run-{next(_numbers)}"
        given = Pass(**{"run": run, "ticket": 1, "project": 1, "agent": f"agent-{run}", "provider": "main", **facts})
        return run, grant(self.folder, given)

    def ask(
        self, token: str, body: bytes = BODY, *, path: str = "/v1/messages", method: str = "POST", **headers: str
    ) -> tuple[int, bytes]:
        with self.asking(token, body, path=path, method=method, **headers) as answer:
            return answer.status, answer.read()

    @contextmanager
    def asking(
        self, token: str, body: bytes = BODY, *, path: str = "/v1/messages", method: str = "POST", **headers: str
    ) -> Iterator[http.client.HTTPResponse]:
        """The answer while it is still coming; leaving the block hangs up."""
        connection = http.client.HTTPConnection(urlsplit(self.url).netloc, timeout=PATIENCE)
        options = {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request(method, path, body or None, {"Authorization": f"Bearer {token}", **options})
            yield connection.getresponse()
        finally:
            connection.close()

    def refused(self, token: str, body: bytes = BODY, **asked: Any) -> tuple[int, str, str]:
        """Status, kind and sentence of an error."""
        status, reply = self.ask(token, body, **asked)
        document = json.loads(reply)
        assert document["type"] == "error"
        return status, document["error"]["type"], document["error"]["message"]

    def lines(self, run: str) -> list[Line]:
        return [line for line in everything(self.folder) if line.run == run]

    def entry(self, run: str) -> RequestEntry:
        """The one line about the run's one request, once it is written."""
        (entry,) = self.entries(run, 1)
        return entry

    def entries(self, run: str, number: int) -> list[RequestEntry]:
        return eventually(
            lambda: [line for line in self.lines(run) if isinstance(line, RequestEntry)],
            lambda found: len(found) >= number,
        )

    def limits(self, run: str) -> list[LimitEntry]:
        return [line for line in self.lines(run) if isinstance(line, LimitEntry)]


def everything(folder: GatewayFolder) -> list[Line]:
    lines: list[Line] = []
    position = LedgerPosition()
    while True:
        more, behind = read(folder, position)
        lines += more
        if behind == position:
            return lines
        position = behind


def eventually(look: Callable[[], T], enough: Callable[[T], bool]) -> T:
    """Poll until the condition holds: files cannot be waited for."""
    deadline = time.monotonic() + PATIENCE
    pause = threading.Event()
    while not enough(found := look()):
        assert time.monotonic() < deadline, found
        pause.wait(0.01)
    return found


@contextmanager
def running(folder: Path, *, idle: float = lifecycle.IDLE) -> Iterator[Running]:
    """As the daemon starts it, but forked: it imports nothing again."""
    place = GatewayFolder(folder)
    with forked():
        address = lifecycle.ensure(place, 0, idle=idle)
    try:
        yield Running(place, address.url, address.pid)
    finally:
        lifecycle.end(place)


@contextmanager
def forked() -> Iterator[None]:
    """Gateways that this process starts as a daemon does are forked from the warm process."""
    exec_process = lifecycle.start_process

    def fork(argv: Sequence[str], env: Mapping[str, str], *, ready: int, log: int) -> Callable[[], int]:
        words = argv[argv.index(MODULE) + 1 :]
        handles = {1: log, 2: log, ready: ready}
        return warm(SOURCE).start(MODULE, words, {**env, "PYTHONPATH": str(SOURCE)}, Path("/"), handles).wait

    lifecycle.start_process = fork
    try:
        yield
    finally:
        lifecycle.start_process = exec_process


@contextmanager
def started(
    folder: Path, *options: str, env: dict[str, str] | None = None, group: int | None = None
) -> Iterator[tuple[Running, subprocess.Popen[bytes]]]:
    """As a child of the test, which reads its exit code and its output."""
    place = GatewayFolder(folder)
    reading, writing = os.pipe()
    argv = [sys.executable, "-P", "-m", MODULE, str(folder), "--port", "0", "--ready", str(writing), *options]
    source = str(Path(legion.__file__).parent.parent)
    child = subprocess.Popen(
        argv,
        env={**os.environ, "PYTHONPATH": source, **(env or {})},
        pass_fds=[writing],
        stderr=subprocess.PIPE,
        group=group,
    )
    os.close(writing)
    try:
        with os.fdopen(reading, "rb") as answers:
            assert answers.read() == b"ready\n", child.communicate()
        address = lifecycle.address(place)
        assert address is not None
        yield Running(place, address.url, address.pid), child
    finally:
        child.kill()
        child.communicate()


@contextmanager
def forked_child(folder: Path, *options: str) -> Iterator[tuple[Running, Forked]]:
    """As `started`, but forked from the warm process: for tests of its end."""
    place = GatewayFolder(folder)
    reading, writing = os.pipe()
    words = [str(folder), "--port", "0", "--ready", str(writing), *options]
    with Path(os.devnull).open("wb") as output:
        handles = {1: output.fileno(), 2: output.fileno(), writing: writing}
        child = warm(SOURCE).start(MODULE, words, {**os.environ, "PYTHONPATH": str(SOURCE)}, Path("/"), handles)
    os.close(writing)
    try:
        with os.fdopen(reading, "rb") as answers:
            assert answers.read() == b"ready\n"
        address = lifecycle.address(place)
        assert address is not None
        yield Running(place, address.url, address.pid), child
    finally:
        child.kill()
        child.wait()
