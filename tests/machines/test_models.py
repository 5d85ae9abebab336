"""Claude Code on a machine: its model is reached through the head's gateway, and so are the person's messages."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from legion.rehearsal.process import Playing
from legion.wire.mail import AnswerQuestion, MessageText
from legion.wire.plans import NewPlan
from legion.wire.providers import AddProvider
from tests.machines.workers import MachineHouse, WorkerProcess, machine_house
from tests.support.gates import Gate
from tests.support.legion import Project
from tests.support.looking import until_seen
from tests.support.models import KEY, RETRIES
from tests.support.readers import ALWAYS, approve
from tests.support.repository import Repository
from tests.support.stage import playing
from tests.support.stand_in import build

ANSWER = json.dumps(
    {
        "summary": "One file.",
        "tickets": [
            {
                "key": "first",
                "title": "Write first.txt",
                "new_files": ["first.txt"],
                "criteria": [{"text": "It is there", "proof": "[test]"}],
            }
        ],
    }
)


class Desk:
    """A head with a scripted provider, and two machines: `real` has Claude Code, `desk` the stand-in for it."""

    def __init__(self, house: MachineHouse, stage: Playing, folder: Path) -> None:
        self.house = house
        self.head = house.head
        self.scripts = folder / "scripts"
        self.head.client.add_provider(AddProvider(name="rehearsal", url=stage.url, key=KEY))
        # No login of the person who runs the tests may be found by chance.
        self.env = {"CLAUDE_CONFIG_DIR": str(folder / "none"), "ANTHROPIC_API_KEY": "", RETRIES: "3"}
        self.real = house.worker("real", labels=["real"], extra=self.env)
        self.env["PATH"] = build.path()
        self.worker = house.worker("desk", labels=["far"], extra=self.env)
        self.project = self.head.adopt(Repository(house.folder / "ada"))

    def script(self, name: str, *steps: str) -> None:
        (self.scripts / f"{name}.toml").write_text("\n".join(f"[[step]]\n{step}" for step in steps))

    def dispatch(self, script: str, project: Project | None = None, *, on: str = "far", **fields: object) -> int:
        text = f"rehearsal: {script}"
        return (project or self.project).dispatch(script, "", text=text, driver="claude", on=[on], **fields)

    def logs(self, ticket: int) -> tuple[object, ...]:
        page = self.project.ticket(ticket)
        workers = [worker.log[-2500:] for worker in (self.real, self.worker)]
        return page, self.head.log[-2500:], workers, self.project.log(ticket)[-1500:]


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    folder = tmp_path_factory.mktemp("models")
    (folder / "scripts").mkdir()
    with playing(folder / "scripts", folder) as stage, machine_house(folder / "house", lease=60.0) as house:
        yield Desk(house, stage, folder)


@pytest.fixture
def gate(desk: Desk, request: pytest.FixtureRequest) -> Iterator[Gate]:
    made = Gate(desk.house.folder / "gates", request.node.name[:40])
    yield made
    made.close()


def bash(command: str) -> str:
    return f'call = {{tool = "Bash", input = {{command = {json.dumps(command)}}}}}'


def transcripts(worker: WorkerProcess) -> list[str]:
    return [file.read_text() for file in worker.data.glob("projects/*/agents/**/*.jsonl")]


def test_claude_code_works_on_a_machine_without_a_key_there(desk: Desk, gate: Gate):
    heard = f'expect = "It must be blue"\n{bash("echo blue > colour.txt")}'
    desk.script("colour", bash(gate.pause), heard, 'say = "Done."')
    ticket = desk.dispatch("colour", on="real")
    gate.arrived()
    answers: list[object] = []
    telling = threading.Thread(
        target=lambda: answers.append(desk.head.client.tell(ticket, MessageText(text="It must be blue.")))
    )
    telling.start()
    until_seen(desk.head, lambda: any("It must be blue" in text for text in transcripts(desk.real)), "the message")
    gate.open()
    telling.join()
    assert answers, "the message was delivered"
    desk.project.until_settled(ticket)
    page = desk.project.ticket(ticket)
    assert page.ticket.state == "done", desk.logs(ticket)
    assert desk.project.landed("colour.txt") == "blue\n"
    assert [run.outcome for run in page.runs] == ["finished"]
    usage = desk.head.client.usage(desk.project.cwd)
    assert usage.total.usage.output > 0, usage
    # The pool of worktrees works on: a walk passes over a folder that is gone when it gets there.
    walked = [Path(folder, name) for folder, _, names in os.walk(desk.real.folder) for name in names]
    files = [file for file in walked if file.is_file()]
    assert [file for file in files if KEY.encode() in file.read_bytes()] == [], "the key is nowhere on the machine"


def test_tools_questions_and_interruptions_reach_a_run_on_a_machine(desk: Desk, gate: Gate):
    outside = desk.house.folder / "gates" / "outside.txt"
    desk.script(
        "asker",
        'call = {tool = "mcp__legion__legion-report", input = {status = "working", summary = "I have begun."}}',
        'call = {tool = "mcp__legion__legion-ask", input = {question = "What shall it hold?"}}',
        f"""expect = '"answer":"a poem"'
        call = {{tool = "Write", input = {{file_path = "{outside}", content = "x"}}}}""",
        bash(gate.pause),
        f'expect = "look at the tests first"\n{bash("echo a poem > asked.txt")}',
        'say = "Done."',
    )
    client = desk.head.client
    ticket = desk.dispatch("asker", ask=True)

    def question(word: str) -> int:
        def found() -> list[int]:
            return [one.id for one in client.inbox().questions if one.ticket == ticket and word in one.words]

        until_seen(desk.head, found, f"the question about {word}")
        return found()[0]

    client.answer(question("What shall it hold?"), AnswerQuestion(choice="a poem"))
    client.answer(question("Write"), AnswerQuestion(allowed=True))
    gate.arrived()
    assert outside.read_text() == "x"
    client.interrupt(ticket, MessageText(text="Stop that and look at the tests first."))
    desk.project.until_settled(ticket)
    page = desk.project.ticket(ticket)
    assert page.ticket.state == "done", desk.logs(ticket)
    assert [run.outcome for run in page.runs] == ["finished"]
    assert desk.project.landed("asked.txt") == "a poem\n"
    assert [event.data["summary"] for event in page.history if event.kind == "ticket.reported"] == ["I have begun."]


def test_a_reviewer_works_on_a_machine_and_what_it_opened_is_known(desk: Desk):
    project = desk.head.adopt(Repository(desk.house.folder / "reviewed", ALWAYS))
    mark = "echo 'rehearsal: reader' > long.mark; seq 1000000 1003000 > long.txt"
    desk.script("built", bash(mark), 'say = "Done."')
    said = f"say = {json.dumps(json.dumps(approve('long.txt', 'long.mark')))}"
    look = 'expect = "a part of: .long.txt"\ncall = {tool = "Read", input = {file_path = "{cwd}/long.txt"}}'
    desk.script("reader", said, look, said)
    ticket = desk.dispatch("built", project)
    project.until_settled(ticket)
    page = project.ticket(ticket)
    assert page.ticket.state == "done", (page, desk.head.log[-2500:], desk.worker.log[-2500:])
    roles = [run.role for run in page.runs]
    assert roles == ["", "reviewer", "reviewer"], [run.detail for run in page.runs]
    assert page.runs[-1].detail == "verdict: approve"
    assert "long.txt" in page.runs[1].detail, "what was cut short has to be opened"
    given = [one.run for one in desk.head.client.machine_log("desk").runs if one.ticket == ticket]
    assert [int(name.rpartition("-")[2]) for name in given] == [run.id for run in page.runs]
    assert not list(desk.worker.data.glob(f"worktrees/*/ticket-{ticket}-reviewer")), "its checkout is thrown away"


def test_a_planner_works_on_a_machine_while_the_head_builds(desk: Desk, gate: Gate):
    desk.house.worker("plain", slots=16, extra=desk.env)
    client, project = desk.head.client, desk.project
    # The machine has the code, and the head a builder: readers are kept away from those.
    project.until_settled(project.dispatch("warm", "echo warm > warm.txt", on=["plain"]))
    landed = time.time()
    until_seen(
        desk.head,
        lambda: (client.machine_log("plain").machine.heard_at or 0.0) > landed + 0.5,
        "a beat with its mirrors",
    )
    building = project.dispatch("build", f"{gate.pause}; echo b > b.txt", on=[client.machines().machines[0].name])
    gate.arrived()
    desk.script("planner", f"say = {json.dumps(ANSWER)}")
    made = client.plan(NewPlan(cwd=project.cwd, goal="rehearsal: planner"))
    number = int(made.plan.id.removeprefix("P"))
    until_seen(desk.head, lambda: client.plan_page(number).plan.state == "ready", "the plan")
    assert [one.key for one in client.plan_page(number).tickets] == ["first"]
    assert [one.state for one in client.machine_log("plain").runs if one.run.startswith("plan-")] == ["ended"]
    gate.open()
    project.until(building, "done")
