"""A browser with the page of a real service, for all tests of this folder."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, ViewportSize, sync_playwright

from legion.wire.web import OfferDevice
from tests.api.serving import Served, serving

# The first one has no windows: it loads a page with a quarter of the CPU.
CHROMIUM = next(filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "chromium-browser"))), None)
DESK = ViewportSize(width=1280, height=800)
PHONE = ViewportSize(width=390, height=844)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """For one file: its driver holds an event loop, and tests of other folders in this process need their own."""
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed: the page was not tried in a browser.")
    with sync_playwright() as driver:
        # Its sandbox does not work for root, nor in most containers.
        running = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture(scope="module")
def server() -> Iterator[Served]:
    before = os.environ.get("LEGION_CONFIG")
    with tempfile.TemporaryDirectory(prefix="legion-") as folder:
        os.environ["LEGION_CONFIG"] = str(Path(folder) / "config.toml")
        try:
            with serving(Path(folder)) as running:
                yield running
        finally:
            if before is None:
                del os.environ["LEGION_CONFIG"]
            else:
                os.environ["LEGION_CONFIG"] = before


@pytest.fixture
def served(server: Served) -> Served:
    server.board.reset()
    return server


class Visitor:
    """A person at a browser that was let in."""

    def __init__(self, context: BrowserContext, served: Served) -> None:
        self.context = context
        self.url = f"http://127.0.0.1:{served.port}"
        self.served = served
        self.faults: list[str] = []
        self.page = self.new_page()

    def new_page(self) -> Page:
        page = self.context.new_page()
        page.set_default_timeout(30_000)
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("console", self._note)
        return page

    def _note(self, message: ConsoleMessage) -> None:
        # A refused request is a sentence on the page, not a fault of it.
        refused = ("Failed to load resource", "WebSocket connection to")
        if message.type == "error" and not message.text.startswith(refused):
            self.faults.append(message.text)

    def enter(self, *, read_only: bool = False) -> Page:
        code = self.served.over_socket.offer_device(OfferDevice(read_only=read_only)).code
        self.page.goto(f"{self.url}/#code={code}")
        self.page.wait_for_selector(".connection.live")
        return self.page

    def open(self, view: str) -> Page:
        self.page.goto(f"{self.url}/#/{view}")
        return self.page


@pytest.fixture
def visitor(browser: Browser, served: Served) -> Iterator[Visitor]:
    context = browser.new_context(viewport=DESK)
    someone = Visitor(context, served)
    yield someone
    context.close()
    assert someone.faults == []
