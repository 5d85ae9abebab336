"""A person's words reach a working agent in the same run; an interruption keeps its conversation."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest

from tests.scenarios.victims import Victims, Who
from tests.support.gates import Gate
from tests.support.legion import PATIENCE, SOURCE
from tests.support.models import Company, company
from tests.support.warm import Forked, warm


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    with company(tmp_path_factory.mktemp("telling"), stand_in=True) as one:
        yield one


NUMBERS = itertools.count(1)


@pytest.fixture
def gate(here: Company) -> Iterator[Gate]:
    one = Gate(here.squad.folder / "gates", f"gate{next(NUMBERS)}")
    yield one
    one.close()


def waiting(here: Company, name: str, gate: Gate, expect: str) -> int:
    """A ticket whose agent stands at the gate first, and wants to have heard something before its second step."""
    command = gate.pause.replace("\\", "\\\\").replace('"', '\\"')
    here.script(
        name,
        f"""
        [[step]]
        say = "I wait."
        call = {{tool = "Bash", input = {{command = "{command}"}}}}

        [[step]]
        say = "Now I write."
        expect = "{expect}"
        call = {{tool = "Bash", input = {{command = "echo heard > {name}.txt"}}}}

        [[step]]
        say = "Done."
        """,
    )
    ticket = here.dispatch(name)
    gate.arrived()
    return ticket


class Command:
    """A command that takes its time."""

    def __init__(self, process: Forked, output: IO[str]) -> None:
        self.process = process
        self._output = output

    def end(self) -> tuple[int, str]:
        """Its exit code, and what it said."""
        code = self.process.wait(PATIENCE)
        with self._output:
            self._output.seek(0)
            return code, self._output.read()


def start(here: Company, *words: str) -> Command:
    env = {
        **{name: value for name, value in os.environ.items() if not name.startswith("LEGION_")},
        "PYTHONPATH": str(SOURCE),
        "LEGION_CONFIG": str(here.squad.settings),
        "LEGION_DATA_DIR": str(here.squad.data.root),
    }
    output = tempfile.TemporaryFile("w+")  # noqa: SIM115
    with Path(os.devnull).open() as nothing:
        handles = {0: nothing.fileno(), 1: output.fileno(), 2: 2}
        return Command(warm(SOURCE).start("legion", words, env, Path(here.project.cwd), handles), output)


def until(telling: Command, holds: Callable[[], bool]) -> None:
    """Look while the command runs."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline
        with contextlib.suppress(subprocess.TimeoutExpired):
            telling.process.wait(0.05)


def transcript(here: Company, ticket: int, role: str = "") -> str:
    """What Claude Code itself has written down of the conversation."""
    seat = f"ticket-{ticket}-{role}" if role else f"ticket-{ticket}"
    (path,) = Path(here.squad.data.root).glob(f"projects/*/agents/{seat}/claude/projects/*/*.jsonl")
    return path.read_text()


def test_words_reach_the_agent_between_two_steps_of_the_same_run(here: Company, gate: Gate):
    ticket = waiting(here, "told", gate, "the table is called users")
    telling = start(here, "tell", str(ticket), "By the way, the table is called users.")
    until(telling, lambda: "the table is called users" in transcript(here, ticket))
    gate.open()
    assert telling.end() == (0, f"The agent of ticket {ticket} has received it.\n")
    page = here.project.until(ticket, "done")
    assert len(page.runs) == 1
    assert here.project.landed("told.txt") == "heard\n"


def test_words_for_a_ticket_whose_adviser_works_reach_who_builds_too(here: Company, gate: Gate):
    roles = {"adviser": 'part = "advise"\ntools = ["Bash"]', "doer": 'part = "build"'}
    for name, about in roles.items():
        here.told("role", "new", name, "--from", "-", stdin=f'{about}\nprompt = "rehearsal: {name}"\n')
    here.told("team", "new", "advised", "--from", "-", stdin='roles = ["adviser", "doer"]\n')
    wait = f'call = {{tool = "Bash", input = {{command = {json.dumps(gate.pause)}}}}}'
    here.script("adviser", f'[[step]]\n{wait}\n[[step]]\nexpect = "It must be blue"\nsay = "Use a file."\n')
    write = 'call = {tool = "Bash", input = {command = "echo blue > colour.txt"}}'
    heard = "expect = '(?s)said meanwhile, which counts like the ticket.*It must be blue'"
    here.script("doer", f'[[step]]\n{heard}\n{write}\n[[step]]\nsay = "Done."\n')
    ticket = here.project.dispatch("Colour", "", text="Say a colour.", team="advised")
    gate.arrived()
    telling = start(here, "tell", str(ticket), "It must be blue.")
    until(telling, lambda: "It must be blue" in transcript(here, ticket, "adviser"))
    gate.open()
    assert telling.end() == (0, f"The agent of ticket {ticket} has received it.\n")
    page = here.project.until(ticket, "done")
    assert [run.role for run in page.runs] == ["adviser", ""]
    assert here.project.landed("colour.txt") == "blue\n"


