"""The gateway against a bare aiohttp relay and no relay at all: one at a time, 32 at once, 100 slow streams."""

from __future__ import annotations

import contextlib
import json
import selectors
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from bench.relay import PACE, SLOW_EVENTS
from bench.report import ROUNDS, Report, interleaved
from legion.gateway import process
from legion.gateway.folder import GatewayFolder
from legion.gateway.passes import Pass, grant
from legion.gateway.provider import NO_KEY, Kind, Provider, write_providers

_TOOL = {"type": "object", "properties": {"path": {"type": "string", "description": "where it is " * 20}}}
_TURN = (
    {"role": "user", "content": [{"type": "text", "text": "a word or two " * 100}]},
    {"role": "assistant", "content": [{"type": "text", "text": "some words of it " * 100}]},
)
_BODY = json.dumps(
    {
        "model": "claude-sonnet-4-5",
        "stream": True,
        "max_tokens": 32000,
        "system": [{"type": "text", "text": "Be good. " * 500}],
        "tools": [{"name": f"tool{n}", "description": "does it " * 40, "input_schema": _TOOL} for n in range(16)],
        "messages": [*(_TURN * 20), _TURN[0]],
    }
).encode()
"""About 80 KB, as an agent program sends it in the middle of a job."""
_SINGLE = 200
_MANY, _AT_ONCE = 640, 32
_STREAMS = 100
_END = b"0\r\n\r\n"


def run(folder: Path, report: Report) -> None:
    place = GatewayFolder(folder / "gateway")
    with _helper("provider") as (direct, _), _helper("relay", f"http://127.0.0.1:{direct}") as (relay, bare):
        began = time.monotonic()
        address = process.ensure(place, 0)
        report.value("gateway ready", time.monotonic() - began, "s", aim=2.0)
        try:
            url = f"http://127.0.0.1:{direct}"
            write_providers(
                place,
                [
                    Provider(name="bench", url=url, key=NO_KEY),
                    Provider(name="chat", url=url, key=NO_KEY, kind=Kind.OPENAI_CHAT),
                    Provider(name="slow", url=f"{url}/slow", key=NO_KEY, kind=Kind.OPENAI_CHAT),
                ],
            )
            token, chat, slow = (_token(place, name) for name in ("bench", "chat", "slow"))
            ours = int(address.url.rpartition(":")[2])
            gateway = psutil.Process(address.pid)
            _singly(report, ours=ours, relay=relay, direct=direct, token=token)
            _together(report, ours=ours, relay=relay, token=token, processes=(gateway, bare))
            _slow(report, ours, token, gateway)
            _translated(report, ours=ours, direct=direct, plain=token, chat=chat)
            _slow(report, ours, slow, gateway, "translated, ")
            report.value("gateway: memory after all that (PSS)", gateway.memory_full_info().pss / 1e6, "MB")
        finally:
            process.end(place)


def _singly(report: Report, *, ours: int, relay: int, direct: int, token: str) -> None:
    for port in (ours, relay, direct):
        _one_by_one(port, token)
    rows = [[_one_by_one(port, token) for port in (ours, relay, direct)] for _ in range(ROUNDS)]
    mine, plain, none = (statistics.median(column) * 1000 for column in zip(*rows, strict=True))
    report.value("one at a time: added to a direct request, p50", mine - none, "ms", aim=1.0)
    report.value("one at a time: added by the bare relay, p50", plain - none, "ms")


def _together(
    report: Report, *, ours: int, relay: int, token: str, processes: tuple[psutil.Process, psutil.Process]
) -> None:
    before = [_cpu(process) for process in processes]
    mine, plain = interleaved(lambda _: _at_once(ours, token), lambda _: _at_once(relay, token))
    used = [_cpu(process) - earlier for process, earlier in zip(processes, before, strict=True)]
    report.value("32 at once: requests per second", _MANY / statistics.median(mine), "/s")
    # At least 60 % of the bare relay's requests per second.
    report.ratio(f"32 at once: {_MANY} requests against the bare relay", mine, plain, aim=1 / 0.6)
    # On a busy machine this is the truer figure.
    report.ratio("32 at once: CPU for them, against the bare relay's", used[:1], used[1:], aim=1 / 0.6)


