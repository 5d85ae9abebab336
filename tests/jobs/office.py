"""Agents, mail and money on a real store, with everything but programs: a turn is played by writing its transcript.

Whatever a program could have written before it was cut off, the office writes; the real jobs and use cases do the
rest, as they would after a crash at that moment.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from legion.config.files.user import CurrentSettings
from legion.domain.agents import agent as rules
from legion.domain.agents.agent import ROOT, Agent
from legion.domain.agents.mail import Delivery, Message
from legion.domain.runs import Outcome, Run
from legion.domain.scheduling.decide import Claim, JobKind, decide
from legion.domain.scheduling.job_places import StartJob
from legion.domain.scheduling.usage import Spending, Usage
from legion.jobs.agent import mail_prompt
from legion.jobs.context import Context
from legion.jobs.turn import delivery, job
from legion.jobs.turn.job import TurnEnd
from legion.runner.launch import Launcher
from legion.runner.probe import SandboxKind, SandboxState
from legion.store import snapshot
from legion.store.board import projects
from legion.store.database import schema
from legion.store.database.transactions import Transaction
from legion.store.staff import agents, mail
from legion.store.work import claims, runs, usage
from legion.system.paths import DataDir
from tests.store.making import add_project
from tests.support.agent_rights import widened
from tests.support.migrated import migrated_store
from tests.support.settings import PLAIN_SETTINGS

ENDINGS = (*([Outcome.FINISHED] * 4), Outcome.LOST, Outcome.LOST, Outcome.LIMITED, Outcome.FAILED, Outcome.INTERRUPTED)
_MARK = re.compile(r"^--- end of ([0-9a-f-]{36})$", re.MULTILINE)


class Office:
    def __init__(self, folder: Path, *, slots: int = 4) -> None:
        self.root = folder / "ada"
        (self.root / ".git").mkdir(parents=True)
        data = DataDir(folder / "data")
        data.prepare()
        store = migrated_store(data.database)
        user = PLAIN_SETTINGS
        self.context = Context(
            data=data,
            store=store,
            launcher=Launcher(),
            settings=CurrentSettings(replace(user, daemon=replace(user.daemon, slots=slots))),
            sandbox=SandboxState(kind=SandboxKind.PROCESS_GROUPS, works=False, why="none is needed"),
            url="",
            machine="here",
            clock=time.time,
        )
        with store.write() as tx:
            project = add_project(
                tx, "ada", root=str(self.root), common_dir=str(self.root / ".git"), worktrees=str(folder / "trees")
            )
            projects.trust(tx, project.id, project.config_hash)
        self.project = project.id
        self.claims: dict[int, Claim] = {}
        """Turns that a job of ours watches, by agent."""
        self.queued: dict[int, list[tuple[str, str]]] = {}
        """What programs have in their queues, by run: names of prompts, and words. A program takes them in order."""

    def close(self) -> None:
        self.context.store.close()

    def standing(self) -> tuple[Agent, ...]:
        with self.context.store.read() as tx:
            return agents.standing(tx)

    def conduct(self) -> None:
        """What the scheduler does, for agents."""
        with self.context.store.read() as tx:
            facts = snapshot.load(tx, self.context.user.daemon.slots, {})
        for command in decide(facts, self.context.clock() + 10_000).commands:
            if isinstance(command, StartJob) and command.kind is JobKind.SERVE:
                with self.context.store.write() as tx:
                    job.begin(tx, command.subject)
                    self.claims[command.subject] = claims.claim(tx, JobKind.SERVE, command.subject, "here")

    def crash(self) -> None:
        """The daemon is gone, and the next one finds its claims void."""
        self.claims.clear()
        with self.context.store.write() as tx:
            for claim in claims.active(tx):
                claims.finish(tx, claim)

    def take_prompt(self, number: int) -> None:
        """The program writes the turn's first message into its transcript."""
        agent, run = self.turn(number)
        if run.id in self.queued:
            return
        self.queued[run.id] = []
        with self.context.store.read() as tx:
            batch = mail.of_batch(tx, agent.id, run.prompt)
            text = mail_prompt.prompt(agent, agents.names(tx), batch, self._given(run), cut=None, fresh=False)
        self.write(run, {"type": "user", "uuid": run.prompt, "message": {"role": "user", "content": text}})

    def say_now(self, number: int, message: Message, *, taken: bool) -> None:
        """A message in the middle of a turn, which the program takes up or only queues."""
        self.take_prompt(number)
        agent, run = self.turn(number)
        with self.context.store.write() as tx:
            batch = mail.offer_now(tx, message)
            names = agents.names(tx)
        text = "\n\n".join(mail_prompt.format_message(agent, names, one, self._given(run)) for one in batch)
        self.write(run, {"type": "queue-operation", "operation": "enqueue", "content": text})
        self.queued[run.id].append((message.id, text))
        while taken and self.queued[run.id]:
            name, words = self.queued[run.id].pop(0)
            facts = {"type": "queued_command", "source_uuid": name, "prompt": words}
            self.write(run, {"type": "attachment", "attachment": facts})

    def spend(self, number: int, share: float) -> None:
        """As the gateway counts: never above what is left, and nothing for who was fired in the middle of a turn."""
        agent, run = self.turn(number)
        if agent.fired_at is not None:
            return
        with self.context.store.write() as tx:
            money = agents.all_means(tx)[agent.id].money
            left = 1.0 if money is None else money
            spent = Usage(requests=1, usd=left * share)
            usage.add(tx, [Spending(run=run.id, provider="p", model="m", day="2026-01-01", usage=spent)])

    def end_turn(self, number: int, outcome: Outcome) -> None:
        agent, run = self.turn(number)
        project = self.context.project(self.project)
        job.conclude(
            self.context, project, self.claims.pop(number), agent, run, TurnEnd(outcome=outcome, detail="so it went")
        )

    def prompts(self, agent: Agent) -> Iterator[str]:
        """Everything that the conversation holds, in order."""
        state = delivery.state_folder(self.context.project(self.project), f"agent-{agent.number}")
        for path in state.glob("claude/projects/*/*"):
            for line in path.read_text().splitlines():
                entry = json.loads(line)
                if entry["type"] == "user":
                    yield entry["message"]["content"]
                elif entry["type"] == "attachment":
                    yield entry["attachment"]["prompt"]

    def heard(self, agent: Agent) -> list[str]:
        """The ids of all messages in the conversation, in order."""
        return [id for prompt in self.prompts(agent) for id in _MARK.findall(prompt)]

    def write(self, run: Run, entry: dict[str, object]) -> None:
        folder = delivery.state_folder(self.context.project(self.project), run.seat) / "claude/projects/here"
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / f"{run.conversation}.jsonl").open("a") as file:
            file.write(json.dumps(entry) + "\n")

    def _given(self, run: Run) -> Path:
        given = self.context.data.runs / run.name / "given"
        given.mkdir(parents=True, exist_ok=True)
        return given

    def turn(self, number: int) -> tuple[Agent, Run]:
        with self.context.store.read() as tx:
            agent = agents.numbered(tx, number)
            (run,) = runs.of_agent(tx, number, limit=1)
        assert run.ended_at is None
        return agent, run


