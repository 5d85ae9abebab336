"""Claude Code on a machine: its model is reached through the head's gateway, and so are the person's messages."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from legion.rehearsal.process import Playing
from legion.wire.providers import AddProvider
from legion.wire.questions import MessageText
from tests.machines.workers import MachineHouse, WorkerProcess, machine_house
from tests.support.gates import Gate
from tests.support.legion import Project
from tests.support.looking import until_seen
from tests.support.models import KEY, RETRIES
from tests.support.repository import Repository
from tests.support.stage import playing


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Playing]:
    (tmp_path / "scripts").mkdir()
    with playing(tmp_path / "scripts", tmp_path) as one:
        yield one


@pytest.fixture
def house(tmp_path: Path, stage: Playing) -> Iterator[MachineHouse]:
    with machine_house(tmp_path / "house") as one:
        yield one


def transcripts(worker: WorkerProcess) -> list[str]:
    return [file.read_text() for file in worker.data.glob("projects/*/agents/**/*.jsonl")]


def test_claude_code_works_on_a_machine_without_a_key_there(house: MachineHouse, stage: Playing, tmp_path: Path):
    gate = Gate(house.folder / "gates", "agent")
    project: Project = house.head.adopt(Repository(house.folder / "ada"))
    house.head.client.add_provider(AddProvider(name="rehearsal", url=stage.url, key=KEY))
    # No login of the person who runs the tests may be found by chance.
    own = {"CLAUDE_CONFIG_DIR": str(tmp_path / "none"), "ANTHROPIC_API_KEY": "", RETRIES: "3"}
    desk = house.worker("desk", labels=["far"], extra=own)
    wait = f'call = {{tool = "Bash", input = {{command = {json.dumps(gate.pause)}}}}}'
    write = 'call = {tool = "Bash", input = {command = "echo blue > colour.txt"}}'
    script = f"""
    [[step]]
    {wait}
    [[step]]
    expect = "It must be blue"
    {write}
    [[step]]
    say = "Done."
    """
    (tmp_path / "scripts" / "far.toml").write_text(dedent(script))
    ticket = project.dispatch("Colour", "", text="rehearsal: far", driver="claude", on=["far"])
    gate.arrived()
    answers: list[object] = []
    telling = threading.Thread(
        target=lambda: answers.append(house.head.client.tell(ticket, MessageText(text="It must be blue.")))
    )
    telling.start()
    until_seen(house.head, lambda: any("It must be blue" in text for text in transcripts(desk)), "the message")
    gate.open()
    telling.join()
    assert answers, "the message was delivered"
    project.until_settled(ticket)
    page = project.ticket(ticket)
    logs = (page, house.head.log[-2500:], desk.log[-2500:], project.log(ticket)[-1500:])
    assert page.ticket.state == "done", logs
    assert project.landed("colour.txt") == "blue\n"
    assert [run.outcome for run in page.runs] == ["finished"]
    usage = house.head.client.usage(project.cwd)
    assert usage.total.usage.output > 0, usage
    found = [file for file in desk.folder.rglob("*") if file.is_file() and KEY.encode() in file.read_bytes()]
    assert found == [], "the provider's key is nowhere on the machine"
    gate.close()
