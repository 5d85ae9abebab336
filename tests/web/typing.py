"""What tests of the keyboard share: real clicks, and the requests that a page sent."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, Request

_READS = ("/v1/mail", "/v1/leader/conversation", "/v1/output", "/web/")


class Requests:
    """The requests of a page: `changes` are those that change something."""

    def __init__(self, page: Page) -> None:
        self.changes: list[str] = []
        self._open: set[Request] = set()
        page.on("request", self._begin)
        page.on("requestfinished", self._end)
        page.on("requestfailed", self._end)

    def _begin(self, request: Request) -> None:
        self._open.add(request)
        place = re.sub(r"^https?://[^/]+|\?.*", "", request.url)
        if request.method != "GET" and not place.startswith(_READS):
            self.changes.append(f"{place} {request.post_data}")

    def _end(self, request: Request) -> None:
        self._open.discard(request)

    def until_answered(self, page: Page) -> None:
        for _ in range(1000):
            page.wait_for_timeout(10)
            if not self._open:
                return
        raise AssertionError(f"never answered: {[one.url for one in self._open]}")


def click(page: Page, one: Locator) -> None:
    """With the mouse, at the element's middle."""
    one.evaluate("one => one.scrollIntoView({ block: 'center' })")
    box = one.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)


def focused(page: Page) -> str:
    """What is in the text box that has the focus."""
    element = "document.activeElement"
    return str(page.evaluate(f"{element}.value ?? `no box: ${{{element}.outerHTML.slice(0, 80)}}`"))
