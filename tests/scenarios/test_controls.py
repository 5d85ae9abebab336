"""Two of three readers, accounts at a limit, and a freeze, over a real daemon."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.support.gates import Gate
from tests.support.models import Company, company
from tests.support.readers import changes, finding
from tests.support.repository import CHECK
from tests.support.staff import Staff, bash

SECOND_KEY = "sk-ant-api03-second-login"


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    config = f"{CHECK}\n[review]\napprovals = 2\n"
    with company(tmp_path_factory.mktemp("hands"), config=config, stand_in=True) as one:
        yield one


def say(text: object) -> str:
    return f"say = {json.dumps(text if isinstance(text, str) else json.dumps(text))}"


def write(here: Company, kind: str, name: str, text: str) -> None:
    """A role or a team of the person's own."""
    folder = here.squad.settings.parent / kind
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.toml").write_text(text)


def test_a_change_lands_with_two_of_three_readers_and_the_third_is_heard_no_more(here: Company):
    for name, part in (("made", "build"), ("ann", "read"), ("bob", "read"), ("cyd", "read")):
        write(here, "roles", name, f'part = "{part}"\nprompt = "You are {name}. rehearsal: {name}"\n')
    write(here, "teams", "three", 'roles = ["made", "ann", "bob", "cyd"]\n')
    looks = 'call = {tool = "Read", input = {file_path = "{cwd}/read.txt"}}'
    approved = {"verdict": "approve", "summary": "Good.", "read": ["read.txt"]}
    refused = changes("read.txt", findings=[finding("read.txt", 1, "I do not like it.")])
    for name, verdict in (("ann", approved), ("bob", refused), ("cyd", approved)):
        here.script(name, f"[[step]]\n{looks}\n[[step]]\n{say(verdict)}\n")
    here.script("made", f"[[step]]\n{bash('echo read me > read.txt')}\n[[step]]\n{say('Done.')}\n")
    ticket = here.project.dispatch("Make it", "", text="A file to read.", team="three")
    page = here.project.until(ticket, "done")
    assert page.ticket.attempt == 1
    assert here.project.landed("read.txt") == "read me\n"
    assert {one.reader: one.verdict for one in page.reviews} == {"ann": "approve", "bob": "changes", "cyd": "approve"}


def test_a_standing_agent_that_was_frozen_in_its_turn_continues_when_all_is_thawed(here: Company):
    gate = Gate(here.squad.folder / "gates", "frozen")
    staff = Staff(here)
    staff.script("sue", f"{say('I begin.')}\n{bash(f'{gate.pause}; echo done')}", say("It is done."))
    staff.hire("sue")
    gate.arrived()
    assert "Everything is frozen" in here.told("freeze")
    here.project.until_true(lambda: not staff.lines()["sue"].working)
    held = here.project.dispatch("held", "echo held > held.txt")
    assert here.project.state(held) == "queued"
    gate.open(2)
    assert "Everything is thawed" in here.told("thaw")
    here.project.until(held, "done")
    staff.until_idle("sue")
    assert any("stopped all work for a while" in text for text in staff.conversation("sue"))
    assert staff.results("sue")
    staff.check()
    gate.close()


def test_a_429_leads_to_the_next_login_in_the_same_run(here: Company):
    here.told("account", "add", "second", "--of", "rehearsal", "--key-stdin", stdin=SECOND_KEY)
    limited = "status = 429\ntimes = 1\nlimit = {resets_in = 3000, utilization = 1.0}"
    room = f"{say('Done.')}\nlimit = {{resets_in = 3000, utilization = 0.1}}"
    here.script("walled", f"[[step]]\n{limited}\n{bash('echo 2 > second.txt')}\n[[step]]\n{room}\n")
    ticket = here.dispatch("walled")
    page = here.project.until(ticket, "done")
    assert [run.outcome for run in page.runs if not run.role] == ["finished"], "one run, which felt nothing of it"
    ledger = [line for line in here.stage.lines() if line.script == "walled"]
    assert [line.status for line in ledger][:2] == [429, 200]
    shown = here.told("account", "list")
    assert [line.split()[0] for line in shown.splitlines() if "limit reached" in line] == ["rehearsal"]
    assert [line.split()[0] for line in shown.splitlines() if "asked first" in line] == ["second"]
    before = len(ledger)
    here.script("after", f"[[step]]\n{bash('echo 3 > after.txt')}\n[[step]]\n{say('Done.')}\n")
    here.project.until(here.dispatch("after"), "done")
    assert {line.status for line in here.stage.lines() if line.script == "after"} == {200}
    assert len([line for line in here.stage.lines() if line.script == "walled"]) == before
