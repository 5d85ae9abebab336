"""The page in a real browser: what a person sees and does, and what agents cannot do to it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import ViewportSize, expect

from legion.domain.events import EventKind
from legion.wire.providers import AddProvider
from legion.wire.web import OfferDevice, RevokeDevice
from tests.api.serving import Served
from tests.web.conftest import DESK, PHONE, Visitor
from tests.web.contents import EVIL, VIEWS, fill

SERIOUS_VIOLATIONS = """(place) => axe.run(place, { resultTypes: ["violations"] }).then((found) => found.violations
    .filter((one) => ["serious", "critical"].includes(one.impact))
    .map((one) => `${one.id}: ${one.nodes[0].html.slice(0, 150)}`))"""


def test_every_view_at_both_sizes_in_both_colours_shows_text_as_text_and_is_accessible(
    visitor: Visitor, served: Served, tmp_path: Path
):
    fill(served, EVIL)
    page = visitor.enter()
    page.evaluate(Axe().axe_script)
    faults: list[str] = []
    both = ("board", "inbox", "ticket/3", "ticket/2/diff", "new")
    looks: tuple[tuple[Literal["light", "dark"], ViewportSize], ...] = (("light", DESK), ("dark", PHONE))
    for position, view in enumerate(VIEWS):
        # Each is opened in the look that the one before ended with, and then changes to the other one.
        for scheme, size in looks if position % 2 == 0 else looks[::-1]:
            page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            page.set_viewport_size(size)
            is_new = not page.url.endswith(f"#/{view}")
            if is_new:
                visitor.open(view)
                page.wait_for_selector("main > :not(.unseen)")
            wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            if wide > 0:
                faults.append(f"{view} at {size['width']}: {wide} px too wide")
            if is_new or view in both:
                # What is around all views is looked at with some of them.
                place = "html" if view in both else "main"
                faults += [f"{view}, {scheme}: {one}" for one in page.evaluate(SERIOUS_VIOLATIONS, place)]
    assert not faults, "\n".join(faults)
    assert re.fullmatch(r"\(\d+\) Legion", page.title())
    assert page.locator("img, script:not([src])").count() == 0


def test_a_question_is_answered_in_two_taps_and_the_second_person_is_told(visitor: Visitor, served: Served):
    fill(served, EVIL)
    page = visitor.enter()
    page.get_by_role("link", name="Inbox").click()
    question = page.locator(".question", has_text="Try again?")
    box = question.get_by_role("button", name="leave").bounding_box()
    assert box is not None
    assert box["height"] >= 44
    second = visitor.new_page()
    second.goto(f"{visitor.url}/#/inbox")
    other = second.locator(".question", has_text="Try again?")
    expect(other).to_be_visible()
    # Nothing reaches the second page until it has answered, too: its connection is cut.
    second.route("**/v1/inbox", lambda route: route.abort())
    question.get_by_role("button", name="leave").click()
    expect(question).to_have_count(0)
    expect(page.get_by_role("link", name="Inbox").locator(".badge")).to_have_text("3")
    other.get_by_role("button", name="retry").click()
    expect(second.locator(".toast.error")).to_contain_text("already settled (leave)")
    assert served.board.question(2).choice == "leave"


def test_a_new_ticket_keeps_what_was_typed_and_appears_by_itself(visitor: Visitor, served: Served):
    page = visitor.enter()
    page.keyboard.press("n")
    page.locator("textarea").first.fill("Make the start faster.\nMeasure it.")
    page.goto(f"{visitor.url}/#/board")
    page.goto(f"{visitor.url}/#/new")
    expect(page.locator("textarea").first).to_have_value("Make the start faster.\nMeasure it.")
    page.get_by_label(re.compile("^after")).fill("99")
    page.get_by_role("button", name="Create the ticket").click()
    expect(page.locator("form .trouble")).to_contain_text("99")
    page.get_by_label(re.compile("^after")).fill("")
    page.get_by_role("button", name="Create the ticket").click()
    expect(page.locator("h1")).to_have_text("Make the start faster.")
    (ticket,) = served.board.tickets.values()
    assert ticket.spec.text == "Make the start faster.\nMeasure it."


def test_the_board_follows_events_and_a_burst_is_cheap(visitor: Visitor, served: Served):
    page = visitor.enter()
    expect(page.locator(".empty")).to_contain_text("No tickets yet")
    served.board.put(1, "First", "working")
    served.board.happen(1)
    expect(page.locator("section.column[aria-label=Working] .card")).to_contain_text("First")
    page.evaluate(
        "window.asked = 0; const real = fetch;window.fetch = (...all) => { window.asked += 1; return real(...all); }"
    )
    with served.board.store.write() as tx:
        for _ in range(1000):
            tx.record(EventKind.TICKET_REPORTED, project=1, ticket=1, data={})
    served.board.put(2, "Second", "queued")
    served.board.happen(2)
    expect(page.locator(".card", has_text="Second")).to_be_visible()
    assert page.evaluate("window.asked") <= 12


def test_tickets_are_dragged_where_that_is_legal(visitor: Visitor, served: Served):
    served.board.put(1, "Fails", "failed")
    served.board.put(2, "First change", "landing")
    served.board.put(3, "Second change", "landing")
    page = visitor.enter()
    queued, done = (page.locator(f"section.column[aria-label='{name}']") for name in ("Queued", "Ended"))
    page.locator(".card", has_text="Fails").drag_to(page.locator("section.column[aria-label=Landing]"))
    page.locator(".card", has_text="Fails").drag_to(queued)
    expect(page.locator("dialog[open]")).to_contain_text("#1 Fails")
    page.get_by_role("button", name="No").click()
    page.locator(".card", has_text="Fails").drag_to(queued)
    page.get_by_role("button", name="Yes").click()
    expect(queued.locator(".card")).to_contain_text("Fails")
    page.locator(".card", has_text="Second change").drag_to(page.locator(".card", has_text="First change"))
    expect(page.locator(".card", has_text="Second change")).to_contain_text("place 1 of 2")
    page.locator(".card", has_text="Fails").drag_to(done)
    page.get_by_role("button", name="Yes").click()
    expect(done.locator(".card")).to_contain_text("Fails")
    assert served.board.tickets[1].state.value == "stopped"


def test_what_has_no_view_is_a_form_under_all_actions(visitor: Visitor, served: Served):
    served.board.put(4, "Old title", "queued")
    page = visitor.enter()
    visitor.open("ticket/4")
    page.get_by_role("link", name="More", exact=True).click()
    # The description of all operations is made when the first browser asks for it.
    page.get_by_label("Filter actions").fill("change a ticket before", timeout=40_000)
    page.get_by_role("button", name="Change a ticket before it starts").click()
    page.get_by_label("title", exact=True).fill("New title")
    page.get_by_role("button", name="Do it").click()
    expect(page.locator(".answer")).to_contain_text("4")
    assert served.board.tickets[4].spec.title == "New title"


def test_only_what_the_daemon_offers_has_a_button(visitor: Visitor, served: Served):
    fill(served)
    page = visitor.enter()
    buttons = page.locator("main .actions > button, main form.line button")
    visitor.open("agent/ada")
    # It idles and has proposed no plan.
    expect(buttons).to_have_text(["Let it only lead", "Fire", "Send"])
    visitor.open("plan/1")
    # It is of a template: no planner takes it back.
    expect(buttons).to_have_text(["Approve all", "Drop", "Edit"])
    page.get_by_role("button", name="Drop").click()
    page.get_by_role("button", name="Yes").click()
    expect(buttons).to_have_count(0)


def test_comments_on_lines_go_back_to_the_agent_as_one_feedback(visitor: Visitor, served: Served):
    served.board.put(2, "Sign cookies", "landing")
    served.board.run(2)
    page = visitor.enter()
    visitor.open("ticket/2/diff")
    page.get_by_label("Comment on line 1").last.click()
    page.get_by_label("Comment", exact=True).fill("Say hello to everyone.")
    page.get_by_role("button", name="Keep").click()
    page.reload()
    expect(page.locator(".comment")).to_have_text("Say hello to everyone.")
    page.get_by_role("button", name="Send back with all comments").click()
    expect(page.locator(".toast")).to_be_visible()
    assert "README.txt:1: Say hello to everyone." in served.board.tickets[2].feedback


def test_output_is_followed_and_the_reader_stays_where_they_scrolled(visitor: Visitor, served: Served):
    served.board.put(1, "Talks", "working")
    run = served.board.run(1, "".join(f"line {n}\n" for n in range(200)), ended=False)
    page = visitor.enter()
    visitor.open("ticket/1")
    output = page.locator("pre.output")
    expect(output).to_contain_text("line 199")
    output.evaluate("element => { element.scrollTop = 0; }")
    served.board.print(run, "the last line\n")
    expect(output).to_contain_text("the last line")
    assert output.evaluate("element => element.scrollTop") == 0


def test_agents_at_work_show_their_last_lines_and_are_sent_messages(visitor: Visitor, served: Served):
    served.board.put(1, "Talks", "working")
    served.board.put(2, "Whispers", "working")
    run = served.board.run(1, "Reading the code\n", ended=False)
    served.board.run(2, "Nothing yet\n", ended=False)
    page = visitor.enter()
    page.keyboard.press("1")
    one = page.locator(".at-work", has_text="Talks")
    expect(one).to_contain_text("Reading the code")
    served.board.print(run, "Writing a test\n")
    expect(one.locator("pre")).to_contain_text("Writing a test")
    expect(page.locator(".at-work", has_text="Whispers")).to_be_visible()


def test_a_template_becomes_a_plan_that_is_edited_and_approved_in_parts(visitor: Visitor, served: Served):
    page = visitor.enter()
    page.keyboard.press("p")
    page.get_by_role("button", name=re.compile("^bug")).click()
    page.get_by_label(re.compile("^bug")).fill("The parser drops the last line")
    page.get_by_role("button", name="Make a plan of it").click()
    expect(page.locator("h1")).to_contain_text("The parser drops the last line")
    boxes = page.get_by_role("checkbox", name=re.compile("^Choose"))
    expect(boxes.first).to_be_visible()
    proposed = boxes.count()
    page.get_by_role("button", name="Edit").click()
    text = page.get_by_label("Its text")
    expect(text).to_be_enabled()
    text.fill(text.input_value().replace("drops the last line", "loses the last line"))
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".proposed", has_text="loses").first).to_be_visible()
    boxes.first.check()
    page.get_by_role("button", name="Approve 1 ticket").click()
    expect(page.locator(".proposed a[href^='#/ticket/']")).to_have_count(1)
    assert len(served.board.tickets) == 1
    expect(boxes).to_have_count(proposed - 1)


def test_a_leader_is_hired_and_written_to(visitor: Visitor, served: Served):
    page = visitor.enter()
    page.keyboard.press("c")
    page.get_by_role("button", name="Hire a leader").click()
    page.get_by_label("Write to leader").fill("Make the start faster.")
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".messages .mine").last).to_contain_text("Make the start faster.")


def test_windows_that_wait_take_none_of_the_six_connections_of_a_browser(visitor: Visitor, served: Served):
    served.board.put(1, "First", "working")
    served.board.run(1, "Reading", ended=False)
    page = visitor.enter()
    answered = page.evaluate(
        """async () => {
            const { events, get, outputRequests } = await import("/web/app/api.js");
            const streams = Array.from({ length: 7 }, () => events(0, new AbortController().signal));
            await Promise.all(streams.map((one) => one.next()));
            for (let n = 0; n < 7; n += 1) outputRequests().ask({ ticket: 1, seen: { 1: 1000 } }).catch(() => null);
            return (await get("/v1/status")).tickets.length;
        }"""
    )
    assert answered == 1


def test_a_browser_that_opens_no_socket_follows_by_requests(visitor: Visitor, served: Served):
    visitor.context.add_init_script(
        "const Real = WebSocket; window.WebSocket = function (url) { return new Real(url.replace('/ws/', '/none/')); };"
        "window.WebSocket.OPEN = Real.OPEN;"
    )
    served.board.put(1, "First", "working")
    served.board.run(1, "Reading", ended=False)
    page = visitor.enter()
    visitor.open("squad")
    expect(page.locator("pre.output")).to_contain_text("Reading")
    served.board.put(2, "Second", "working")
    served.board.happen(2)
    visitor.open("board")
    expect(page.locator(".card", has_text="Second")).to_be_visible()


def test_a_hidden_tab_gives_its_stream_up_and_resumes(visitor: Visitor, served: Served):
    visitor.context.add_init_script(
        "const real = setTimeout; window.setTimeout = (run, ms, ...all) => real(run, ms === 10000 ? 1 : ms, ...all);"
        "Object.defineProperty(document, 'hidden', { get: () => Boolean(window.away), configurable: true });"
    )
    with visitor.page.expect_websocket(lambda socket: "/ws/events" in socket.url) as opened:
        page = visitor.enter()
    with opened.value.expect_event("close"):
        page.evaluate("window.away = true; document.dispatchEvent(new Event('visibilitychange'))")
    served.board.put(1, "Meanwhile", "working")
    served.board.happen(1)
    with page.expect_websocket(lambda socket: "/ws/events" in socket.url):
        page.evaluate("window.away = false; document.dispatchEvent(new Event('visibilitychange'))")
    expect(page.locator(".card")).to_contain_text("Meanwhile")


def test_a_read_only_device_sees_no_buttons_and_a_revoked_one_is_out(visitor: Visitor, served: Served):
    fill(served, EVIL)
    page = visitor.enter(read_only=True)
    visitor.open("ticket/3")
    expect(page.locator("pre.output")).to_be_visible()
    assert page.locator(".actions button, form.line, .thumbs").count() == 0
    served.over_socket.revoke_device(RevokeDevice())
    expect(page.locator(".login")).to_contain_text("legion web")


def test_a_page_of_another_version_says_so(visitor: Visitor, served: Served):
    visitor.context.route(
        "**/v1/status*",
        lambda route: route.fulfill(
            response=(answer := route.fetch()), headers={**answer.headers, "legion-version": "9.9"}
        ),
    )
    page = visitor.enter()
    expect(page.locator(".banner")).to_contain_text("9.9")


def test_a_lost_connection_shows_what_was_known_and_comes_back(visitor: Visitor, served: Served):
    served.board.put(1, "First", "working")
    served.board.ask(1, ticket=1, words="May it run make")
    page = visitor.enter()
    expect(page.locator(".card")).to_contain_text("First")
    page.evaluate(
        """() => new Promise((done) => (navigator.serviceWorker.controller
            ? done() : navigator.serviceWorker.addEventListener("controllerchange", done)))"""
    )
    visitor.context.set_offline(True)
    page.reload()
    expect(page.locator(".banner.bad")).to_contain_text("Not connected")
    expect(page.locator(".card")).to_contain_text("First")
    visitor.open("inbox")
    expect(page.locator(".question")).to_contain_text("May it run make")
    expect(page.locator(".badge")).to_have_text("1")
    visitor.context.set_offline(False)
    page.wait_for_selector(".connection.live")


def test_the_link_opens_also_in_the_tab_that_says_that_this_browser_is_not_let_in(visitor: Visitor, served: Served):
    page = visitor.page
    page.goto(visitor.url)
    expect(page.locator(".login")).to_contain_text("legion web")
    code = served.over_socket.offer_device(OfferDevice()).code
    page.goto(f"{visitor.url}/#code={code}")
    page.wait_for_selector(".connection.live")
    assert code not in page.url


def test_a_rule_for_all_agents_is_shown_before_it_is_saved(visitor: Visitor, served: Served):
    served.board.put(1, "First", "working")
    served.board.ask(1, ticket=1, words="May it run", choices=("yes", "no", "always"), facts={"rule": "Bash(make *)"})
    page = visitor.enter()
    visitor.open("inbox")
    page.get_by_role("button", name="Always").click()
    expect(page.locator("dialog[open]")).to_contain_text("every agent may use this without asking: Bash(make *)")
    page.get_by_role("button", name="No", exact=False).last.click()
    expect(page.locator("dialog[open]")).to_have_count(0)
    assert served.board.question(1).settled_at is None


@pytest.mark.parametrize("width", [390, 761, 820, 1024, 1200])
def test_each_width_shows_whole_words_and_scrolls_only_what_is_wide(width: int, visitor: Visitor, served: Served):
    fill(served)
    served.over_socket.add_provider(AddProvider(name="models-at-home", url="http://127.0.0.1:6690/v1", no_key=True))
    page = visitor.enter()
    page.set_viewport_size({"width": width, "height": 1000})
    for view in ("board", "inbox", "queue", "models", "ticket/2/diff"):
        visitor.open(view)
        page.wait_for_selector("main > :not(.unseen)")
        if view == "models":
            page.get_by_role("button", name="Remove").wait_for(state="attached")
        assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0, view
    heights = {one.bounding_box()["height"] for one in page.locator("nav.main > a:visible").all()}  # type: ignore[index]
    assert len(heights) == 1


def test_the_board_is_as_it_was_left(visitor: Visitor, served: Served):
    for number in range(1, 30):
        served.board.put(number, f"Ticket {number} of many", "queued")
    page = visitor.enter()
    page.get_by_label("Filter tickets").press_sequentially("many")
    card = page.locator(".card").last
    card.scroll_into_view_if_needed()
    place = page.evaluate("window.scrollY")
    assert place > 0
    card.click()
    expect(page.locator("h1")).to_contain_text("of many")
    page.go_back()
    expect(page.get_by_label("Filter tickets")).to_have_value("many")
    expect(card).to_be_in_viewport()


def test_keys_move_and_open(visitor: Visitor, served: Served):
    fill(served, EVIL)
    page = visitor.enter()
    expect(page.locator(".card").first).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("#/ticket/"))
    page.keyboard.press("i")
    expect(page.get_by_label("Send a message to its agent")).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.press("f")
    expect(page).to_have_url(re.compile("/diff$"))
    page.keyboard.press("s")
    expect(page.get_by_text("Stop it?")).to_be_visible()
    page.keyboard.press("n")
    expect(page.get_by_text("Stop it?")).to_have_count(0)
    page.keyboard.press("3")
    expect(page.locator(".question")).to_have_count(3)
    page.keyboard.press("n")
    expect(page.locator(".toast")).to_contain_text("Select one first")
    page.keyboard.press("G")
    page.keyboard.press("n")
    expect(page.locator("dialog[data-ready]")).to_contain_text("Answer “leave”?")
    page.keyboard.press("y")
    expect(page.locator(".question", has_text="Try again?")).to_have_count(0)
    assert served.board.question(2).choice == "leave"


def test_another_site_cannot_use_the_browser(visitor: Visitor, served: Served, tmp_path: Path):
    """A page of another origin in the same browser: no request, frame or form of it has an effect."""
    served.board.put(1, "First", "working")
    visitor.enter()
    evil = visitor.context.new_page()
    visitor.context.route(
        "http://evil.test/", lambda route: route.fulfill(content_type="text/html", body=_attack(visitor.url))
    )
    evil.goto("http://evil.test/")
    evil.wait_for_function("window.finished === true")
    assert evil.evaluate("window.reached") == []
    assert served.board.tickets[1].state.value == "working"


def _attack(target: str) -> str:
    """Everything that a foreign page can try. `reached` holds the numbers of those that worked."""
    stop = f"{target}/v1/tickets/1/stop"
    tries = (
        f'fetch("{target}/v1/status", {{credentials: "include"}}).then((r) => r.text())',
        f'fetch("{stop}", {{method: "POST", credentials: "include", headers: {{"legion-page": "1"}}}})',
        f'fetch("{stop}", {{method: "POST", credentials: "include", mode: "no-cors"}}).then((r) => Promise.reject(r))',
        (
            f'new Promise((ok, no) => {{ const s = new WebSocket("{target}/ws".replace("http", "ws"));'
            " s.onopen = ok; s.onerror = no; })"
        ),
        (
            f'new Promise((ok, no) => {{ const f = document.createElement("iframe"); f.src = "{target}/";'
            " f.onload = () => { try { ok(f.contentWindow.document.body.innerHTML); } catch (e) { no(e); } };"
            " document.body.append(f); })"
        ),
    )
    calls = ", ".join(f"() => {one}" for one in tries)
    return f"""<iframe name="sink"></iframe>
    <form id="form" method="post" target="sink" enctype="text/plain" action="{stop}"><input name="{{}}"></form>
    <script>
    window.reached = [];
    document.getElementById("form").submit();
    const note = (one, n) => one().then(() => window.reached.push(n), () => null);
    Promise.all([{calls}].map(note)).then(() => {{ window.finished = true; }});
    </script>"""