def test_an_interruption_with_words_ends_the_step_and_the_run_goes_on(here: Company, gate: Gate):
    ticket = waiting(here, "turned", gate, "look at the tests first")
    done = here.cli("interrupt", str(ticket), "Stop that and look at the tests first.")
    assert (done.returncode, "has received it" in done.stdout) == (0, True)
    page = here.project.until(ticket, "done")
    assert [run.outcome for run in page.runs] == ["finished"]
    assert here.project.landed("turned.txt") == "heard\n"


def test_an_interruption_without_words_pauses_the_ticket_and_resume_goes_on_in_the_same_conversation(
    here: Company, gate: Gate
):
    ticket = waiting(here, "paused", gate, "interrupted")
    assert f"legion resume {ticket}" in here.told("interrupt", str(ticket))
    page = here.project.until(ticket, "parked")
    assert (page.runs[0].outcome, "legion resume" in page.ticket.reason) == ("interrupted", True)
    here.told("resume", str(ticket))
    page = here.project.until(ticket, "done")
    assert (page.ticket.attempt, [run.outcome for run in page.runs]) == (1, ["interrupted", "finished"])
    begun = [event.facts["resumed"] for event in here.journal(ticket) if event.kind == "conversation"]
    assert begun == [False, True]


def test_a_plain_program_and_a_ticket_at_rest_hear_nothing_and_say_so(here: Company, gate: Gate):
    ticket = here.project.dispatch("plain", f"{gate.pause}; echo a > plain.txt")
    gate.arrived()
    for command, missing in (("tell", "cannot take messages"), ("interrupt", "cannot be interrupted")):
        refused = here.cli(command, str(ticket), "hello")
        assert (refused.returncode, missing in refused.stderr) == (5, True)
    gate.open()
    here.project.until(ticket, "done")
    refused = here.cli("tell", str(ticket), "hello")
    assert (refused.returncode, "No agent works on" in refused.stderr) == (5, True)
    assert here.cli("tell", str(ticket), "  ").returncode == 2
    assert here.cli("tell", "4711", "hello").returncode == 3


def test_a_message_comes_from_stdin_too(here: Company, gate: Gate):
    ticket = waiting(here, "piped", gate, "from a pipe")
    done = here.squad.cli("interrupt", str(ticket), "-", cwd=Path(here.project.cwd), stdin="words from a pipe\n")
    assert done.returncode == 0
    here.project.until(ticket, "done")


def test_an_interruption_ends_the_run_although_words_wait(here: Company, gate: Gate):
    ticket = waiting(here, "both", gate, "the colour is blue")
    telling = start(here, "tell", str(ticket), "By the way, the colour is blue.")
    until(telling, lambda: "the colour is blue" in transcript(here, ticket))
    assert "is interrupted" in here.told("interrupt", str(ticket))
    page = here.project.until(ticket, "parked")
    assert [run.outcome for run in page.runs] == ["interrupted"]
    telling.end()
    here.project.stop(ticket)


def test_words_that_a_kill_cut_off_are_said_when_the_ticket_goes_on(here: Company, gate: Gate):
    ticket = waiting(here, "cut", gate, "the colour is green")
    telling = start(here, "tell", str(ticket), "By the way, the colour is green.")
    until(telling, lambda: "the colour is green" in transcript(here, ticket))
    Victims(here).kill(Who.RUNNER, ticket)
    _, said = telling.end()
    assert "ended before it received this; if the ticket continues, its next run gets it" in said
    page = here.project.until(ticket, "done")
    assert [run.outcome for run in page.runs] == ["lost", "finished"]
    assert here.project.landed("cut.txt") == "heard\n"
