"""Characters that are invisible, or that change the order of others, are visible marks in all text of agents."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from legion.domain.text import hidden_in
from legion.wire.ticket_pages import Diff
from tests.api.serving import Served
from tests.support.attacks import Attacker, Door, attack
from tests.web.conftest import DESK, Visitor
from tests.web.contents import VIEWS, at_gate, fill

ODD = {
    **dict.fromkeys(
        "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c", "changes the direction"
    ),
    **dict.fromkeys("\u200b\u200c\u200d\u2060\u2061\ufeff\u00ad\u034f\u180e\u115f\u3164\uffa0\ufe00", "is not seen"),
    **dict.fromkeys("\U000e0041\U000e007f\U000e0100\ufff9\u2028\u2029", "is not seen"),
    **dict.fromkeys("\x01\x07\x08\x0b\x0c\x1b\x7f\x85\x9b", "controls a terminal"),
}
USUAL = ("می\u200cخواهم", "葛\U000e0100", "plain", "a\tb", "one\r\ntwo", "ends\r", "Grüße, 日本語, שלום", "👩‍👧 ❤️ 👍🏽")
UNMARKED = """(odd) => {
    const shown = ["title", "aria-label", "placeholder"];
    const texts = [document.title];
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT);
    while (walk.nextNode()) {
        if (walk.currentNode.nodeType === Node.TEXT_NODE) texts.push(walk.currentNode.data);
        else for (const name of shown) texts.push(walk.currentNode.getAttribute(name) ?? "");
    }
    return texts.filter((text) => [...odd].some((one) => text.includes(one)));
}"""


@pytest.fixture(scope="module")
def page(browser: Browser, server: Served) -> Iterator[Page]:
    server.board.reset()
    text = "".join(one for one in ODD if one not in "\x01\x07\x08\x0b\x0c")
    fill(server, f"user {text} admin")
    context = browser.new_context(viewport=DESK)
    visitor = Visitor(context, server)
    yield visitor.enter()
    context.close()
    assert visitor.faults == []


@attack(Attacker.AGENT, Door.TEXT)
@pytest.mark.parametrize("view", VIEWS)
def test_no_view_shows_a_text_with_characters_that_are_not_seen(view: str, page: Page):
    page.goto(f"{page.url.partition('#')[0]}#/{view}")
    page.wait_for_selector("main > :not(.unseen)")
    page.wait_for_load_state("networkidle")
    assert page.evaluate(UNMARKED, "".join(ODD)) == []


@attack(Attacker.AGENT, Door.TEXT)
@pytest.mark.parametrize("character", ODD, ids=lambda one: f"U+{ord(one):04X}")
def test_each_of_them_has_a_mark(character: str, page: Page):
    marked = page.evaluate("(text) => import('/web/app/odd.js').then(({ split }) => split(text))", f"a{character}b")
    assert marked == ["a", f"U+{ord(character):04X}", "b"]


@pytest.mark.parametrize("text", USUAL)
def test_text_of_people_has_none(text: str, page: Page):
    assert page.evaluate("(text) => import('/web/app/odd.js').then(({ split }) => split(text))", text) == [text]


CONTEXTS = ("a{}b", "\u0645{}\u062e", "\u0915{}\u0937", "\u845b{}", "\U0001f469{}\U0001f467", "\u2764{}", "1{}\u20e3")
REGION = "\U0001f3f4\U000e0067\U000e0062\U000e007f"


def test_the_page_marks_exactly_what_the_other_faces_mark(page: Page):
    """Every character alone, those that are hidden somewhere in every neighbourhood, and the flag of a region."""
    hides = "import('/web/app/odd.js').then(({ odd }) => "
    codes = page.evaluate(
        f"() => {hides} Array.from({{ length: 0x110000 }}, (_, n) => n)"
        ".filter((n) => (n < 0xd800 || n > 0xdfff) && odd(String.fromCodePoint(n)).length))"
    )
    every = (chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code <= 0xDFFF)
    assert codes == [ord(one) for one in every if hidden_in(one)]
    texts = [context.format(chr(code)) for code in codes for context in CONTEXTS]
    texts += [REGION, f"{REGION}\U000e007f", "one\rtwo", "one\r\ntwo", "ends\r"]
    found = page.evaluate(f"(texts) => {hides} texts.map((one) => odd(one)))", texts)
    assert found == [[f"U+{ord(one):04X}" for one in hidden_in(text)] for text in texts]


CHANGE = """diff --git a/login.py b/login.py
--- a/login.py
+++ b/login.py
@@ -1,2 +1,3 @@
 def role(user):
-    access = "user"
+    access = "user\u202e # admin only"
+    zero\u200bwidth = access
diff --git a/plain.py b/plain.py
--- a/plain.py
+++ b/plain.py
@@ -1 +1 @@
-old\u200b
+new
"""


@attack(Attacker.AGENT, Door.TEXT)
def test_a_change_that_adds_them_is_drawn_as_it_is_and_warns(visitor: Visitor, served: Served):
    at_gate(served, 20, "Fix login \u202egnp.exe now")
    served.board.callers.instead["diff"] = Diff(ticket=20, base="", head="", text=CHANGE, live=False)
    page = visitor.enter()
    visitor.open("ticket/20/diff")
    line = page.locator(".diff-line.added code").first
    expect(line).to_have_text('    access = "userU+202E # admin only"')
    expect(line.locator(".odd")).to_have_attribute("title", "right-to-left override")
    # Drawn from left to right: each character begins where the one before ends.
    assert line.evaluate(
        """(code) => {
            const range = document.createRange();
            const walk = document.createTreeWalker(code, NodeFilter.SHOW_TEXT);
            const places = [];
            while (walk.nextNode()) for (let n = 0; n < walk.currentNode.length; n += 1) {
                range.setStart(walk.currentNode, n);
                range.setEnd(walk.currentNode, n + 1);
                places.push(range.getBoundingClientRect().left);
            }
            return places.every((place, n) => n === 0 || place >= places[n - 1]);
        }"""
    )
    files = page.locator(".file")
    expect(files.first.locator(".trouble")).to_contain_text("U+202E right-to-left override, U+200B zero width space")
    expect(files.last.locator(".trouble")).to_have_count(0)
    expect(page.locator("h1")).to_have_text("Fix login U+202Egnp.exe now")
