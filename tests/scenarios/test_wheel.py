"""A person takes over the conversation of a Claude Code that works alone, and gives it back.

What the person sees and types into is always the real program. In one test it also works alone before and afterwards;
in the others a stand-in does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from websockets.sync.client import ClientConnection, connect

from tests.scenarios.victims import Victims, Who, until
from tests.support.gates import Gate
from tests.support.models import Company, company
from tests.support.person_terminal import PersonTerminal, terminals
from tests.support.staff import Staff

Person = Callable[..., PersonTerminal]
IMPATIENT = "\n[daemon]\nattach_timeout = 1.5\n"
"""A call that takes longer is cut off for a person."""


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    with company(tmp_path_factory.mktemp("wheel"), stand_in=True) as one:
        yield one


@pytest.fixture
def person(here: Company) -> Iterator[Person]:
    with terminals(here.squad, Path(here.project.cwd)) as one:
        yield one


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
    until(lambda: (here.project.worktree(ticket) / f"{name}.txt").exists(), here, "its file")
    return ticket


def test_a_standing_agent_is_taken_over_in_its_turn_and_while_it_idles(here: Company, person: Person):
    staff = Staff(here)
    write = 'call = {tool = "Bash", input = {command = "echo %s >> agent.txt"}}'
    here.script("tess", f'[[step]]\n{write % "alone"}\n[[step]]\ndelay = 60.0\nsay = "Never said."\n')
    report = 'call = {tool = "mcp__legion__legion-report", input = {status = "working", summary = "Seen by a person."}}'
    steps = (write % "together", report, 'say = "It is written."', write % "again", 'say = "All done."')
    staff.script("tess-talked", *steps)
    staff.hire("tess")
    tree = here.project.worktrees / "agent-1"
    until(lambda: (tree / "agent.txt").exists(), here, "its file")
    with here.using(None):
        terminal = person("attach", "tess")
        terminal.shows("Ctrl-Q gives it back")
        terminal.shows("shortcuts|❯|>")
    terminal.type("rehearsal: tess-talked")
    terminal.type("\r")
    terminal.shows("written")
    terminal.type("\x11")
    terminal.shows("tess works alone again")
    staff.until_idle("tess")
    assert (tree / "agent.txt").read_text() == "alone\ntogether\nagain\n", "its turn continues, with what was said"
    assert [one.text for one in staff.mail_of("tess") if one.sender_name == "tess"] == [
        "Report (working): Seen by a person.",
        "All done.",
    ]
    with here.using(None):
        terminal = person("attach", "tess")
        terminal.shows("Ctrl-Q gives it back")
    terminal.type("\x11")
    terminal.shows("tess works alone again")
    staff.until_idle("tess")
    assert staff.results("tess") == ["All done."], "an idle agent idles afterwards"


def test_a_page_takes_over_holds_on_over_a_reload_and_a_closed_tab_gives_it_back(here: Company):
    ticket = working(here, "paged")
    with here.using(None), on_the_page(here, ticket) as socket:
        until_printed(socket, "❯")
        socket.send(b"krehearsal: paged-talked")
        until_printed(socket, "paged-talked")
        socket.send(b"k\r")
        until_printed(socket, "It is written")
        socket.close(RELOADED)
    with on_the_page(here, ticket) as socket:
        until_printed(socket, "It is written")
        assert len(here.project.ticket(ticket).runs) == 2
        socket.close(RELOADED)
    page = here.project.until(ticket, "done")
    assert here.project.landed("paged.txt") == "alone\ntogether\nalone again\n"
    assert [run.outcome for run in page.runs] == ["interrupted", "interrupted", "finished"]


RELOADED = 1001
"""The code that a browser sends when its tab is closed or loaded again."""


def on_the_page(here: Company, ticket: int) -> ClientConnection:
    address = here.squad.client.web_addresses().local.replace("http", "ws")
    headers = {"Authorization": f"Bearer {here.squad.data.token.read_text().strip()}"}
    return connect(f"{address}/ws/tickets/{ticket}/terminal", additional_headers=headers, max_size=None, proxy=None)


def until_printed(socket: ClientConnection, words: str) -> None:
    seen = ""
    while words not in seen.replace("\x1b[1C", " "):
        message = socket.recv(60)
        seen += message[1:].decode("utf-8", "replace") if isinstance(message, bytes) else ""


def at_the_wheel(here: Company, person: Person, name: str) -> tuple[int, PersonTerminal]:
    """The person has said something, and the conversation holds what the agent answered."""
    ticket = working(here, name)
    with here.using(None):
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


@pytest.mark.parametrize("dies", [True, pytest.param(False, marks=pytest.mark.soak)], ids=["daemon-dies", "calm"])
def test_the_person_talks_with_the_agent_and_it_works_on_alone_with_what_was_said(
    here: Company, person: Person, dies: bool
):
    """Also if the daemon dies in between: the terminal is the runner's, so the person does not notice."""
    name = "wheel-dies" if dies else "wheel-calm"
    with here.using(None):
        ticket, terminal = at_the_wheel(here, person, name)
        if dies:
            Victims(here).kill(Who.DAEMON, ticket)
        terminal.type("\x11")
        terminal.shows("works alone again")
        assert terminal.exit_code() == 0
        page = here.project.until(ticket, "done")
    assert here.project.landed(f"{name}.txt") == "alone\ntogether\nalone again\n"
    assert [run.outcome for run in page.runs] == ["interrupted", "interrupted", "finished"]
    assert {run.attempt for run in page.runs} == {1}


