"""Agents use Legion: they call its tools over MCP, and the command line from its shell."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator

import pytest

from legion.client.http import DaemonAddress, DaemonConnection
from legion.domain.agents.tools import DESCRIPTIONS, OF_TICKETS, Tool
from legion.domain.events import EventKind
from legion.runner import control
from legion.runner.journal import JournalEvent, read_journal
from legion.runner.spec import read_spec
from legion.store import events
from legion.store.database.transactions import Store, sqlite_url
from legion.wire.errors import NotAllowed
from legion.wire.mail import QuestionLine, ReadMail
from tests.support.looking import until_seen
from tests.support.models import Company, company

MOST_LETTERS = 5800
"""Of all tools together, as the model reads them in every turn."""


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    with company(tmp_path_factory.mktemp("tools"), stand_in=True) as one:
        yield one


def hire(here: Company, script: str, *words: str) -> str:
    """An agent whose model plays this script; its id."""
    said = here.told("hire", f"rehearsal: {script}", "--name", script, *words)
    return said.split("Hired: ")[1].split()[0]


def parent(here: Company, name: str) -> str:
    return here.squad.client.agent(name).agent.parent


def until_result(here: Company, name: str) -> str:
    """What came to the person from this agent's turn."""

    def came() -> list[str]:
        found = here.squad.client.mail(ReadMail(all=True)).messages
        return [one.text for one in found if one.sender_name == name and one.kind == "result"]

    here.project.until_true(lambda: bool(came()))
    return came()[-1]


def journal(here: Company, id: str) -> list[JournalEvent]:
    """Everything that happened in an agent's turns, oldest first."""
    folders = [path for path in here.squad.data.runs.glob("agent-*-run-*") if (path / "spec.json").exists()]
    mine = [path for path in folders if read_spec(path).options.get("conversation") == id]
    return [event for folder in sorted(mine, key=lambda path: path.stat().st_ctime) for event in read_journal(folder)]


def returned(events: list[JournalEvent]) -> list[tuple[bool, str]]:
    """What its calls came to: whether they failed, and how their answer begins."""
    return [(bool(event.facts["failed"]), str(event.facts["head"])) for event in events if event.kind == "returned"]


def questions(here: Company, word: str) -> list[QuestionLine]:
    return [one for one in here.squad.client.inbox().questions if word in one.words]


def the_question(here: Company, word: str) -> QuestionLine:
    here.project.until_true(lambda: bool(questions(here, word)))
    (question,) = questions(here, word)
    return question


def test_all_tools_together_cost_few_tokens(capsys: pytest.CaptureFixture[str]):
    texts = {
        tool: json.dumps({"name": tool.value, "description": text.words, "input_schema": text.schema()})
        for tool, text in DESCRIPTIONS.items()
    }
    letters = sum(len(text) for text in texts.values())
    letters -= sum(len(texts[tool]) for tool in (Tool.ANSWER, Tool.NOTE, Tool.GOAL))
    of_tickets = sum(len(texts[tool]) for tool in OF_TICKETS)
    with capsys.disabled():
        print(f"\n{len(texts) - 3} tools: {letters} letters, about {letters // 4} tokens; of tickets {of_tickets // 4}")
    assert set(DESCRIPTIONS) == set(Tool)
    assert letters < MOST_LETTERS


