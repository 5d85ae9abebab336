"""The page in Chromium: first view, a burst of events, ten thousand tickets; and 50 open pages at the daemon."""

from __future__ import annotations

import gzip
import http.client
import json
import statistics
import time
from pathlib import Path

from playwright.sync_api import Browser, CDPSession, Page, Response, sync_playwright
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin, Subprotocol

from bench.report import Report, say
from legion.domain.events import EventKind
from legion.wire.web import OfferDevice
from tests.api.serving import Served, serving
from tests.web.conftest import CHROMIUM, DESK

_ROUNDS = 5
_BURST, _MANY, _PAGES = 1000, 10_000, 50
_REST = 10.0
_NOTE_THE_FIRST_CARD = """
  new MutationObserver((_, watch) => {
    if (document.querySelector(".card")) { window.firstCard = performance.now(); watch.disconnect(); }
  }).observe(document, { childList: true, subtree: true });
"""
"""Milliseconds from the start of the navigation: the start of a browser process is not the page's."""
_SCROLL_TO_THE_END = """() => new Promise((resolve) => {
  let last = performance.now(), worst = 0, step = 0;
  const next = (now) => {
    worst = Math.max(worst, now - last); last = now; step += 1;
    if (step > 120) return resolve(worst);
    window.scrollTo(0, document.body.scrollHeight * step / 120);
    requestAnimationFrame(next);
  };
  requestAnimationFrame(next);
})"""
"""Milliseconds of the longest pause between two drawn frames while the list is scrolled from end to end."""
_PAGE_HEADERS = {"legion-page": "1", "content-type": "application/json"}


def run(folder: Path, report: Report) -> None:
    if CHROMIUM is None:
        say("     Chromium is not installed: the page was not measured.")
        return
    with serving(folder) as served:
        with sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            _first_view(browser, served, report)
            _burst(browser, served, report)
            _many_tickets(browser, served, report)
            browser.close()
        served.board.reset()
        _open_pages(served, report)


def _enter(browser: Browser, served: Served) -> Page:
    page = browser.new_context(viewport=DESK).new_page()
    code = served.over_socket.offer_device(OfferDevice()).code
    page.goto(f"http://127.0.0.1:{served.port}/#code={code}")
    page.wait_for_selector(".connection.live")
    return page


def _first_view(browser: Browser, served: Served, report: Report) -> None:
    for id in range(1, 31):
        served.board.put(id, f"Ticket number {id}", "working" if id < 10 else "queued")
    took: list[float] = []
    weight = 0
    for _ in range(_ROUNDS):
        before = _enter(browser, served)
        kept = before.context.storage_state()
        before.context.close()
        # A new context has an empty cache; the secret lets it in as a known device.
        context = browser.new_context(viewport=DESK, storage_state=kept)
        page = context.new_page()
        page.add_init_script(_NOTE_THE_FIRST_CARD)
        loaded: list[Response] = []
        _collect(page, loaded)
        page.goto(f"{_url(served)}/#/board")
        page.wait_for_selector(".card")
        took.append(float(page.evaluate("window.firstCard")) / 1000)
        weight = sum(len(gzip.compress(one.body(), 6)) for one in loaded if one.ok and "/v1/" not in one.url)
        context.close()
    report.value("the page: first view with an empty cache", statistics.median(took), "s", aim=0.5)
    report.value("the page: what the first view loads, compressed", weight / 1000, "KB", aim=60)


def _collect(page: Page, loaded: list[Response]) -> None:
    page.on("response", lambda answer: loaded.append(answer))


def _url(served: Served) -> str:
    return f"http://127.0.0.1:{served.port}"


def _burst(browser: Browser, served: Served, report: Report) -> None:
    page = _enter(browser, served)
    tools = page.context.new_cdp_session(page)
    tools.send("Performance.enable")
    before = _script(tools)
    with served.board.store.write() as tx:
        for _ in range(_BURST):
            tx.record(EventKind.TICKET_REPORTED, project=1, ticket=1, data={})
    served.board.put(99, "The last one", "queued")
    served.board.happen(99)
    page.wait_for_selector(".card:has-text('The last one')")
    report.value(f"the page: script for a burst of {_BURST} events", (_script(tools) - before) * 1000, "ms", aim=100)
    page.context.close()


def _script(tools: CDPSession) -> float:
    found = {one["name"]: one["value"] for one in tools.send("Performance.getMetrics")["metrics"]}
    return float(found["ScriptDuration"])


def _many_tickets(browser: Browser, served: Served, report: Report) -> None:
    for id in range(100, 100 + _MANY):
        served.board.put(id, f"Ticket number {id}", "queued")
    page = _enter(browser, served)
    page.goto(f"{_url(served)}/#/board/tree")
    page.wait_for_selector(".row")
    longest = statistics.median(float(page.evaluate(_SCROLL_TO_THE_END)) for _ in range(_ROUNDS))
    report.value(f"the page: longest pause while {_MANY} tickets scroll", longest, "ms", aim=150)
    page.context.close()


def _open_pages(served: Served, report: Report) -> None:
    streams = [_stream(served) for _ in range(_PAGES)]
    time.sleep(1.0)
    before = time.process_time()
    time.sleep(_REST)
    used = (time.process_time() - before) / _REST * 100
    report.value(f"{_PAGES} open pages: CPU of the daemon at rest", used, "% of a core", aim=5)
    for stream in streams:
        stream.close()


def _stream(served: Served) -> ClientConnection:
    """The connection that an open page holds: a device of its own that follows the events."""
    code = served.over_socket.offer_device(OfferDevice()).code
    connection = http.client.HTTPConnection("127.0.0.1", served.port)
    connection.request("POST", "/web/login", json.dumps({"code": code, "name": "bench"}), _PAGE_HEADERS)
    answer = connection.getresponse()
    secret = json.loads(answer.read())["secret"]
    connection.close()
    url = f"http://127.0.0.1:{served.port}"
    socket = url.replace("http", "ws", 1) + f"/ws/events?after={served.board.last_event}"
    # Nothing reads what arrives: the devices that are let in later are events, too.
    return connect(
        socket, origin=Origin(url), subprotocols=[Subprotocol("legion"), Subprotocol(secret)], max_queue=None
    )
