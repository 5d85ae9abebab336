"""No key acts while text is being written, and a key that acts asks first."""

from __future__ import annotations

import itertools
import re

import pytest
from playwright.sync_api import expect

from legion.domain.questions import QuestionKind
from legion.domain.tickets.ticket import State
from legion.wire.mail import AnswerQuestion
from tests.api.serving import Served
from tests.support.attacks import Attacker, Door, attack
from tests.support.sampling import sampled
from tests.web.conftest import Visitor
from tests.web.contents import at_gate, fill
from tests.web.typing import Requests, click, focused

OPENERS = ("Send back", "Comment on line 1", "Send back, of its question")
REJECTIONS = ("make it shorter", "missing test", "This drops rounding, yes?", "synchronise", "my s y m y")


@attack(Attacker.AGENT, Door.KEYS)
@pytest.mark.parametrize("typed", sampled(itertools.product(OPENERS, REJECTIONS), 4, lambda typed: typed[0]), ids=str)
def test_a_rejection_is_typed_and_nothing_lands(typed: tuple[str, str], visitor: Visitor, served: Served):
    opener, text = typed
    at_gate(served, 20)
    served.board.put(11, "Another one", "working")
    served.board.ask(1, ticket=11, kind=QuestionKind.GATE, words="Land it?", choices=("land", "back"))
    name, _, asks = opener.partition(", ")
    if asks:
        served.board.ask(2, ticket=20, kind=QuestionKind.GATE, words="Shall it land?", choices=("land", "back", "stop"))
    page = visitor.enter()
    requests = Requests(page)
    visitor.open("ticket/20/diff")
    click(page, page.get_by_role("button", name=name).last)
    page.keyboard.type(text)
    assert focused(page) == text
    assert requests.changes == []
    assert served.board.tickets[20].state.value == "parked"


@attack(Attacker.AGENT, Door.KEYS)
def test_a_box_that_an_agent_takes_away_under_the_hands_leaves_the_keys_off(visitor: Visitor, served: Served):
    served.board.put(1, "Talks", "working")
    run = served.board.run(1, "Reading\n", ended=False, driver="claude")
    page = visitor.enter()
    requests = Requests(page)
    visitor.open("ticket/1")
    # What it printed moves the box down.
    expect(page.locator(".output")).to_contain_text("Reading")
    box = page.get_by_label("Send a message to its agent")
    click(page, box)
    page.keyboard.type("Please ")
    served.board.end_run(run)
    served.board.put(1, state="parked")
    served.board.happen(1)
    expect(box).to_have_count(0)
    place = page.url
    page.keyboard.type("stop reading, 3 times now", delay=10)
    assert page.url == place
    expect(page.locator("dialog[open]")).to_have_count(0)
    expect(page.locator(".toast").first).to_contain_text("kept")
    page.keyboard.press("Escape")
    page.keyboard.press("s")
    expect(page.locator("dialog[open]")).to_contain_text("Stop it?")
    assert requests.changes == []


def test_a_message_for_one_ticket_does_not_follow_to_the_next(visitor: Visitor, served: Served):
    for number in (1, 2):
        served.board.put(number, f"Talks {number}", "working")
        served.board.run(number, "Reading\n", ended=False, driver="claude")
    page = visitor.enter()
    visitor.open("ticket/1")
    box = page.get_by_label("Send a message to its agent")
    click(page, box)
    page.keyboard.type("Only for the first.")
    visitor.open("ticket/2")
    expect(page.locator("h1")).to_have_text("Talks 2")
    expect(box).to_have_value("")
    visitor.open("ticket/1")
    expect(box).to_have_value("Only for the first.")


def test_a_key_asks_by_name_and_only_a_later_yes_confirms(visitor: Visitor, served: Served):
    at_gate(served, 20)
    page = visitor.enter()
    requests = Requests(page)
    visitor.open("ticket/20")
    expect(page.get_by_role("button", name="Land it")).to_be_visible()
    page.keyboard.press("m")
    asked = page.locator("dialog[open]")
    expect(asked).to_contain_text("Land it?")
    expect(asked).to_contain_text("#20 Waits at its gate")
    for key in ("y", "Enter", "Space"):
        page.keyboard.press(key)
    assert requests.changes == []
    expect(asked).to_have_count(1)
    page.keyboard.press("t")
    expect(asked).to_have_count(0)
    page.keyboard.press("m")
    expect(asked).to_have_attribute("data-ready", "")
    page.keyboard.press("y")
    expect(page.locator(".toast")).to_be_visible()
    assert [one.split()[0] for one in requests.changes] == ["/v1/tickets/20/land"]


