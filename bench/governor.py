"""Thirty tickets on one account whose limit is enough for 60 % of their requests: refused upstream, with and without.

Real Claude Code, a scripted model, and between gateway and model an account that counts.
"""

from __future__ import annotations

import contextlib
import http.client
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from textwrap import dedent
from urllib.parse import urlsplit

from bench import ground
from bench.report import Report
from legion.rehearsal.process import playing
from tests.support.legion import PLAIN, Squad

_TICKETS = 30
_AT_ONCE = 10
_TURNS = 4
_LIMIT = _TICKETS * _TURNS * 60 // 100
_SPAN_ENDS = 75.0
"""Seconds from when the account is nearly used up to its reset: more than Claude Code waits by itself."""
_NEARLY = 0.97
_UNIFIED = "anthropic-ratelimit-unified"
_REFUSAL = b'{"type":"error","error":{"type":"rate_limit_error","message":"the limit of this account is reached"}}'
_STEP = """
    [[step]]
    call = {tool = "Bash", input = {command = "echo line >> piece-{name}.txt"}}
"""
_SCRIPT = _STEP * (_TURNS - 1) + "\n    [[step]]\n    say = \"Done.\"\n\n    [capture]\n    name = 'piece (\\S+)'\n"


class Account:
    """So many requests in a span, and a new span some time after it is nearly used up."""

    def __init__(self, upstream: str) -> None:
        self.upstream = urlsplit(upstream).netloc
        self.refused = 0
        self._lock = threading.Lock()
        self._used = 0
        self._resets_at: float | None = None

    def admit(self) -> tuple[bool, dict[str, str]]:
        """Whether the next request is served, and what is said of the limit."""
        with self._lock:
            now = time.time()
            if self._resets_at is not None and now >= self._resets_at:
                self._used, self._resets_at = 0, None
            served = self._used < _LIMIT
            self._used += served
            self.refused += not served
            share = self._used / _LIMIT
            if share >= _NEARLY and self._resets_at is None:
                self._resets_at = now + _SPAN_ENDS
            resets_at = self._resets_at or now + _SPAN_ENDS
            headers = {
                f"{_UNIFIED}-status": "allowed" if served else "rejected",
                f"{_UNIFIED}-representative-claim": "five_hour",
                f"{_UNIFIED}-reset": str(int(resets_at)),
                f"{_UNIFIED}-5h-reset": str(int(resets_at)),
                f"{_UNIFIED}-5h-utilization": f"{share:.3f}",
            }
            return served, headers if served else headers | {"retry-after": str(max(1, round(resets_at - now)))}


class _Counter(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    account: Account

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        # Titles and counts are not what an account is limited by here.
        counts = b'"tools":[{' in body and "count_tokens" not in self.path
        served, limits = self.account.admit() if counts else (True, {})
        if not served:
            self._answer(429, {**limits, "content-type": "application/json"}, _REFUSAL)
            return
        line = http.client.HTTPConnection(self.account.upstream, timeout=120)
        line.request("POST", self.path, body, {"content-type": "application/json", "anthropic-version": "2023-06-01"})
        answer = line.getresponse()
        kind = answer.getheader("content-type") or "application/json"
        self._answer(answer.status, {**limits, "content-type": kind}, answer.read())
        line.close()

    def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nobody reads it."""


def run(folder: Path, report: Report) -> None:
    scripts = folder / "scripts"
    scripts.mkdir()
    (scripts / "work.toml").write_text(dedent(_SCRIPT))
    for name, settings in (("without", "[governor]\non = false\n"), ("with", "")):
        with playing(scripts, folder) as model, _counting(model.url) as (account, url):
            seconds = _work(folder / name, url, settings)
        what = f"{_TICKETS} agents, {_AT_ONCE} at once, a limit at 60 %, {name} the governor"
        report.value(f"{what}: refused upstream", account.refused, "requests")
        report.value(f"{what}: until all has landed", seconds, "s")


@contextlib.contextmanager
def _counting(upstream: str) -> Iterator[tuple[Account, str]]:
    account = Account(upstream)
    handler = type("Counter", (_Counter,), {"account": account})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield account, f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def _work(folder: Path, url: str, settings: str) -> float:
    folder.mkdir()
    repository = ground.repository(folder / "repo", 100, f"[agents]\nparallel = {_AT_ONCE}\n")
    squad = Squad(folder, launch=PLAIN, settings=settings)
    squad.settings.with_name("providers.toml").write_text(f'[account]\nurl = "{url}"\n')
    squad.start()
    try:
        project = squad.adopt(repository)
        began = time.monotonic()
        tickets = [
            project.dispatch(f"piece p{n}", text=f"rehearsal: work piece p{n}", driver="claude")
            for n in range(_TICKETS)
        ]
        for ticket in tickets:
            project.until(ticket, "done", patience=900)
        return time.monotonic() - began
    finally:
        squad.close()
