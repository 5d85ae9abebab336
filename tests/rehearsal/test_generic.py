"""The script for tickets that have none works for any briefing, attempt after attempt."""

from __future__ import annotations

import dataclasses
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from legion.config.files.project import ProjectConfig
from legion.domain.checks import Check
from legion.domain.tickets.spec import TicketSpec
from legion.domain.tickets.ticket import Ticket
from legion.jobs.agent.briefing import briefing, resume_text
from legion.rehearsal.play.conversation import part
from legion.rehearsal.protocol.log import RequestKind
from legion.rehearsal.protocol.request import read
from legion.rehearsal.script import generic
from legion.rehearsal.script.script import Script
from tests.rehearsal.program import Claude, ask, model, text_block, user

CONFIG = ProjectConfig(checks=(Check(name="tests", command="make test"),))
BARE = TicketSpec(title="Say hello", text="Say it.")
FULL = TicketSpec(
    title='Round "amounts" to {cwd} & more',
    text="It is wrong.\n\n## A heading of its own\nwith text",
    context="Money.",
    criteria="Half a cent goes up.",
    plan="1. Look\n2. Round",
    files=("src/money.py", "docs/**", "notes.md", "data.json", "a b.txt"),
    proofs=("make money",),
)


def ticket(spec: TicketSpec, attempt: int = 1) -> Ticket:
    return Ticket(id=7, project=1, spec=spec, attempt=attempt, feedback="The check is red." if attempt > 1 else "")


def script_for(*texts: str) -> Script:
    where = part(read({}, json.dumps({"model": "m", "messages": conversation(texts)}).encode()))
    return generic.script(where.ticket, where.facts)


def conversation(texts: Sequence[str]) -> list[dict[str, object]]:
    return [message for text in texts for message in (model(text_block("Done.")), user(text))][1:]


def commands(script: Script) -> list[str]:
    return [call.input["command"] for step in script.steps for call in step.calls if call.tool == "Bash"]


def test_a_ticket_without_files_gets_one_that_is_called_after_it():
    calls = [call for step in script_for(briefing(ticket(BARE), CONFIG)).steps for call in step.calls]
    assert [call.tool for call in calls] == ["Read", "Write", "Bash"]
    assert calls[1].input == {
        "file_path": "./ticket-7.md",
        "content": "# Ticket 7: Say hello\n\nRehearsed in attempt 1.\n",
    }


def test_plain_files_that_a_ticket_names_get_a_line_that_does_no_harm():
    assert commands(script_for(briefing(ticket(FULL), CONFIG))) == [
        "mkdir -p src && echo '# rehearsed for ticket 7, attempt 1' >> src/money.py",
        "mkdir -p . && echo 'rehearsed for ticket 7, attempt 1' >> notes.md",
        "git status --short",
    ]


def test_words_that_are_no_briefing_are_answered_at_once(generic_stage):
    answer = ask(generic_stage.url, user("What do you think?")).json
    assert (answer["stop_reason"], answer["content"][0]["text"][:5]) == ("end_turn", "Done.")


def test_a_later_attempt_keeps_both_sides_of_a_conflict(tmp_path):
    (tmp_path / "notes.md").write_text(
        "before\n<<<<<<< ours\nleft\n=======\nright\n>>>>>>> theirs\nbetween\n"
        "<<<<<<< ours\none\n=======\ntwo\n>>>>>>> theirs\nafter\n"
    )
    spec = dataclasses.replace(FULL, files=("notes.md",))
    for command in commands(script_for(briefing(ticket(spec, attempt=2), CONFIG)))[:2]:
        subprocess.run(["sh", "-c", command], cwd=tmp_path, check=True)
    assert [line for line in (tmp_path / "notes.md").read_text().splitlines() if line] == [
        "before", "left", "right", "between", "one", "two", "after", "rehearsed for ticket 7, attempt 2",
    ]  # fmt: skip


def test_an_agent_that_goes_on_after_a_conflict_settles_the_files_that_its_ticket_named():
    other = dataclasses.replace(FULL, files=("other.py",))
    first = [briefing(ticket(other), CONFIG), briefing(ticket(FULL), CONFIG)]
    again = script_for(*first, resume_text(ticket(FULL, attempt=2), CONFIG, [], [], []))
    assert commands(again) == commands(script_for(briefing(ticket(FULL, attempt=2), CONFIG)))
    assert commands(script_for(*first, briefing(ticket(BARE), CONFIG))) == ["git status --short"]


@pytest.fixture
def agent(generic_stage, tmp_path: Path) -> Claude:
    claude = Claude(folder=tmp_path / "agent", url=generic_stage.url)
    subprocess.run(["git", "init", "-q", claude.work], check=True)
    return claude


def test_claude_code_does_the_ticket_and_every_later_attempt_in_one_conversation(generic_stage, agent):
    with agent.talk() as talk:
        for attempt in (1, 2):
            outcome = talk.say(briefing(ticket(BARE, attempt), CONFIG))
            assert outcome.result["result"].startswith("Done.")
            assert outcome.result["permission_denials"] == []
            assert (agent.work / "ticket-7.md").read_text().endswith(f"Rehearsed in attempt {attempt}.\n")
        assert talk.say("And one more thing.").result["result"].startswith("Done.")
    lines = generic_stage.lines()
    assert {line.kind for line in lines} == {RequestKind.SCRIPTED}
    assert [(line.attempt, line.step) for line in lines] == [
        *((attempt, step) for attempt in (1, 2) for step in (1, 2, 3, 4)), (2, 5),
    ]  # fmt: skip


def test_another_agent_can_take_over_what_one_has_left_and_may_change_the_files_that_a_ticket_names(agent):
    one = script_for(briefing(ticket(BARE), CONFIG))
    (left,) = [call.input["content"] for step in one.steps for call in step.calls if call.tool == "Write"]
    (agent.work / "ticket-7.md").write_text(left)
    with agent.talk() as talk:
        outcome = talk.say(briefing(ticket(BARE, attempt=2), CONFIG))
        assert outcome.result["result"].startswith("Done.")
        assert (agent.work / "ticket-7.md").read_text().endswith("Rehearsed in attempt 2.\n")
        outcome = talk.say(briefing(ticket(FULL), CONFIG))
        assert outcome.result["permission_denials"] == []
        assert (agent.work / "src" / "money.py").read_text() == "# rehearsed for ticket 7, attempt 1\n"
        again = talk.say(resume_text(ticket(FULL, attempt=2), CONFIG, [], [], []))
        assert again.result["permission_denials"] == []
    assert (agent.work / "notes.md").read_text().splitlines() == [
        "rehearsed for ticket 7, attempt 1", "rehearsed for ticket 7, attempt 2",
    ]  # fmt: skip