def test_a_failure_and_a_plan_are_decided_in_the_inbox_with_two_keys_and_the_reason_is_text(
    visitor: Visitor, served: Served
):
    fill(served, "Log in")
    served.board.put(21, "Parse dates", "failed", reason="gave up")
    page = visitor.enter()
    requests = Requests(page)
    visitor.open("inbox")
    failed = page.locator(".question", has_text="Parse dates")
    click(page, failed.locator("header .flag").first)
    page.keyboard.press("y")
    asked = page.locator("dialog[data-ready]")
    expect(asked).to_contain_text("Try it again?")
    expect(asked).to_contain_text("#21 Parse dates")
    assert requests.changes == []
    page.keyboard.press("y")
    expect(failed).to_have_count(0)
    assert served.board.tickets[21].state is not State.FAILED
    plan = page.locator(".question", has_text="tickets to approve")
    click(page, plan.locator("header .flag").first)
    page.keyboard.press("y")
    expect(asked).to_contain_text("Its tickets are dispatched at once.")
    page.keyboard.press("n")
    expect(page.locator("dialog[open]")).to_have_count(0)


@attack(Attacker.AGENT, Door.NAMES)
def test_a_tap_that_meets_another_question_than_the_person_saw_answers_none(visitor: Visitor, served: Served):
    for number in (1, 2):
        served.board.put(number, f"Asks {number}", "working")
        kind = (QuestionKind.PERMISSION, QuestionKind.ATTEMPTS)[number - 1]
        served.board.ask(number, ticket=number, kind=kind, words=f"May it run {number}")
    page = visitor.enter()
    visitor.open("inbox")
    expect(page.locator(".question")).to_have_count(2)
    # The finger comes down in the moment in which the first question goes and the second takes its place.
    page.evaluate(
        """() => {
            const { x, y } = document.querySelector(".question .primary").getBoundingClientRect();
            new MutationObserver((_, watch) => {
                if (document.querySelectorAll(".question").length !== 1) return;
                watch.disconnect();
                document.elementFromPoint(x + 5, y + 5).click();
            }).observe(document.querySelector(".inbox"), { childList: true });
        }"""
    )
    served.over_socket.answer(1, AnswerQuestion(choice="no", why=""))
    expect(page.locator(".toast")).to_contain_text("press again")
    assert served.board.question(2).settled_at is None


MEETING = ("ticket/20", "ticket/20/diff", "actions/20/stop", "inbox", "queue", "board")


@attack(Attacker.PAGE, Door.KEYS)
@pytest.mark.parametrize("place", sampled(MEETING, 3))
def test_what_is_typed_for_another_site_that_opens_legion_acts_on_nothing(place: str, visitor: Visitor, served: Served):
    at_gate(served, 20)
    visitor.enter()
    visitor.context.route("http://evil.test/", lambda route: route.fulfill(content_type="text/html", body="<p>Type"))
    page = visitor.new_page()
    page.goto("http://evil.test/")
    requests = Requests(page)
    page.keyboard.type("say my")
    page.evaluate("(to) => { location.href = to; }", f"{visitor.url}/#/{place}")
    page.wait_for_selector(".connection.live")
    page.keyboard.type("my sysy s y m y", delay=60)
    assert requests.changes == []
    assert served.board.tickets[20].state.value == "parked"


def test_escape_never_leaves_legion(visitor: Visitor, served: Served):
    page = visitor.enter()
    fresh = visitor.new_page()
    fresh.goto(f"{visitor.url}/#/inbox")
    fresh.wait_for_selector(".connection.live")
    fresh.keyboard.press("Escape")
    expect(fresh).to_have_url(re.compile("#/board$"))
    # As fast as a held key repeats: before the first step is done.
    fresh.evaluate(
        """async () => {
            const stepped = new Promise((resolve) => addEventListener("popstate", resolve, { once: true }));
            for (let n = 0; n < 5; n++) {
                document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
            }
            await stepped;
        }"""
    )
    expect(fresh).to_have_url(re.compile("#/inbox$"))
    fresh.keyboard.press("Escape")
    expect(fresh).to_have_url(re.compile("#/board$"))
    page.close()
