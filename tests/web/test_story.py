"""A person does all of it by clicks: trust, a ticket, a failure, a retry, a look at the change, collect."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Browser, expect

from legion.wire.web import OfferDevice
from tests.support.legion import squad
from tests.support.repository import Repository
from tests.web.conftest import PHONE

AGENT = 'if [ "$LEGION_ATTEMPT" = 1 ]; then echo BROKEN > a.txt; else echo fine > a.txt; fi; echo wrote a.txt'
PATIENCE = 60_000


def test_a_phone_is_enough_from_trust_to_collected_code(browser: Browser, tmp_path: Path):
    with squad(tmp_path) as one:
        repository = Repository(tmp_path / "ada")
        one.init(repository)
        page = browser.new_context(viewport=PHONE).new_page()
        page.set_default_timeout(PATIENCE)
        expect.set_options(timeout=PATIENCE)
        code = one.client.offer_device(OfferDevice()).code
        page.goto(f"{one.client.web_addresses().local}/#code={code}")
        page.get_by_role("link", name="Read and trust them").click()
        page.get_by_role("button", name="Trust what is shown").click()
        page.get_by_role("button", name="Yes").click()
        expect(page.get_by_role("button", name="Trust what is shown")).to_have_count(0)

        page.get_by_role("link", name="New ticket").click()
        page.get_by_label(re.compile("^title")).fill("Write a.txt")
        page.get_by_text("More fields").click()
        page.get_by_label(re.compile("^command")).fill(AGENT)
        page.get_by_label(re.compile("^max attempts")).fill("1")
        page.get_by_role("button", name="Create the ticket").click()
        state = page.locator(".path .state")
        expect(state).to_have_text("failed")
        page.get_by_role("link", name="Receipts").click()
        expect(page.locator(".receipt").first).to_contain_text("red")

        page.get_by_role("button", name="Retry").click()
        page.get_by_label(re.compile("^What should it do differently")).fill("No broken words.")
        page.get_by_role("button", name="Send", exact=True).click()
        expect(state).to_have_text("done")
        page.get_by_role("link", name="Live").click()
        expect(page.locator("pre.output").filter(has_text="wrote a.txt")).to_be_visible()
        page.get_by_role("link", name="Diff").click()
        expect(page.locator(".diff-line.added")).to_contain_text("fine")

        page.get_by_role("link", name="Board", exact=True).last.click()
        page.get_by_role("button", name="Collect").click()
        expect(page.get_by_role("button", name="Collect")).to_have_count(0)
        assert (repository.root / "a.txt").read_text() == "fine\n"
        page.context.close()