def test_a_standing_agent_sees_itself_by_tool_and_by_command_line(here: Company):
    here.script(
        "looker",
        """
        [[step]]
        call = {tool = "mcp__legion__legion-status", input = {}}

        [[step]]
        expect = '"name":"looker","unread":\\[\\]'
        call = {tool = "Bash", input = {command = "legion status"}}

        [[step]]
        expect = 'You: looker \\(working\\)'
        call = {tool = "Bash", input = {command = "legion agents hire 'rehearsal: helped' --name helped"}}

        [[step]]
        expect = 'Hired: [0-9a-f-]{36}'
        call = {tool = "Bash", input = {command = "legion tell root 'from the shell'"}}

        [[step]]
        [step.call]
        tool = "Bash"
        input = {command = "legion dispatch --files legion.toml --max-attempts 1 'rehearsal: vandal'"}

        [[step]]
        say = "Seen."
        """,
    )
    here.script("helped", '[[step]]\nsay = "Helped."')
    here.script(
        "vandal",
        """
        [[step]]
        call = {tool = "Bash", input = {command = "echo >> legion.toml"}}

        [[step]]
        say = "Done."
        """,
    )
    id = hire(here, "looker")
    assert until_result(here, "looker") == "Seen."
    assert [failed for failed, _ in returned(journal(here, id))] == [False] * 5
    assert parent(here, "helped") == id
    assert "from the shell" in here.told("mail", "--all")
    (ticket,) = [line.id for line in here.squad.client.status(here.project.cwd, True).tickets if "vandal" in line.title]
    (asked,) = here.project.until(ticket, "parked").questions
    assert (asked.kind, "- legion.toml" in asked.words) == ("change", True)
    here.told("answer", str(asked.id), "no")
    assert "protected files (legion.toml)" in here.project.until(ticket, "failed").ticket.reason
    shown = here.told("mcp")
    assert json.loads(here.squad.data.daemon_record.read_text())["mcp"] in shown
    assert here.squad.data.token.read_text().strip() not in shown


def test_its_shell_cannot_be_anybody_else_or_do_what_is_the_persons(here: Company):
    data, token = here.squad.data.root, here.squad.data.token.read_text().strip()
    tries = [
        ("LEGION_SESSION_ID=root legion status", "cannot be used as 'root'"),
        ("LEGION_TOKEN=guessed legion status", "missing or wrong"),
        ("env -u LEGION_TOKEN legion status", "not running"),
        ("legion answer 4711 yes", "There is no question 4711"),
        ("legion trust", "not open to agents"),
        ("legion down", "not open to agents"),
        ("legion config", "not open to agents"),
        ("legion dispatch --command 'touch owned' x", "leave out command and driver"),
        (f"cat {data}/token {data}/legion.db 2>&1 | grep -c 'No such file'", "2"),
    ]
    steps = [
        f'[[step]]\ncall = {{tool = "Bash", input = {{command = {json.dumps(f"{command} 2>&1; true")}}}}}'
        for command, _ in tries
    ]
    here.script("thief", "\n".join([*steps, '[[step]]\nsay = "Nothing."']))
    id = hire(here, "thief")
    assert until_result(here, "thief") == "Nothing."
    heads = [head for _, head in returned(journal(here, id))]
    for (_, words), head in zip(tries, heads, strict=True):
        assert words in head
    assert not any(token in head for head in heads)
    with contextlib.closing(Store(sqlite_url(here.squad.data.database))) as store, store.read() as tx:
        refused = [event for event in events.after(tx, 0) if event.kind is EventKind.REFUSED]
    assert {event.data["caller"] for event in refused} == {id}


def test_a_question_waits_through_the_death_of_the_daemon_and_is_asked_once(here: Company):
    here.script(
        "doubter",
        """
        [[step]]
        call = {tool = "mcp__legion__legion-ask", input = {question = "Which colour?", choices = ["red", "blue"]}}

        [[step]]
        expect = '"answered":true,"answer":"blue","words":"As the sea."'
        call = {tool = "mcp__legion__legion-ask", input = {question = "Which colour?", choices = ["red", "blue"]}}

        [[step]]
        expect = '"answer":"blue"'
        say = "Blue it is."
        """,
    )
    hire(here, "doubter")
    question = the_question(here, "Which colour?")
    assert (question.kind, question.choices, question.ticket) == ("ask", ["red", "blue"], None)
    assert f"legion answer {question.id} blue" in here.told("inbox")
    here.squad.kill()
    here.start()
    wrong = here.cli("answer", str(question.id), "green")
    assert (wrong.returncode, "choose one of red, blue" in wrong.stderr) == (2, True)
    here.told("answer", str(question.id), "blue", "As the sea.")
    assert until_result(here, "doubter") == "Blue it is."
    assert questions(here, "Which colour?") == []