@pytest.mark.parametrize(
    "who", [Who.RUNNER, pytest.param(Who.EVERYTHING, marks=pytest.mark.soak)], ids=["runner", "everything"]
)
def test_killed_at_the_wheel_nothing_is_lost_and_no_turn_runs_twice(here: Company, person: Person, who: Who):
    name = f"killed-{who.value}"
    ticket, terminal = at_the_wheel(here, person, name)
    Victims(here).kill(who, ticket)
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


def in_a_call(here: Company, name: str) -> tuple[int, Gate]:
    """A ticket whose agent is inside a call that returns when the gate opens; it is ready to talk about it."""
    gate = Gate(here.squad.folder / "gates", name)
    pause = json.dumps(f"{gate.pause} && echo alone >> {name}.txt")
    here.script(
        name,
        f"""
        [[step]]
        call = {{tool = "Bash", input = {{command = {pause}}}}}

        [[step]]
        say = "Done."
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
        say = "Done."
        """,
    )
    ticket = here.dispatch(name)
    gate.arrived()
    return ticket, gate


def test_a_call_that_takes_too_long_is_cut_off_once_and_the_conversation_opens(here: Company, person: Person):
    ticket, gate = in_a_call(here, "stuck")
    with here.using(None), here.squad.with_settings(here.squad.settings.read_text() + IMPATIENT):
        terminal = person("attach", str(ticket))
        terminal.shows("Waiting for a safe moment of the agent, [0-9]+s; Ctrl-C gives up")
        terminal.shows("Ctrl-Q gives it back")
        terminal.shows("shortcuts|❯|>")
    terminal.type("rehearsal: stuck-talked")
    terminal.type("\r")
    terminal.shows("It is written")
    terminal.type("\x11")
    terminal.shows("works alone again")
    page = here.project.until(ticket, "done")
    gate.close()
    assert here.project.landed("stuck.txt") == "together\n"
    assert [run.outcome for run in page.runs] == ["interrupted", "interrupted", "finished"]
    assert {run.attempt for run in page.runs} == {1}


def test_who_gives_up_waiting_leaves_the_call_alone_and_the_agent_finishes_in_the_same_run(
    here: Company, person: Person
):
    ticket, gate = in_a_call(here, "patient")
    terminal = person("attach", str(ticket))
    terminal.shows("Ctrl-C gives up")
    terminal.type("\x03")
    terminal.shows("works alone again")
    assert terminal.exit_code() == 130
    gate.open()
    page = here.project.until(ticket, "done")
    gate.close()
    assert here.project.landed("patient.txt") == "alone\n"
    assert [run.outcome for run in page.runs] == ["finished"]
