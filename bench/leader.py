"""The leader: tokens of its digest, briefing, rules and tools, and the time that a digest takes."""

from __future__ import annotations

import json
import time
from pathlib import Path

from bench.report import Report
from legion.domain.agents.agent import ROOT, Agent, Rights
from legion.domain.agents.tools import DESCRIPTIONS, of_agent
from legion.domain.leader.briefing import LeaderFacts, LeaderRights, briefing, rules
from legion.domain.leader.digest import BoardFacts, PlanFact, QuestionFact, TicketFact, digest
from legion.domain.notes import MOST, Note, NoteKind
from legion.domain.tickets.ticket import State
from legion.jobs.agent import mail_prompt
from tests.support.tokens import tokens_at_most

_LIVE = 100
_LETTERS = 4
"""Of a token in JSON and English, about."""


def run(folder: Path, report: Report) -> None:
    states = [state for state in State if state is not State.DRAFT]
    tickets = [
        TicketFact(
            id=number * 3,
            title="Rewrite the reconciliation of invoices in the accounting service",
            state=states[number % len(states)],
            reason="gave up after 3 attempts: checks failed: `make test-integration`",
            attempt=3,
            changed=True,
            created=True,
        )
        for number in range(1, _LIVE + 1)
    ]
    facts = BoardFacts(
        tickets=tickets,
        questions=[QuestionFact(id=number, source=f"ticket {number}", mine=True) for number in range(10)],
        plans=[PlanFact(name=f"P{number}", state="ready", goal="Users can log in and log out") for number in range(5)],
        left=12.0,
    )
    began = time.perf_counter()
    text = digest(facts)
    report.value(f"digest of {_LIVE} live tickets", (time.perf_counter() - began) * 1000, "ms")
    report.value(f"digest of {_LIVE} live tickets, at most", tokens_at_most(text), "tokens", aim=1500)
    boss = Agent(
        number=1, id="x" * 36, project=1, parent=ROOT, name="leader", role="leader", task="", model="", rights=Rights(),
        hired_at=0.0,
    )  # fmt: skip
    seen = [(tool.value, DESCRIPTIONS[tool]) for tool in of_agent(boss, answers=True)]
    tools = [json.dumps({"name": name, "description": one.words, "input_schema": one.schema()}) for name, one in seen]
    notes = [Note(id=n, project=1, kind=NoteKind.THREAD, text="x y " * 75, author="x") for n in range(1, MOST + 1)]
    parts = {
        "tools": sum(map(len, tools)),
        "rules": len(mail_prompt.rules(boss, {}, rules(LeaderRights(approves=True, answers=True)))),
        "briefing with all notes": len(briefing(LeaderFacts(task="Lead this project.", notes=notes))),
    }
    for name, letters in parts.items():
        report.value(name, letters / _LETTERS, "tokens, about")
    report.value("all of Legion's, without the digest", sum(parts.values()) / _LETTERS, "tokens, about", aim=3000)