def test_what_is_called_while_there_is_no_daemon_counts_once_when_there_is_one(here: Company):
    gate = here.squad.folder / "gates" / "dead"
    here.script(
        "patient",
        f"""
        [[step]]
        call = {{tool = "Bash", input = {{command = "until test -e {gate}; do sleep 0.1; done"}}}}

        [[step]]
        call = {{tool = "mcp__legion__legion-hire", input = {{task = "rehearsal: late", name = "late"}}}}

        [[step]]
        expect = '"name":"late"'
        say = "Hired through the storm."
        """,
    )
    here.script("late", '[[step]]\nsay = "Late."')
    id = hire(here, "patient")
    begun = "that its call has begun"
    until_seen(here.squad, lambda: any(event.kind == "begins" for event in journal(here, id)), begun)
    here.squad.kill()
    gate.touch()
    wait_for(here, id, "mcp__legion__legion-hire")
    here.start()
    assert until_result(here, "patient") == "Hired through the storm."
    assert parent(here, "late") == id


def wait_for(here: Company, id: str, tool: str) -> None:
    """Without a daemon only the runner's own socket tells that a call has begun."""
    specs = {path: read_spec(path) for path in here.squad.data.runs.glob("agent-*-run-*")}
    (folder,) = [path for path, spec in specs.items() if spec.options.get("conversation") == id]
    with control.connect(folder, 60) as line:
        control.send(line, "follow")
        while not any(event.kind == "begins" and event.facts.get("tool") == tool for event in read_journal(folder)):
            assert line.recv(4096)


def test_the_agent_of_a_ticket_asks_and_reports_and_its_token_stays_in_the_runner(here: Company):
    here.script(
        "asker",
        """
        [[step]]
        call = {tool = "mcp__legion__legion-report", input = {status = "working", summary = "I have begun."}}

        [[step]]
        call = {tool = "mcp__legion__legion-ask", input = {question = "What shall it hold?"}}

        [[step]]
        expect = '"answer":"a poem"'
        call = {tool = "Bash", input = {command = "env; cat /proc/*/environ; cat > asked.txt <<< 'a poem'"}}

        [[step]]
        say = "Done."
        """,
    )
    ticket = here.dispatch("asker", ask=True)
    question = the_question(here, "What shall it hold?")
    assert question.ticket == ticket
    here.told("answer", str(question.id), "a poem")
    page = here.project.until(ticket, "done")
    assert here.project.landed("asked.txt") == "a poem\n"
    assert [e.data["summary"] for e in page.history if e.kind == "ticket.reported"] == ["I have begun."]
    run = here.squad.data.runs / f"ticket-{ticket}-run-{page.runs[-1].id}"
    token = read_spec(run).options["desk"]["token"]
    assert "LEGION_TOKEN" not in read_spec(run).program.env
    assert token not in (run / "output.log").read_text()
    with pytest.raises(NotAllowed, match="ended with its run"):
        DaemonConnection(DaemonAddress(socket=str(here.squad.data.socket), token=token)).ask("GET", "/v1/tools")


def test_an_agent_dispatches_and_its_ticket_lands(here: Company):
    here.script(
        "leader",
        """
        [[step]]
        call = {tool = "mcp__legion__legion-dispatch", input = {title = "Write it", text = "rehearsal: worker"}}

        [[step]]
        expect = '"ticket":\\d+'
        call = {tool = "mcp__legion__legion-check", input = {}}

        [[step]]
        expect = 'Write it'
        say = "Dispatched."
        """,
    )
    here.script(
        "worker",
        """
        [[step]]
        call = {tool = "Write", input = {file_path = "{cwd}/led.txt", content = "led\\n"}}

        [[step]]
        say = "Done."
        """,
    )
    hire(here, "leader", "--tools", "Read,Write")
    assert until_result(here, "leader") == "Dispatched."
    here.project.until_true(lambda: here.project.landed("led.txt") == "led\n")
    (ticket,) = [
        line.id for line in here.squad.client.status(here.project.cwd, True).tickets if line.title == "Write it"
    ]
    page = here.project.until(ticket, "done")
    spec = read_spec(here.squad.data.runs / f"ticket-{ticket}-run-{page.runs[-1].id}")
    assert sorted(spec.options["tools"]) == ["Read", "Write"]
