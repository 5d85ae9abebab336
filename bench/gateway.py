"""The gateway against a bare relay, none at all, and other gateways: one at a time, 32 at once, 100 slow streams."""

from __future__ import annotations

import contextlib
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

from bench import rivals
from bench.asking import Times, at_once, connect, drain, one_by_one, request
from bench.relay import PACE, SLOW_EVENTS
from bench.report import ROUNDS, Report, interleaved
from legion.gateway import lifecycle
from legion.gateway.access.provider import NO_KEY, Provider, ProviderDialect, write_providers
from legion.gateway.files.folder import GatewayFolder
from legion.gateway.files.passes import Pass, grant

_SINGLE = 200
_MANY = 640
_STREAMS = 100


def run(folder: Path, report: Report) -> None:
    place = GatewayFolder(folder / "gateway")
    with _helper("provider") as (direct, _), _helper("relay", f"http://127.0.0.1:{direct}") as (relay, bare):
        began = time.monotonic()
        address = lifecycle.ensure(place, 0)
        report.value("gateway ready", time.monotonic() - began, "s", aim=2.0)
        try:
            url = f"http://127.0.0.1:{direct}"
            write_providers(
                place,
                [
                    Provider(name="bench", url=url, key=NO_KEY),
                    Provider(name="chat", url=url, key=NO_KEY, kind=ProviderDialect.OPENAI_CHAT),
                    Provider(name="slow", url=f"{url}/slow", key=NO_KEY, kind=ProviderDialect.OPENAI_CHAT),
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
            rivals.run(folder, report, direct, one_by_one(direct, "", _SINGLE).p50)
        finally:
            lifecycle.end(place)


def _singly(report: Report, *, ours: int, relay: int, direct: int, token: str) -> None:
    mine, plain, none = _in_turn((ours, token), (relay, token), (direct, token))
    report.value("one at a time: added to a direct request, p50", (mine.p50 - none.p50) * 1000, "ms", aim=1.0)
    report.value("one at a time: added by the bare relay, p50", (plain.p50 - none.p50) * 1000, "ms")
    _closer(report, "", mine, none)


def _in_turn(*ways: tuple[int, str]) -> list[Times]:
    """All ways one after the other and again, so that a busy moment of the machine hits all of them."""
    for port, token in ways:
        one_by_one(port, token, _SINGLE)
    rounds = [[one_by_one(port, token, _SINGLE) for port, token in ways] for _ in range(ROUNDS)]
    return [
        Times(
            whole=tuple(one for times in way for one in times.whole),
            first=tuple(one for times in way for one in times.first),
        )
        for way in zip(*rounds, strict=True)
    ]


def _closer(report: Report, how: str, mine: Times, none: Times) -> None:
    report.value(f"{how}one at a time: added to a direct request, p99", (mine.p99 - none.p99) * 1000, "ms")
    added = statistics.median(mine.first) - statistics.median(none.first)
    report.value(f"{how}one at a time: added to the first byte, p50", added * 1000, "ms")


def _together(
    report: Report, *, ours: int, relay: int, token: str, processes: tuple[psutil.Process, psutil.Process]
) -> None:
    before = [_cpu(process) for process in processes]
    mine, plain = interleaved(lambda _: at_once(ours, token, _MANY), lambda _: at_once(relay, token, _MANY))
    used = [_cpu(process) - earlier for process, earlier in zip(processes, before, strict=True)]
    report.value("32 at once: requests per second", _MANY / statistics.median(mine), "/s")
    # At least 60 % of the bare relay's requests per second.
    report.ratio(f"32 at once: {_MANY} requests against the bare relay", mine, plain, aim=1 / 0.6)
    # On a busy machine this is the truer figure.
    report.ratio("32 at once: CPU for them, against the bare relay's", used[:1], used[1:], aim=1 / 0.6)


def _translated(report: Report, *, ours: int, direct: int, plain: str, chat: str) -> None:
    """Anthropic's words in, Chat Completions out, and back; beside the pass-through."""
    mine, none = _in_turn((ours, chat), (direct, plain))
    report.value(
        "translated, one at a time: added to a direct request, p50", (mine.p50 - none.p50) * 1000, "ms", aim=3.0
    )
    _closer(report, "translated, ", mine, none)
    translated, passed = interleaved(lambda _: at_once(ours, chat, _MANY), lambda _: at_once(ours, plain, _MANY))
    report.value("translated, 32 at once: requests per second", _MANY / statistics.median(translated), "/s")
    report.ratio(f"translated, 32 at once: {_MANY} requests against the pass-through", translated, passed, aim=2.0)


def _token(place: GatewayFolder, provider: str) -> str:
    return grant(
        place, Pass(run=f"bench-{provider}", ticket=1, project=1, agent="bench", provider=provider, budget_usd=1e9)
    )


def _slow(report: Report, port: int, token: str, gateway: psutil.Process, how: str = "") -> None:
    connections = [connect(port) for _ in range(_STREAMS)]
    before, began = _cpu(gateway), time.monotonic()
    for connection in connections:
        connection.sendall(request(token, "/v1/messages?slow"))
    drain(connections, 1)
    used, seconds = _cpu(gateway) - before, time.monotonic() - began
    report.value(f"{how}100 slow streams: CPU of the gateway", used / seconds * 100, "% of a core", aim=50)
    report.value(f"{how}100 slow streams: took, against the provider's pace", seconds / (PACE * SLOW_EVENTS), "x")


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


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
