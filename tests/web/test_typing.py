"""A real keyboard types into every box of every view, and a real mouse clicks every list: nothing is sent."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.api.serving import Served
from tests.support.attacks import Attacker, Door, attack
from tests.web.conftest import DESK, Visitor
from tests.web.contents import VIEWS, at_gate, fill
from tests.web.typing import Requests, click, focused

WORDS = "make it shorter, yes? synchronise now: Fix BCDHNPRS 135 /"
"""Every word begins with a key that acts, and `?`, digits and Space are keys, too."""
FEW = "my s1?"
"""For the other boxes of a view: one that leaks letters loses the first of them."""
TEXTS = ("make it shorter", "stop, yes", "sync", "my")
PLACES = ("ticket/11", "inbox", "board", "queue", "squad")
MEETING = [
    pytest.param(view, text, marks=() if number % len(TEXTS) == place % len(TEXTS) else pytest.mark.soak)
    for number, view in enumerate(PLACES)
    for place, text in enumerate(TEXTS)
]
"""Each view with one text; `make soak` has all."""
SLOWLY = 120
"""Milliseconds between two letters of a person who types."""
BOXES = "main :is(input:not([type=checkbox]), textarea):not([readonly]):enabled:visible"
OPENERS = "main [aria-expanded=false]:visible"
ITEMS = "main :is(.card, .row, .wagon .item, .question, .at-work, tr[tabindex], .project[tabindex]):visible"
MOST = 4
"""Openers of a view: the others are of the same kind."""


class Typist:
    """One browser for all tests of this file: none of them changes anything."""

    def __init__(self, visitor: Visitor) -> None:
        self.page = visitor.enter()
        self.requests = Requests(self.page)
        self._visitor = visitor

    def open(self, view: str) -> Page:
        """The view anew, with all that it reads. The view before it reads next to nothing."""
        page = self._visitor.open("usage/epic" if view == "mail" else "mail")
        page.wait_for_selector("main h1, main .tabs")
        self._visitor.open(view)
        page.wait_for_selector("main > :not(.unseen)")
        self.requests.until_answered(page)
        for summary in page.locator("main details:not([open]) > summary:visible").all():
            click(page, summary)
        return page

    def assert_nothing_sent(self) -> None:
        sent, self.requests.changes = self.requests.changes, []
        assert sent == []


@pytest.fixture(scope="module")
def typist(browser: Browser, server: Served) -> Iterator[Typist]:
    server.board.reset()
    fill(server)
    at_gate(server, 11)
    context = browser.new_context(viewport=DESK)
    visitor = Visitor(context, server)
    yield Typist(visitor)
    context.close()
    assert visitor.faults == []


@attack(Attacker.AGENT, Door.KEYS)
@pytest.mark.parametrize("view", VIEWS)
def test_what_is_typed_into_a_box_is_text(view: str, typist: Typist):
    page = typist.open(view)
    place = page.url
    for number in range(page.locator(BOXES).count()):
        box = page.locator(BOXES).nth(number)
        text = FEW if number else WORDS
        click(page, box)
        page.keyboard.press("Control+A")
        page.keyboard.type(text)
        assert focused(page) == text
        page.keyboard.press("Escape")
        expect(box).to_have_value(text)
        assert page.url == place
    typist.assert_nothing_sent()


@attack(Attacker.AGENT, Door.KEYS)
@pytest.mark.parametrize("view", [*VIEWS, "ticket/11", "ticket/11/diff", "ticket/5"])
def test_a_form_that_opens_has_the_focus_and_leaving_it_costs_nothing(view: str, typist: Typist):
    page = typist.open(view)
    names = [one.inner_text() or one.get_attribute("class") or "" for one in page.locator(OPENERS).all()]
    kinds = {re.sub(r"\d+", "1", name): number for number, name in reversed([*enumerate(names)])}
    place, fresh = page.url, True
    for number in [*kinds.values()][:MOST]:
        page = page if fresh else typist.open(view)
        click(page, page.locator(OPENERS).nth(number))
        typist.requests.until_answered(page)
        fresh = bool(page.locator(".writing :is(input, textarea)").count())
        if not fresh:
            continue
        page.keyboard.type(FEW)
        assert focused(page).endswith(FEW)
        page.keyboard.press("Escape")
        expect(page.locator(".writing")).to_have_count(0)
        assert page.url == place
        click(page, page.locator(OPENERS).nth(number))
        expect(page.locator(".writing")).to_have_count(1)
        assert focused(page).endswith(FEW)
        page.keyboard.press("Escape")
        expect(page.locator(".writing")).to_have_count(0)
    typist.assert_nothing_sent()


@attack(Attacker.AGENT, Door.KEYS)
@pytest.mark.parametrize("view", ["ticket/11", "ticket/11/diff"])
def test_no_key_acts_while_a_form_is_open_that_was_clicked_beside(view: str, typist: Typist):
    page = typist.open(view)
    place, form = page.url, page.locator(".writing :is(input, textarea)")
    for number in range(page.locator(OPENERS).count()):
        click(page, page.locator(OPENERS).nth(number))
        typist.requests.until_answered(page)
        if form.count():
            break
    expect(form).to_have_count(1)
    click(page, page.locator("h1:visible").first)
    page.keyboard.type(TEXTS[0])
    typist.assert_nothing_sent()
    expect(form).to_have_count(1)
    assert page.url == place


@attack(Attacker.AGENT, Door.KEYS)
@pytest.mark.parametrize(("view", "text"), MEETING)
def test_text_that_meets_no_box_changes_nothing(view: str, text: str, typist: Typist):
    page = typist.open(view)
    page.keyboard.press("j")
    page.keyboard.type(text, delay=SLOWLY)
    page.keyboard.press("Escape")
    typist.assert_nothing_sent()


@pytest.mark.parametrize("view", [*VIEWS, "ticket/11"])
def test_a_click_selects_or_opens_what_is_under_it(view: str, typist: Typist):
    page = typist.open(view)
    kinds = [str(one.get_attribute("class")).split()[0] for one in page.locator(ITEMS).all()]
    for number in sorted({kinds.index(kind) for kind in kinds}):
        page = typist.open(view) if number else page
        item = page.locator(ITEMS).nth(number)
        goal = item.get_attribute("href")
        expanded = item.get_attribute("aria-expanded")
        if goal is None and expanded is None:
            # Beside its buttons.
            box = item.bounding_box()
            assert box is not None
            page.mouse.click(box["x"] + 6, box["y"] + 6)
            assert item.evaluate("one => one.contains(document.activeElement)")
        else:
            click(page, item)
            if goal is not None:
                expect(page).to_have_url(re.compile(re.escape(goal)))
            elif expanded == "false":
                expect(page.locator("main [aria-expanded=true]").first).to_be_visible()
    typist.assert_nothing_sent()
