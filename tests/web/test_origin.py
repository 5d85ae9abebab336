"""A browser's right is bound to one origin: a dev server on the same machine gets nothing that opens Legion."""

from __future__ import annotations

import http.client
import json
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from legion.wire.web import OfferDevice
from tests.api.serving import Served, serving
from tests.api.test_orchestra import PATIENCE
from tests.support.attacks import Attacker, Door, attack
from tests.web.conftest import DESK, Visitor

# What a page of an agent's server tries, with the port of Legion.
ATTEMPTS = """async (legion) => {
  const found = { stored: JSON.stringify({ ...localStorage }), cookies: document.cookie };
  const http = `http://127.0.0.1:${legion}`;
  const tries = {
    plain: [`${http}/v1/status`, {}],
    credentials: [`${http}/v1/status`, { credentials: "include" }],
    header: [`${http}/v1/status`, { credentials: "include", headers: { "legion-page": "1" } }],
    device: [`${http}/v1/status`, { credentials: "include", headers: { "legion-device": "x" } }],
    opaque: [`${http}/v1/status`, { credentials: "include", mode: "no-cors" }],
    post: [`${http}/v1/project/pause`, { method: "POST", credentials: "include", mode: "no-cors", body: "{}" }],
  };
  for (const [name, [url, options]] of Object.entries(tries)) {
    try {
      const answer = await fetch(url, options);
      found[name] = answer.type === "opaque" ? "opaque" : await answer.text();
    } catch (error) { found[name] = "refused"; }
  }
  for (const [name, protocols] of Object.entries({ socket: [], protocol: ["legion"], wrong: ["legion", "x"] })) {
    found[name] = await new Promise((resolve) => {
      const socket = new WebSocket(`ws://127.0.0.1:${legion}/ws/events`, protocols);
      socket.onopen = () => resolve("open");
      socket.onmessage = (event) => resolve(event.data);
      socket.onerror = () => resolve("refused");
    });
  }
  found.frame = await new Promise((resolve) => {
    const frame = document.createElement("iframe");
    frame.src = `${http}/`;
    const read = () => frame.contentWindow.localStorage.length;
    frame.onload = () => { try { resolve(read() + " kept"); } catch { resolve("refused"); } };
    document.body.append(frame);
  });
  return found;
}"""


class DevServer(ThreadingHTTPServer):
    """A server that an agent started: it keeps all that browsers send."""

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Kept)
        self.port: int = self.server_address[1]
        self.received: list[str] = []
        self.asked = threading.Event()
        threading.Thread(target=self.serve_forever, daemon=True).start()


class _Kept(BaseHTTPRequestHandler):
    server: DevServer

    def do_GET(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(length).decode("utf-8", "replace")
        self.server.received.append(f"{self.command} {self.path}\n{self.headers}\n{body}")
        self.server.asked.set()
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(b"<body>an app")

    do_POST = do_GET

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def dev_server(port: int = 0) -> Iterator[DevServer]:
    made = DevServer(port)
    try:
        yield made
    finally:
        made.shutdown()
        made.server_close()


def secret_of(visitor: Visitor) -> str:
    secret: str = visitor.page.evaluate("localStorage.getItem('legion.device')")
    assert len(secret) >= 40
    return secret


def status(port: int, headers: dict[str, str]) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("GET", "/v1/status", headers=headers)
        return connection.getresponse().status
    finally:
        connection.close()


@attack(Attacker.DEV_SERVER, Door.ORIGIN)
@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
def test_a_page_on_another_port_gets_nothing_that_opens_legion(browser: Browser, served: Served, name: str):
    context = browser.new_context(viewport=DESK)
    visitor = Visitor(context, served)
    visitor.enter()
    secret = secret_of(visitor)
    assert context.cookies() == []
    paused = served.over_socket.status(served.board.cwd).project
    with dev_server() as evil:
        page = context.new_page()
        page.goto(f"http://{name}:{evil.port}/")
        got = page.evaluate(ATTEMPTS, served.port)
        received = "\n".join(evil.received)
    assert secret not in received
    assert secret not in json.dumps(got)
    assert "legion" not in received.lower().replace("user-agent", "")
    expected = dict.fromkeys(("plain", "credentials", "header", "device", "socket", "protocol", "wrong"), "refused")
    assert {key: got[key] for key in expected} == expected
    assert (got["frame"], got["stored"], got["cookies"]) == ("refused", "{}", "")
    assert served.over_socket.status(served.board.cwd).project == paused
    context.close()


@attack(Attacker.DEV_SERVER, Door.ORIGIN)
def test_what_a_taker_of_the_old_port_gets_is_worth_nothing(browser: Browser):
    """The daemon starts again on another port; a program on the old one gets what the page kept there, all of it."""
    context = browser.new_context(viewport=DESK)
    with tempfile.TemporaryDirectory(prefix="legion-") as folder:
        with serving(Path(folder)) as before:
            visitor = Visitor(context, before)
            visitor.enter()
            secret, old = secret_of(visitor), before.port
        with dev_server(old) as evil, serving(Path(folder)) as after:
            # The page is still open, and tries to reach its daemon again.
            assert evil.asked.wait(PATIENCE)
            page = context.new_page()
            page.goto(f"http://127.0.0.1:{old}/app")
            assert page.evaluate("localStorage.getItem('legion.device')") == secret
            after.board.callers.end_devices_elsewhere([after.port])
            for host in (f"127.0.0.1:{old}", f"127.0.0.1:{after.port}", f"localhost:{after.port}", "127.0.0.1"):
                assert status(after.port, {"Host": host, "Legion-Device": secret}) in (401, 421)
            assert after.over_socket.devices().devices == []
            code = after.over_socket.offer_device(OfferDevice()).code
            page.goto(f"http://127.0.0.1:{after.port}/#code={code}")
            page.wait_for_selector(".connection.live")
    context.close()


@attack(Attacker.DEV_SERVER, Door.ORIGIN)
def test_a_cookie_of_an_older_release_is_gone_after_the_page_was_opened(visitor: Visitor, served: Served):
    names = ("legion", f"legion-{served.port}", "legion-6670")
    visitor.context.add_cookies([{"name": name, "value": "old", "url": visitor.url} for name in names])
    visitor.context.add_cookies([{"name": "prefs", "value": '{"a":1,"b":"x y"}', "url": visitor.url}])
    visitor.enter()
    assert [one.get("name") for one in visitor.context.cookies()] == ["prefs"]
    visitor.page.reload()
    visitor.page.wait_for_selector(".connection.live")