def all_mail(tx: Transaction) -> list[Message]:
    return [Message(**row._mapping) for row in tx.execute(schema.mail.select().order_by(schema.mail.c.number))]


def check(office: Office) -> None:
    """What holds at every moment."""
    with office.context.store.write() as tx:
        everybody, standing = agents.every(tx), agents.standing(tx)
        means, letters_there = agents.all_means(tx), all_mail(tx)
        own = agents.own_spending(tx)
    by_id = {agent.id: agent for agent in standing}
    reports = rules.tree(standing)
    for agent in standing:
        assert agent.parent == ROOT or agent.parent in by_id, "no agent without a parent"
        parent = rules.TOP if agent.parent == ROOT else by_id[agent.parent].rights
        assert widened(parent, agent.rights) == []
        rights = agent.rights
        assert rights.headcount is None or len(list(rules.below(reports, agent.id))) <= rights.headcount
        if rights.budget is not None:
            given = sum(report.rights.budget or 0.0 for report in reports.get(agent.id, ()))
            money = means[agent.id].money
            assert money is not None
            gone = _spent_by_fired(everybody, own, agent.id)
            assert own.get(agent.id, 0.0) + gone + given + money <= rights.budget + 1e-9, "the budget tree adds up"
    for agent in everybody:
        heard = office.heard(agent)
        assert len(heard) == len(set(heard)), "no message twice in a conversation"
        numbers = {message.id: message.number for message in letters_there}
        for sender in {message.sender for message in letters_there}:
            order = [numbers[id] for id in heard if _of(letters_there, id).sender == sender]
            assert order == sorted(order), "what one sends another arrives in order"
        for message in letters_there:
            if message.recipient == agent.id:
                if message.delivery is Delivery.HEARD:
                    assert message.id in heard, "nothing counts as heard that is not in the conversation"
                elif message.delivery in (Delivery.WAITING, Delivery.RETURNED):
                    assert message.id not in heard, "nothing that was heard is offered again or sent back"


def _spent_by_fired(everybody: tuple[Agent, ...], own: Mapping[str, float], parent: str) -> float:
    """What those who were fired from under somebody had spent, and those from under them before."""
    fired = [agent for agent in everybody if agent.parent == parent and agent.fired_at is not None]
    return sum(own.get(agent.id, 0.0) + _spent_by_fired(everybody, own, agent.id) for agent in fired)


def _of(letters_there: list[Message], id: str) -> Message:
    return next(message for message in letters_there if message.id == id)


def settle(office: Office, chance: random.Random) -> None:
    """Let everything come to its end."""
    for _ in range(2000):
        office.conduct()
        if not office.claims:
            return
        number = chance.choice(list(office.claims))
        office.take_prompt(number)
        office.end_turn(number, Outcome.FINISHED)
    raise AssertionError("the office never comes to rest")
