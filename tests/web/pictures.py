"""Pictures of the page: `python -m tests.web.pictures` draws those of docs/web.md, with a folder every view into it.

Look at what changed before you commit it.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, get_args

from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from legion.wire.web import OfferDevice
from tests.api.serving import Served, serving
from tests.support.codebase import ROOT
from tests.web.conftest import CHROMIUM, DESK, PHONE
from tests.web.contents import VIEWS, fill

DOCUMENTS = ROOT / "docs/pictures"
SETTLED = 700
"""Milliseconds: by then a view has read what it shows."""
Colours = Literal["light", "dark"]
SHOWN: dict[str, tuple[str, ViewportSize, Colours]] = {
    "web-board": ("board", DESK, "light"),
    "web-diff": ("ticket/2/diff", DESK, "dark"),
    "web-plan": ("plan/1", DESK, "light"),
    "web-queue": ("queue", DESK, "light"),
    "web-inbox": ("inbox", PHONE, "dark"),
}


def main() -> None:
    sizes, both = (("desk", DESK), ("phone", PHONE)), get_args(Colours)
    everything: dict[str, tuple[str, ViewportSize, Colours]] = {
        f"{name}-{colours}-{view.replace('/', '-')}": (view, size, colours)
        for name, size in sizes
        for colours in both
        for view in VIEWS
    }
    folder, wanted = (Path(sys.argv[1]), everything) if len(sys.argv) > 1 else (DOCUMENTS, SHOWN)
    folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory(prefix="legion-") as scratch,
        serving(Path(scratch)) as served,
        _browser() as browser,
    ):
        fill(served)
        pages: dict[tuple[int, Colours], Page] = {}
        for name, (view, size, colours) in wanted.items():
            page = pages.get((size["width"], colours)) or _visit(browser, served, size, colours)
            pages[size["width"], colours] = page
            page.goto(f"http://127.0.0.1:{served.port}/#/{view}")
            page.wait_for_selector("main > :not(.unseen)")
            page.wait_for_timeout(SETTLED)
            page.screenshot(path=folder / f"{name}.png")


@contextmanager
def _browser() -> Iterator[Browser]:
    with sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield running
        running.close()


def _visit(browser: Browser, served: Served, size: ViewportSize, colours: Colours) -> Page:
    page = browser.new_context(viewport=size, color_scheme=colours, reduced_motion="reduce").new_page()
    code = served.over_socket.offer_device(OfferDevice()).code
    page.goto(f"http://127.0.0.1:{served.port}/#code={code}")
    page.wait_for_selector(".connection.live")
    return page


if __name__ == "__main__":
    main()
