"""What a person typed is never lost, and never shows at another place."""

from __future__ import annotations

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from legion.wire.agents import HireAgent
from tests.api.serving import Served
from tests.web.conftest import PHONE, Visitor
from tests.web.contents import at_gate
from tests.web.typing import click, focused

TELL = "Send a message to its agent"
SLOW_ADDRESS = """
window.addEventListener("hashchange", (event) => {
  if (!window.held) return;
  event.stopImmediatePropagation();
  window.held.push(event);
}, true);
window.release = () => {
  const held = window.held;
  window.held = null;
  for (const { oldURL, newURL } of held) window.dispatchEvent(new HashChangeEvent("hashchange", { oldURL, newURL }));
};
"""
"""A busy browser: the address is another one before the page has heard of it."""


@pytest.fixture(autouse=True)
def _all_requests_seen(visitor: Visitor) -> None:
    """A page that has its service worker sends requests through it, where no test can hold them."""
    visitor.context.add_init_script("delete Navigator.prototype.serviceWorker;")


class Held:
    """Requests that are answered when a test says so."""

    def __init__(self, page: Page, pattern: str) -> None:
        self._page, self._pattern, self._answers = page, pattern, False
        self._held: list[Route] = []
        page.route(pattern, self._ask)

    def _ask(self, route: Route) -> None:
        if self._answers:
            route.continue_()
        else:
            self._held.append(route)

    def until(self, number: int) -> None:
        for _ in range(3000):
            if len(self._held) >= number:
                return
            self._page.wait_for_timeout(10)
        raise AssertionError(f"{self._pattern}: asked {len(self._held)} times")

    def answer(self) -> None:
        self._answers = True
        for one in self._held:
            one.continue_()


def talks(served: Served, *numbers: int) -> None:
    for number in numbers:
        served.board.put(number, f"Talks {number}", "working")
        served.board.run(number, "Reading\n" * 200, ended=False, driver="claude")


def top(box: Locator) -> int:
    place = box.bounding_box()
    assert place is not None
    return round(place["y"])


@pytest.mark.parametrize("phone", [False, True], ids=["desk", "phone"])
def test_a_box_stays_under_the_hand_while_output_arrives(visitor: Visitor, served: Served, phone: bool):
    talks(served, 1)
    page = visitor.enter()
    if phone:
        page.set_viewport_size(PHONE)
    log = Held(page, "**/v1/tickets/1/log?*")
    visitor.open("ticket/1")
    log.until(1)
    box = page.get_by_label(TELL)
    expect(box).to_be_visible()
    before = top(box)
    log.answer()
    expect(page.locator(".output")).to_contain_text("Reading")
    assert top(box) == before


def test_a_box_belongs_to_the_view_that_is_shown(visitor: Visitor, served: Served):
    at_gate(served, 1, "One")
    at_gate(served, 2, "Two")
    visitor.page.add_init_script(SLOW_ADDRESS)
    page = visitor.enter()
    visitor.open("ticket/1/about")
    expect(page.locator("h1")).to_have_text("One")
    page.evaluate("window.held = []")
    visitor.open("ticket/2/about")
    click(page, page.get_by_role("button", name="Send back"))
    page.keyboard.type("Only for the first.")
    page.evaluate("window.release()")
    expect(page.locator("h1")).to_have_text("Two")
    click(page, page.get_by_role("button", name="Send back"))
    assert focused(page) == ""
    visitor.open("ticket/1/about")
    expect(page.locator("h1")).to_have_text("One")
    click(page, page.get_by_role("button", name="Send back"))
    assert focused(page) == "Only for the first."


@pytest.mark.parametrize("away", [False, True], ids=["stays", "comes back"])
@pytest.mark.parametrize("answer", ["sent", "refused"])
def test_what_is_typed_while_a_message_is_sent_stays(visitor: Visitor, served: Served, away: bool, answer: str):
    for name in ("ada", "bea"):
        served.board.service.hire(HireAgent(task="Help.", name=name, cwd=served.board.cwd))
    page = visitor.enter()
    visitor.open("agent/ada")
    sends = Held(page, "**/v1/agents/tell")
    box = page.get_by_label("Send it a message")
    click(page, box)
    page.keyboard.type("Use tabs.")
    assert focused(page) == "Use tabs."
    page.keyboard.press("Enter")
    sends.until(1)
    if away:
        visitor.open("agent/bea")
        expect(page.locator("h1")).to_contain_text("bea")
        expect(box).to_have_value("")
        visitor.open("agent/ada")
        expect(box).to_have_value("Use tabs.")
        click(page, box)
        page.keyboard.press("End")
    page.keyboard.type(" And spaces")
    if answer == "refused":
        visitor.context.set_offline(True)
    sends.answer()
    expect(page.locator(".toast").first).to_be_visible()
    page.keyboard.type(" too.")
    expect(box).to_have_value("And spaces too." if answer == "sent" else "Use tabs. And spaces too.")