def _translated(report: Report, *, ours: int, direct: int, plain: str, chat: str) -> None:
    """Anthropic's words in, Chat Completions out, and back; beside the pass-through."""
    for token in (plain, chat):
        _one_by_one(ours, token)
    rows = [[_one_by_one(ours, chat), _one_by_one(direct, plain)] for _ in range(ROUNDS)]
    mine, none = (statistics.median(column) * 1000 for column in zip(*rows, strict=True))
    report.value("translated, one at a time: added to a direct request, p50", mine - none, "ms", aim=3.0)
    translated, passed = interleaved(lambda _: _at_once(ours, chat), lambda _: _at_once(ours, plain))
    report.value("translated, 32 at once: requests per second", _MANY / statistics.median(translated), "/s")
    report.ratio(f"translated, 32 at once: {_MANY} requests against the pass-through", translated, passed, aim=2.0)


def _token(place: GatewayFolder, provider: str) -> str:
    return grant(
        place,
        Pass(run=f"bench-{provider}", ticket=1, project=1, agent="bench", provider=provider, budget_usd=1e9),
    )


def _slow(report: Report, port: int, token: str, gateway: psutil.Process, how: str = "") -> None:
    connections = [_connect(port) for _ in range(_STREAMS)]
    before, began = _cpu(gateway), time.monotonic()
    for connection in connections:
        connection.sendall(_request(token, "/v1/messages?slow"))
    _drain(connections, 1)
    used, seconds = _cpu(gateway) - before, time.monotonic() - began
    report.value(f"{how}100 slow streams: CPU of the gateway", used / seconds * 100, "% of a core", aim=50)
    report.value(f"{how}100 slow streams: took, against the provider's pace", seconds / (PACE * SLOW_EVENTS), "x")


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def _one_by_one(port: int, token: str) -> float:
    """The median of many, one after the other on one connection."""
    connection, took = _connect(port), []
    for _ in range(_SINGLE):
        began = time.perf_counter()
        connection.sendall(_request(token))
        _drain([connection], 1)
        took.append(time.perf_counter() - began)
    connection.close()
    return statistics.median(took)


def _at_once(port: int, token: str) -> float:
    connections = [_connect(port) for _ in range(_AT_ONCE)]
    began = time.perf_counter()
    request = _request(token)
    for connection in connections:
        connection.sendall(request)
    _drain(connections, _MANY // _AT_ONCE, request)
    return time.perf_counter() - began


def _drain(connections: list[socket.socket], times: int, request: bytes = b"") -> None:
    """Read so many answers from each, asking again after all but the last."""
    left, tails = dict.fromkeys(connections, times), dict.fromkeys(connections, b"")
    with selectors.DefaultSelector() as selector:
        for connection in connections:
            selector.register(connection, selectors.EVENT_READ, connection)
        while left:
            for key, _ in selector.select():
                connection = key.data
                piece = connection.recv(1 << 18)
                assert piece, "the connection broke"
                tails[connection] = (tails[connection] + piece)[-len(_END) :]
                if tails[connection] != _END:
                    continue
                tails[connection] = b""
                left[connection] -= 1
                if left[connection]:
                    connection.sendall(request)
                else:
                    del left[connection]
                    selector.unregister(connection)
                    if times > 1:
                        connection.close()


def _connect(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def _request(token: str, path: str = "/v1/messages?beta=true") -> bytes:
    head = (
        f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {token}\r\n"
        f"content-type: application/json\r\nanthropic-version: 2023-06-01\r\ncontent-length: {len(_BODY)}\r\n\r\n"
    )
    return head.encode() + _BODY


@contextlib.contextmanager
def _helper(*words: str) -> Iterator[tuple[int, psutil.Process]]:
    """A process of `bench.relay` and its port. A session of its own, as the gateway is: Linux shares CPU by session."""
    argv = [sys.executable, "-m", "bench.relay", *words]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, start_new_session=True) as child:
        assert child.stdout is not None
        try:
            yield int(child.stdout.readline()), psutil.Process(child.pid)
        finally:
            child.kill()
