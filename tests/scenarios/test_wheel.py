"""A person takes over the conversation of a real Claude Code that works alone, and gives it back."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

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
