"""Terminals on the page: a real agent and a real shell in a real browser, and the relay's limits."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from legion.api.terminals import WINDOW
from legion.wire.terminal import NewByHand
from legion.wire.web import OfferDevice
from tests.support.gates import Gate
from tests.support.legion import Project, adopted_project
from tests.support.models import company
from tests.web.conftest import DESK

PATIENCE = 30_000
TALK = (
    r"""sh -c 'printf "\033[38;2;1;200;3mgreen\033[0m\n\033]52;c;c3RvbGVu\007"; n=0;"""
    """ while read -r line; do n=$((n+1)); echo heard-$n-$line; done'"""
)
FLOOD = "sh -c 'read -r line; exec yes 0123456789012345678901234567890123456789012345678901234567890123456789'"

KEEP_SOCKETS = (
    "window.sockets = []; const Real = WebSocket;"
    "window.WebSocket = class extends Real { constructor(...all) { super(...all); window.sockets.push(this); } };"
)


@pytest.fixture(scope="module")
def project() -> Iterator[Project]:
    with adopted_project() as one:
        yield one


@pytest.fixture
def pages(browser: Browser, project: Project) -> Iterator[Pages]:
    made = Pages(browser, project)
    yield made
    for context in made.contexts:
        context.close()
    assert made.faults == []


class Pages:
    """Browsers that were let in."""

    def __init__(self, browser: Browser, project: Project) -> None:
        self._browser = browser
        self._client = project.squad.client
        self.url = self._client.web_addresses().local
        self.contexts: list[BrowserContext] = []
        self.faults: list[str] = []

    def enter(self, view: str, *, read_only: bool = False) -> Page:
        context = self._browser.new_context(viewport=DESK)
        self.contexts.append(context)
        context.add_init_script(KEEP_SOCKETS)
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("console", lambda message: self.faults.append(message.text) if message.type == "error" else None)
        code = self._client.offer_device(OfferDevice(read_only=read_only)).code
        page.goto(f"{self.url}/#code={code}")
        page.wait_for_selector(".connection.live")
        page.goto(f"{self.url}/#/{view}")
        return page


def together(project: Project, program: str) -> int:
    (ticket,) = project.squad.client.new_by_hand(NewByHand(cwd=project.cwd, name="Talk", program=program)).ids
    project.until(ticket, "working")
    return ticket


def shows(page: Page, text: str) -> None:
    expect(page.locator(".xterm-rows")).to_contain_text(re.compile(text), timeout=PATIENCE)


def test_no_row_and_no_column_of_a_terminal_is_cut_off(project: Project, pages: Pages):
    page = pages.enter(f"ticket/{together(project, TALK)}/terminal")
    page.get_by_role("button", name="Only look").click()
    page.wait_for_selector('.screen[data-news="open"]')
    for height in range(800, 820, 4):
        page.set_viewport_size({"width": 390 + height - 800, "height": height})
        page.evaluate("new Promise(requestAnimationFrame).then(() => new Promise(requestAnimationFrame))")
        over = page.locator(".xterm-screen").evaluate(
            "one => { const [drawn, box] = [one, one.closest('.screen')].map((part) => part.getBoundingClientRect());"
            " return [drawn.bottom - box.bottom, drawn.right - box.right]; }"
        )
        assert max(over) <= 0


def test_a_person_types_sees_the_echo_reloads_and_sees_it_again_while_another_only_looks(
    project: Project, pages: Pages
):
    ticket = together(project, TALK)
    page = pages.enter(f"ticket/{ticket}/terminal")
    loaded: list[str] = []
    page.on("request", lambda request: loaded.append(request.url))
    choice = page.get_by_role("button", name="Sit down at its agent")
    expect(choice).to_be_visible()
    assert not [url for url in loaded if "xterm" in url]
    choice.click()
    page.wait_for_selector('.screen[data-news="open"]')
    page.keyboard.type("one\n")
    shows(page, "heard-1-one")
    # Colours of a program are styles of elements, which the page's policy must not stop.
    assert page.locator(".xterm-rows span", has_text="green").first.evaluate("e => getComputedStyle(e).color") == (
        "rgb(1, 200, 3)"
    )
    page.reload()
    shows(page, "heard-1-one")
    page.wait_for_selector('.screen[data-news="open"]')
    page.keyboard.press("Escape")
    page.keyboard.type("two\n")
    shows(page, "heard-2-")
    looks = pages.enter(f"ticket/{ticket}/terminal", read_only=True)
    expect(looks.get_by_role("button", name="Only look")).to_be_visible()
    assert looks.get_by_role("button", name="Sit down").count() == 0
    looks.get_by_role("button", name="Only look").click()
    shows(looks, "heard-2-")
    looks.locator(".screen").click()
    looks.keyboard.type("never\n")
    page.keyboard.type("three\n")
    shows(looks, "heard-3-three")
    page.evaluate("window.sockets.at(-1).close(4000)")
    page.wait_for_selector('.screen[data-news="lost"]')
    page.wait_for_selector('.screen[data-news="open"]')
    page.keyboard.type("four\n")
    shows(page, "heard-4-four")
    page.get_by_role("button", name="Leave").click()
    expect(page.get_by_role("button", name="Sit down at its agent")).to_be_visible()
    assert project.squad.client.ticket(ticket).ticket.state == "working"
    project.squad.client.stop(ticket)


