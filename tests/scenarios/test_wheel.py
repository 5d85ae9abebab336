"""A person takes over the conversation of a real Claude Code that works alone, and gives it back."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.scenarios.victims import Victims, Who, until
from tests.support.gates import Gate
from tests.support.models import Company, company
from tests.support.person_terminal import PersonTerminal

Person = Callable[..., PersonTerminal]


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    with company(tmp_path_factory.mktemp("wheel")) as one:
        yield one


@pytest.fixture
def person(here: Company) -> Iterator[Person]:
    opened = []

    def at(*words: str, **size: int) -> PersonTerminal:
        env = {
            **{name: value for name, value in os.environ.items() if not name.startswith("LEGION_")},
            "PYTHONPATH": str(Path(__file__).parents[2] / "src"),
            "LEGION_CONFIG": str(here.squad.settings),
            **here.squad.found_by(),
        }
        argv = [sys.executable, "-m", "legion", *words]
        opened.append(PersonTerminal(argv, cwd=Path(here.project.cwd), env=env, **size))
        return opened[-1]

    yield at
    for one in opened:
        one.close()


def working(here: Company, name: str) -> int:
    """A ticket whose agent has written a file and now thinks for a minute."""
    here.script(
        name,
        f"""
        [[step]]
        call = {{tool = "Bash", input = {{command = "echo alone >> {name}.txt"}}}}

        [[step]]
        delay = 60.0
        say = "Never said."
        """,
    )
    here.script(
        f"{name}-talked",
        f"""
        [[step]]
        call = {{tool = "Bash", input = {{command = "echo together >> {name}.txt"}}}}

        [[step]]
        say = "It is written."

        [[step]]
        expect = "A person took over this conversation"
        call = {{tool = "Bash", input = {{command = "echo alone again >> {name}.txt"}}}}

        [[step]]
        say = "Done."
        """,
    )
    ticket = here.dispatch(name)
    here.project.until_true(lambda: (here.project.worktree(ticket) / f"{name}.txt").exists())
    return ticket


def test_the_person_talks_with_the_agent_and_it_works_on_alone_with_what_was_said(here: Company, person: Person):
    ticket = working(here, "wheel")
    terminal = person("attach", str(ticket))
    terminal.shows("Ctrl-Q gives it back")
    terminal.shows("shortcuts|❯|>")
    terminal.type("rehearsal: wheel-talked")
    terminal.type("\r")
    terminal.shows("It is written")
    terminal.type("\x11")
    terminal.shows("works alone again")
    assert terminal.exit_code() == 0
    page = here.project.until(ticket, "done")
    assert here.project.landed("wheel.txt") == "alone\ntogether\nalone again\n"
    assert [run.outcome for run in page.runs] == ["interrupted", "interrupted", "finished"]
    assert {run.attempt for run in page.runs} == {1}


def at_the_wheel(here: Company, person: Person, name: str) -> tuple[int, PersonTerminal]:
    """The person has said something, and the conversation holds what the agent answered."""
    ticket = working(here, name)
    terminal = person("attach", str(ticket))
    terminal.shows("Ctrl-Q gives it back")
    terminal.shows("shortcuts|❯|>")
    terminal.type(f"rehearsal: {name}-talked")
    terminal.type("\r")
    terminal.shows("It is written")
    until(lambda: "It is written" in transcript(here, ticket), here, "the answer in the transcript")
    return ticket, terminal


def transcript(here: Company, ticket: int) -> str:
    (path,) = here.squad.data.root.glob(f"projects/*/agents/ticket-{ticket}/claude/projects/*/*.jsonl")
    return path.read_text()


@pytest.mark.parametrize(
    "who",
    [Who.DAEMON, Who.RUNNER, pytest.param(Who.EVERYTHING, marks=pytest.mark.soak)],
    ids=["daemon", "runner", "everything"],
)
def test_killed_at_the_wheel_nothing_is_lost_and_no_turn_runs_twice(here: Company, person: Person, who: Who):
    name = f"killed-{who.value}"
    ticket, terminal = at_the_wheel(here, person, name)
    Victims(here).kill(who, ticket)
    if who is Who.DAEMON:
        # The terminal is the runner's, so the person does not notice.
        terminal.type("\x11")
        terminal.shows("works alone again")
    terminal.exit_code()
    page = here.project.until(ticket, "done")
    assert here.project.landed(f"{name}.txt") == "alone\ntogether\nalone again\n"
    assert {run.attempt for run in page.runs} == {1}


def test_a_daemon_that_dies_before_the_agent_is_interrupted_keeps_the_wish(here: Company, person: Person):
    gate = Gate(here.squad.folder / "gates", "wish")
    pause = json.dumps(gate.pause)
    here.script(
        "wish",
        f"""
        [[step]]
        call = {{tool = "Bash", input = {{command = {pause}}}}}

        [[step]]
        call = {{tool = "Bash", input = {{command = "echo done > wish.txt"}}}}

        [[step]]
        say = "Done."
        """,
    )
    ticket = here.dispatch("wish")
    gate.arrived()
    # The agent is in the middle of a call, so the person waits.
    person("attach", str(ticket)).shows("Waiting for a safe moment")
    here.squad.kill()
    here.start()
    gate.open()
    here.project.until(ticket, "done")
    assert here.project.landed("wish.txt") == "done\n"
    assert len(here.project.ticket(ticket).runs) == 1
    gate.close()
