"""A conflict that two attempts could not resolve goes to the role `resolver`, in a fresh conversation."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from legion.wire.ticket_pages import TicketPage
from tests.scenarios.test_coupled import PARSER
from tests.scenarios.test_ladder import asked
from tests.support.gates import Gate
from tests.support.legion import new
from tests.support.models import Company, company

CONFIG = "[checks.test]\nrun = 'true'\n[agents]\nparallel = 4\n[reversal]\nproofs = 0\n[conflicts]\nlook_every = 0\n"
ADD = "sed -i 's/self, text/self, text, {}/' parser.py"
ONLY_MINE = "sed -i '/^<<<<<<<\\|^=======\\|^>>>>>>>/d; /text, milk)/d' parser.py"
BOTH = "sed -i '/^<<<<<<<\\|^=======\\|^>>>>>>>/d; s/self, text, [a-z]*)/self, text, milk, {})/' parser.py"


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Company]:
    files = {"parser.py": PARSER}
    with company(tmp_path, config=CONFIG, files=files, stand_in=True) as one:
        yield one


def gate(here: Company, name: str) -> Gate:
    return Gate(here.squad.folder / "gates", name)


def played(here: Company, gate: Gate, name: str, resolves: str, **fields: object) -> TicketPage:
    """Two attempts keep only their own side, which breaks what the landed ticket proved."""
    tries = (f"{gate.pause}; {ADD.format(name)}", ONLY_MINE, "echo again >> tried.txt", resolves)
    cases = " ".join(f"{number}) {command};;" for number, command in enumerate(tries, 1))
    call = json.dumps(f"case $LEGION_ATTEMPT in {cases} esac")
    here.script(name, f'[[step]]\ncall = {{tool = "Bash", input = {{command = {call}}}}}\n\n[[step]]\nsay = "Done."\n')
    mine = here.dispatch(name, prove=[f"grep -q {name} parser.py"], max_attempts=4, **fields)
    gate.arrived()
    milk = new("milk", ADD.format("milk"), text="Milk first.", prove=["grep -q milk parser.py"])
    (other,) = here.project.dispatch_all([milk])
    here.project.until(other, "done")
    gate.open()
    return here.project.ticket(mine)


def test_after_two_failed_resolutions_a_fresh_conversation_with_both_sides_resolves(here: Company):
    held = gate(here, "held")
    resolve = f"{held.pause}; {BOTH.format('lemon')}"
    mine = played(here, gate(here, "first"), "lemon", resolve).ticket.id
    held.arrived()
    here.squad.kill()
    here.squad.start()
    held.open()
    page = here.project.until(mine, "done")
    first, *_, last = asked(here, "lemon")
    assert [run.attempt for run in page.runs] == [1, 2, 3, 4]
    assert len({conversation for _, conversation in asked(here, "lemon")}) == 2
    assert first[1] != last[1]
    told = (here.squad.data.runs / f"ticket-{mine}-run-{page.runs[-1].id}" / "given/briefing.md").read_text()
    for words in ("has landed: milk", "Milk first.", "grep -q milk parser.py", "grep -q lemon parser.py"):
        assert words in told, words
    for version in ("self, text):", "self, text, milk):", "self, text, lemon):"):
        assert version in told, version
    assert "What others tried before you" in told
    assert ["the role resolver resolved" in run.detail for run in page.runs] == [False, False, False, True]
    assert "the role resolver resolved" in here.told("ticket", str(mine))
    assert "Resolved-By: resolver" in here.project.hub_git("log", "-1", "--format=%B", page.landed or "")
    assert "milk, lemon" in (here.project.landed("parser.py") or "")


def test_a_team_names_who_resolves_with_a_model_and_a_prompt_of_its_own(here: Company):
    role = 'part = "resolve"\nprompt = "You are the judge."\nmodel = "opus"\n'
    here.told("role", "new", "judge", "--from", "-", stdin=role)
    here.told("team", "new", "court", "--from", "-", stdin='roles = ["engineer", "judge"]\n')
    mine = played(here, gate(here, "first"), "lemon", BOTH.format("lemon"), team="court", model="haiku").ticket.id
    page = here.project.until(mine, "done")
    assert ["opus" in model for model, _ in asked(here, "lemon")] == [False, True]
    assert page.runs[-1].detail.endswith("the role judge resolved, with fresh eyes")
    assert "Resolved-By: judge" in here.project.hub_git("log", "-1", "--format=%B", page.landed or "")