def test_a_shell_follows_the_size_of_the_page_and_lives_through_a_reload(project: Project, pages: Pages):
    ticket = project.dispatch("Fail", "echo found > note.txt; exit 1", max_attempts=1)
    project.until(ticket, "failed")
    page = pages.enter(f"ticket/{ticket}/terminal")
    page.get_by_role("button", name="Open a shell").click()
    page.wait_for_selector('.screen[data-news="open"]')
    page.keyboard.type("cat note.txt; kept=yes; echo size $(stty size)\n")
    shows(page, r"found[\s\S]*size \d+ \d+")
    page.set_viewport_size({"width": 700, "height": 500})
    page.keyboard.type("clear; echo now $(stty size)\n")
    shows(page, r"now \d\d? [5-9]\d\D")
    page.reload()
    page.wait_for_selector('.screen[data-news="open"]')
    page.keyboard.type("echo $kept-still\n")
    shows(page, "yes-still")
    page.keyboard.type("exit\n")
    expect(page.get_by_role("status").filter(has_text="exit code 0")).to_be_visible()


def test_who_waits_for_an_agent_inside_a_call_sees_it_and_gives_up_with_a_button(browser: Browser, tmp_path: Path):
    with company(tmp_path, stand_in=True) as here:
        gate = Gate(here.squad.folder / "gates", "call")
        pause = json.dumps(f"{gate.pause} && echo alone > alone.txt")
        here.script(
            "call",
            f"""
            [[step]]
            call = {{tool = "Bash", input = {{command = {pause}}}}}

            [[step]]
            say = "Done."
            """,
        )
        ticket = here.dispatch("call")
        gate.arrived()
        pages = Pages(browser, here.project)
        page = pages.enter(f"ticket/{ticket}/terminal")
        page.get_by_role("button", name="Sit down at its agent").click()
        expect(page.locator(".terminal [role=status]")).to_contain_text(
            re.compile(r"Waiting for a safe moment of the agent, [1-9]\d* s"), timeout=PATIENCE
        )
        page.get_by_role("button", name="Give up").click()
        expect(page.get_by_role("button", name="Sit down at its agent")).to_be_visible()
        gate.open()
        done = here.project.until(ticket, "done")
        assert [run.outcome for run in done.runs] == ["finished"]
        gate.close()
        pages.contexts[0].close()
        assert pages.faults == []


def opened(project: Project, ticket: int, **given: str) -> ClientConnection:
    squad = project.squad
    address = squad.client.web_addresses().local.replace("http", "ws")
    query = "&".join(f"{name}={value}" for name, value in given.items())
    headers = {"Authorization": f"Bearer {squad.data.token.read_text().strip()}"}
    return connect(f"{address}/ws/tickets/{ticket}/terminal?{query}", additional_headers=headers, max_size=None)


def notice(socket: ClientConnection) -> dict[str, str]:
    """The first one that says how it goes on."""
    while True:
        text = socket.recv(30)
        assert isinstance(text, str)
        known: dict[str, str] = json.loads(text)
        if known["news"] != "waiting":
            return known


def drain(socket: ClientConnection) -> tuple[int, str]:
    """Bytes of output until the daemon sends no more, and its last notice."""
    total, last = 0, ""
    with contextlib.suppress(TimeoutError, ConnectionClosed):
        while data := socket.recv(1.5):
            if isinstance(data, str):
                last = json.loads(data)["news"]
            else:
                total += len(data) - 1
    return total, last


def test_a_browser_that_draws_slowly_is_sent_a_window_then_cut_off_and_sees_the_present_again(project: Project):
    ticket = together(project, FLOOD)
    with opened(project, ticket) as socket:
        assert notice(socket)["news"] == "open"
        socket.send(b"kgo\n")
        sent, _ = drain(socket)
        assert WINDOW < sent < WINDOW + (1 << 19)
        socket.send(b"d" + sent.to_bytes(4))
        assert drain(socket)[1] in ("", "lost")
    with opened(project, ticket) as socket:
        assert notice(socket)["news"] == "open"
        assert drain(socket)[0] > WINDOW
    project.squad.client.stop(ticket)


def test_a_ticket_without_an_agent_is_refused_with_the_sentence_of_the_command_line(project: Project):
    ticket = project.dispatch("Fail again", "exit 1", max_attempts=1)
    project.until(ticket, "failed")
    with opened(project, ticket) as socket:
        assert (refusal := notice(socket))["news"] == "refused"
        assert f"No agent works on ticket {ticket}" in refusal["message"]
    with opened(project, ticket, only_looks="1") as socket:
        assert notice(socket)["news"] == "none"
