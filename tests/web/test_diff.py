"""A change on the page: comments stay on their line, and a large change is drawn where one looks."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from legion.wire.ticket_pages import Diff
from tests.api.serving import Served
from tests.web.conftest import Visitor
from tests.web.contents import at_gate
from tests.web.typing import click

SHORTER = """diff --git a/README.md b/README.md
--- a/README.md
+++ b/README.md
@@ -1,5 +1,3 @@
 one
 two
-three
-four
 five
"""
DELETED = """diff --git a/old.txt b/old.txt
deleted file mode 100644
--- a/old.txt
+++ /dev/null
@@ -1,1 +0,0 @@
-gone
"""
QUOTED = 'diff --git "a/quote\\"d \\303\\274.txt" "b/quote\\"d \\303\\274.txt"\n--- "a/x"\n@@ -0,0 +1 @@\n+new\n'


def _show(served: Served, text: str) -> None:
    served.board.callers.instead["diff"] = Diff(ticket=20, base="", head="", text=text, live=False)


def _open(visitor: Visitor, served: Served, text: str) -> Page:
    at_gate(served, 20)
    _show(served, text)
    page = visitor.enter()
    visitor.open("ticket/20/diff")
    expect(page.locator(".file").first).to_be_visible()
    return page


@pytest.mark.parametrize(
    ("change", "line", "feedback"),
    [
        (SHORTER, "removed line 3", "README.md:3 (a removed line): Why was this removed?\n    > three"),
        (SHORTER, "line 3", "README.md:3: Why was this removed?\n    > five"),
        (DELETED, "removed line 1", "old.txt:1 (a removed line): Why was this removed?\n    > gone"),
    ],
)
def test_a_comment_is_about_the_line_that_was_pressed(
    change: str, line: str, feedback: str, visitor: Visitor, served: Served
):
    page = _open(visitor, served, change)
    pressed = page.get_by_label(f"Comment on {line}", exact=True)
    click(page, pressed)
    box, number = page.get_by_label("Comment", exact=True).bounding_box(), pressed.bounding_box()
    assert box is not None
    assert number is not None
    assert 0 < box["y"] - number["y"] < 40
    page.keyboard.type("Why was this removed?")
    page.keyboard.press("Escape")
    expect(page.locator(".comment")).to_have_text("Why was this removed?")
    click(page, page.get_by_role("button", name="Send back with all comments"))
    expect(page.locator(".comment")).to_have_count(0)
    assert feedback.split("\n    ") == [line.strip() for line in served.board.tickets[20].feedback.splitlines()[2:]]


def test_a_comment_is_never_on_another_text_than_it_was_written_on(visitor: Visitor, served: Served):
    page = _open(visitor, served, SHORTER)
    click(page, page.get_by_label("Comment on line 3", exact=True))
    page.keyboard.type("Five is wrong.")
    page.keyboard.press("Escape")
    _show(served, SHORTER.replace(" five", "+FIVE"))
    page.reload()
    expect(page.locator(".diff > .comment")).to_contain_text("> five")
    expect(page.locator(".diff > .comment")).to_contain_text("not in the change any more")
    expect(page.locator(".lines .comment")).to_have_count(0)


def test_a_click_on_the_code_selects_its_line(visitor: Visitor, served: Served):
    page = _open(visitor, served, SHORTER)
    click(page, page.get_by_text("four", exact=True))
    expect(page.get_by_label("Comment on removed line 4")).to_be_focused()
    page.keyboard.press("c")
    page.keyboard.type("Keep four.")
    page.keyboard.press("Escape")
    expect(page.locator(".diff-line", has_text="four").locator("+ .comment")).to_have_text("Keep four.")


def test_a_name_that_git_quotes_is_shown_as_it_is(visitor: Visitor, served: Served):
    page = _open(visitor, served, QUOTED)
    expect(page.locator(".file h2")).to_contain_text('quote"d ü.txt')


def test_a_large_change_is_drawn_where_one_looks(visitor: Visitor, served: Served):
    lines = "".join(f"+line {n} of a generated file\n" for n in range(390))
    page = _open(
        visitor,
        served,
        "".join(f"diff --git a/f{n}.py b/f{n}.py\n+++ b/f{n}.py\n@@ -0,0 +1,390 @@\n{lines}" for n in range(60)),
    )
    expect(page.locator(".file")).to_have_count(60)
    expect(page.locator(".diff-line").first).to_be_visible(timeout=20_000)
    assert page.locator(".diff-line").count() < 1000
    assert page.locator(".file h2 button[aria-expanded=true]").count() == 5
    last = page.locator(".file").last
    click(page, last.locator("h2 button"))
    last.locator(".piece").last.scroll_into_view_if_needed()
    expect(last.get_by_text("line 389 of")).to_be_visible(timeout=20_000)
    assert page.locator(".diff-line").count() < 1000
    click(page, last.get_by_label("Comment on line 390", exact=True))
    page.keyboard.type("Too long.")
    page.keyboard.press("Escape")
    expect(page.locator(".comment")).to_have_text("Too long.")
