"""Real Claude Codes whose work is taken back to an earlier moment: tree and conversation together."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator

import pytest

from legion.rehearsal.log import Kind
from legion.wire.history import Happening
from legion.wire.tickets import Rewind
from tests.support.gates import Gate
from tests.support.models import Company, company

NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    with company(tmp_path_factory.mktemp("rewind")) as one:
        yield one


@pytest.fixture
def gate(here: Company) -> Iterator[Gate]:
    one = Gate(here.squad.folder / "gates", f"gate{next(NUMBERS)}")
    yield one
    one.close()


def bash(command: str) -> str:
    return f'call = {{tool = "Bash", input = {{command = {json.dumps(command)}}}}}'


def script(here: Company, name: str, *steps: str) -> str:
    here.script(name, "\n".join(f"[[step]]\n{step}" for step in steps))
    return name


def moments(here: Company, ticket: int) -> list[Happening]:
    found = here.squad.client.history(here.project.cwd, ticket=ticket, last=0)
    return [line for line in found.lines if line.rewind]


def rewind(here: Company, ticket: int, to: str, feedback: str = "") -> str:
    return here.squad.client.rewind(ticket, Rewind(to=to, feedback=feedback)).message


def steps(here: Company, name: str) -> list[tuple[str, int | None]]:
    """Which conversation asked for which step of the script, in order."""
    return [
        (line.conversation, line.step)
        for line in here.stage.lines()
        if line.script == name and line.kind is Kind.SCRIPTED
    ]


def conversations(here: Company, ticket: int) -> dict[str, str]:
    """The transcripts of the ticket's agent by conversation."""
    place = here.project.hub.parent / "agents" / f"ticket-{ticket}" / "claude/projects"
    return {path.stem: path.read_text() for path in place.glob("*/*.jsonl")}


def test_a_working_ticket_goes_back_to_its_first_write(here: Company, gate: Gate):
    name = f"back{next(NUMBERS)}"
    two = bash("echo two > two.txt; git add -A; git commit -qm 'My own'")
    script(here, name, bash("echo one > one.txt"), two, bash(gate.pause), 'say = "Done."')
    ticket = here.dispatch(name)
    gate.arrived()
    kept = moments(here, ticket)
    assert [one.data["tool"] for one in kept] == ["Bash", "Bash"]
    assert "--to" in here.told("events", str(ticket))
    tree = here.project.worktree(ticket)
    assert (tree / "two.txt").exists()
    script(here, name, bash("echo one > one.txt"), bash("ls > seen.txt"), 'say = "Done."')
    run = kept[0].run
    said = here.told("rewind", str(ticket), "--to", kept[0].rewind, "--feedback", "Leave two alone.")
    assert f"--to {run}`" in said, "how it is undone"
    here.project.until_settled(ticket)
    page = here.project.ticket(ticket)
    assert (page.ticket.state, page.ticket.attempt) == ("done", 2)
    assert here.project.landed("one.txt") == "one\n"
    assert here.project.landed("two.txt") is None
    seen = here.project.landed("seen.txt")
    assert seen is not None
    assert "one.txt" in seen
    assert "two.txt" not in seen
    (old, first), *_, (new, next_step), _ = steps(here, name)
    assert (first, next_step, new != old) == (1, 2, True), "the request after the rewind holds one answer and no more"
    told = conversations(here, ticket)
    assert "two.txt" in told[old]
    assert "two.txt" not in told[new], "what came after is not in the new conversation"
    assert "Leave two alone." in told[new]
    assert page.runs[0].outcome == "stopped"
