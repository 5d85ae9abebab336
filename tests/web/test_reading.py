"""What a person reads on the page: Markdown as text, cards with what their agent does, the change first on a phone."""

from __future__ import annotations

from playwright.sync_api import Browser, expect

from legion.domain.questions import QuestionKind
from legion.wire.ticket_pages import Diff
from tests.api.serving import Served
from tests.support.attacks import Attacker, Door, attack
from tests.web.conftest import PHONE, Visitor
from tests.web.contents import at_gate

WORDS = """Which **one**?

# Choices
- `sqlite`: one file
  and no server
- postgres
3. third

```
**as it is**
```
<b>no tag</b> [no link](javascript:alert(1)) ![no picture](http://127.0.0.1/x.png)"""
DIFF = "diff --git a/a.py b/a.py\n--- a/a.py\n+++ b/a.py\n@@ -0,0 +1,60 @@\n" + "+x\n" * 60


@attack(Attacker.AGENT, Door.TEXT)
def test_markdown_helps_reading_and_makes_nothing_that_can_be_pressed(visitor: Visitor, served: Served):
    served.board.put(1, "Store it", "working")
    served.board.ask(1, ticket=1, kind=QuestionKind.ASK, words=WORDS, choices=("sqlite", "postgres"))
    page = visitor.enter()
    visitor.open("inbox")
    text = page.locator(".question .text")
    expect(text.locator("b")).to_have_text(["one", "Choices"])
    expect(text.locator("ul li")).to_have_text(["sqlite: one file and no server", "postgres"])
    expect(text.locator("ol")).to_have_attribute("start", "3")
    expect(text.locator("pre")).to_have_text("**as it is**")
    expect(text.locator("p").last).to_contain_text("<b>no tag</b> [no link](javascript:alert(1)) ![no picture]")
    assert text.locator("a, img, button").count() == 0


def test_the_card_of_an_agent_at_work_counts_by_itself(visitor: Visitor, served: Served):
    served.board.put(1, "Store it", "working")
    served.board.prepare(served.board.run(1, ended=False))
    page = visitor.enter()
    about = page.locator(".card .about")
    expect(about).to_contain_text("agent at work, ")
    first = about.inner_text()
    expect(about).not_to_have_text(first)


def test_on_a_phone_the_change_comes_before_what_is_decided_about_it(browser: Browser, served: Served):
    at_gate(served, 1)
    served.board.ask(1, ticket=1, kind=QuestionKind.GATE, words="May it land?", choices=("land", "back", "stop"))
    served.board.callers.instead["diff"] = Diff(ticket=1, base="", head="", text=DIFF, live=False)
    context = browser.new_context(viewport=PHONE)
    visitor = Visitor(context, served)
    page = visitor.enter()
    visitor.open("ticket/1/diff")
    lines, land = page.locator(".lines").first, page.get_by_role("button", name="Land it")
    expect(lines).to_be_in_viewport()
    expect(land).to_be_in_viewport()
    box = lines.bounding_box()
    assert box is not None
    assert box["y"] < PHONE["height"] / 2
    context.close()
    assert visitor.faults == []
