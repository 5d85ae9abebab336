"""Standing agents of a company, as a person and as their transcripts see them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from legion.runner.journal import JournalEvent, read_journal
from legion.wire.agents import AgentLine, AgentPage, FireAgent, HireAgent, Hired
from legion.wire.mail import MessageLine, NewMessage, ReadMail, Sent
from tests.support.legion import PATIENCE
from tests.support.models import Company

FILLER = 12
"""Turns that a script answers after its own: results of others may come at any time."""
_MARK = re.compile(r"--- end of ([0-9a-f-]{36})")


class Staff:
    def __init__(self, here: Company) -> None:
        self.here = here
        self.client = here.squad.client

    def script(self, name: str, *steps: str, filler: int = FILLER) -> None:
        """Steps in the rehearsal's own words, and then a polite word for whatever else comes."""
        rest = ['say = "Noted."'] * filler
        self.here.script(name, "\n".join(f"[[step]]\n{step}\n" for step in (*steps, *rest)))

    def hire(self, script: str, **wanted: object) -> Hired:
        """By the person, named like its script."""
        facts = {"name": script, "cwd": self.here.project.cwd, **wanted}
        return self.client.hire(HireAgent(task=f"rehearsal: {script}", **facts))  # type: ignore[arg-type]

    def tell(self, name: str, text: str, *, now: bool = False) -> Sent:
        return self.here.squad.client.tell_agent(NewMessage(to=name, text=text, now=now))

    def fire(self, name: str, *, subtree: bool = False) -> None:
        self.here.squad.client.fire(FireAgent(id=name, subtree=subtree))

    def page(self, name: str) -> AgentPage:
        return self.here.squad.client.agent(name)

    def lines(self) -> dict[str, AgentLine]:
        return {line.name: line for line in self.here.squad.client.agents(True).agents}

    def mail_of(self, name: str) -> list[MessageLine]:
        """Everything to and from somebody, oldest first. Nothing of it counts as read."""
        return self.here.squad.client.mail(ReadMail(agent=name, all=True)).messages

    def results(self, name: str) -> list[str]:
        if name not in self.lines():
            return []
        return [one.text for one in self.mail_of(name) if one.sender_name == name and one.kind == "result"]

    def until_idle(self, *names: str, patience: float = PATIENCE) -> None:
        """Until nobody works or has mail: these, or all."""

        def idle() -> bool:
            there = [line for name, line in self.lines().items() if not names or name in names]
            return all(not line.working and not line.waiting and line.doing in ("idle", "fired") for line in there)

        self.here.project.until_true(idle, patience)

    def until_working(self, name: str) -> None:
        self.here.project.until_true(lambda: self.lines()[name].working)

    def conversation(self, name: str) -> Iterator[str]:
        """Every message that its program has written down as part of the conversation."""
        id = self.lines()[name].id
        for path in self.transcripts(id):
            for line in path.read_text().splitlines():
                entry = json.loads(line)
                if entry["type"] == "user":
                    yield json.dumps(entry["message"], ensure_ascii=False)
                elif entry["type"] == "attachment" and entry["attachment"]["type"] == "queued_command":
                    yield entry["attachment"]["prompt"]

    def transcripts(self, id: str) -> list[Path]:
        return list(self.here.squad.data.root.glob(f"projects/*/agents/*/claude/projects/*/{id}.jsonl"))

    def heard(self, name: str) -> list[str]:
        """The ids of the messages in its conversation, in order."""
        return [id for words in self.conversation(name) for id in _MARK.findall(words)]

    def journal(self, number: int) -> list[JournalEvent]:
        return [event for folder in self.runs(number) for event in read_journal(folder)]

    def runs(self, number: int) -> list[Path]:
        folders = self.here.squad.data.runs.glob(f"agent-{number}-run-*")
        return sorted(folders, key=lambda folder: int(folder.name.rpartition("-")[2]))

    def check(self) -> None:
        """Every message that counts as heard is in its conversation once, in order; what came back is in none."""
        for name, line in self.lines().items():
            heard = self.heard(name)
            assert len(heard) == len(set(heard)), f"{name} heard something twice"
            mine = [one for one in self.mail_of(name) if one.recipient == line.id]
            said = {one.id for one in mine if one.delivery == "heard"}
            assert said == set(heard) & {one.id for one in mine}, f"{name}: {said} and {heard}"
            for sender in {one.sender for one in mine}:
                order = [one.id for one in mine if one.sender == sender and one.id in said]
                assert order == [id for id in heard if id in order], f"{name} heard {sender} in another order"


def bash(command: str) -> str:
    return f'call = {{tool = "Bash", input = {{command = {json.dumps(command)}}}}}'


def tool(name: str, /, **input: object) -> str:
    facts = ", ".join(f"{key} = {json.dumps(value)}" for key, value in input.items())
    return f'{{tool = "mcp__legion__{name}", input = {{{facts}}}}}'
