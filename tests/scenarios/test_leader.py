"""A leader with a scripted model: the chat, its tools, its digest, and fresh conversations."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from legion.runner.spec import read_spec
from legion.wire.agents import Conversation, HireAgent, ReadConversation
from tests.support.codebase import ROOT, SOURCE
from tests.support.legion import PATIENCE, Project
from tests.support.models import Company, company
from tests.support.repository import CHECK, Repository
from tests.support.staff import Staff, tool

FULL = "usage = {input = 120000, output = 100}"
"""More than a conversation may have: the next turn is a fresh one."""
COMPACTS = "usage = {input = 990000, output = 100}"
"""So much that the program compacts the conversation by itself, in the middle of a turn."""


@pytest.fixture(scope="module")
def staff(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Staff]:
    with company(tmp_path_factory.mktemp("leader"), stand_in=True) as one:
        yield Staff(one)


def conversation(here: Company, name: str = "") -> Conversation:
    return here.squad.client.conversation(ReadConversation(cwd=here.project.cwd, name=name))


def transcripts(staff: Staff, name: str) -> list[str]:
    """Of all its conversations, those that were put aside included, oldest first."""
    pattern = f"projects/*/agents/*/claude/projects/*/{staff.lines()[name].id}*"
    files = staff.here.squad.data.root.glob(pattern)
    return [path.read_text() for path in sorted(files, key=lambda one: one.stat().st_ctime)]


def said(staff: Staff, name: str) -> list[str]:
    """What its program was sent, in conversations that were put aside, too."""
    found = []
    for text in transcripts(staff, name):
        for line in text.splitlines():
            entry = json.loads(line)
            if entry["type"] == "user" and isinstance(entry["message"]["content"], str):
                found.append(entry["message"]["content"])
    return found


def test_a_person_talks_to_a_leader_which_reads_dispatches_and_keeps_quiet_when_nothing_matters(staff: Staff):
    here = staff.here
    refused = here.cli("chat", "-m", "Hello?")
    assert refused.returncode == 3
    assert "Hire one: legion agents hire 'Lead this project.' --role leader --name leader" in refused.stderr
    here.told("template", "run", "changelog")
    staff.script(
        "lead",
        'say = "Ready."',
        f"call = {tool('legion-goal', plan='P1', approve=True)}",
        f"call = {tool('legion-dispatch', title='Look', text='x', checkpoint=True, epic='sunday')}",
        f"calls = [{tool('legion-note', kind='promise', text='Report on sunday.')}, {tool('legion-check')}]",
        'say = "One ticket is dispatched."',
        'say = "NOTHING"',
        filler=0,
    )
    staff.hire("lead", role="leader")
    staff.until_idle("lead")
    answer = json.loads(here.cli("chat", "-m", "Dispatch one.", "--json").stdout)
    assert [one["text"] for one in answer["replies"]] == ["One ticket is dispatched."]
    # The epic is complete: a notice gives it a turn, in which it finds nothing to say.
    here.project.until_true(lambda: len(staff.page("lead").turns) == 3 and not staff.lines()["lead"].working)
    assert staff.results("lead") == ["Ready.", "One ticket is dispatched."]
    spec = read_spec(staff.runs(1)[0])
    assert sorted(spec.options["tools"]) == ["Glob", "Grep", "Read"]
    texts = said(staff, "lead")
    assert "Board: no tickets." in texts[0]
    assert "Landed since your last turn: 1." in texts[2]
    assert "every ticket of the epic sunday has ended" in texts[2]
    assert "say that P1 waits for `legion approve P1`" in "".join(transcripts(staff, "lead"))
    assert [one.state for one in here.squad.client.plans(here.project.cwd).plans] == ["ready"]
    page = conversation(here)
    assert page.tokens > 1000
    assert page.handovers == 0
    assert page.notes == ["1 promise: Report on sunday."]


def test_a_full_conversation_is_put_aside_and_the_next_one_starts_from_rows(staff: Staff):
    here = staff.here
    staff.script("full", f'say = "I am full."\n{FULL}', filler=0)
    staff.script("noted", f'say = "Noted."\n{FULL}', filler=0)
    staff.script("fresh", 'say = "I know what I promised."', filler=0)
    staff.hire("full", role="leader")
    staff.until_idle("full")
    here.told("notes", "add", "--kind", "promise", "Report on monday.")
    assert conversation(here, "full").tokens == 120_100
    here.told("chat", "full", "-m", "rehearsal: noted. Anything else?")
    assert conversation(here, "full").handovers == 0, "it is asked first to write down what its conversation holds"
    told = here.told("chat", "full", "-m", "rehearsal: fresh. What did you promise?")
    assert told == "I know what I promised.\n"
    page = conversation(here, "full")
    assert (page.handovers, page.tokens < 120_000) == (1, True)
    texts = said(staff, "full")
    assert len(texts) == 3
    assert "record with legion-note what it holds" in texts[1]
    for words in (
        "Your earlier conversation was put aside",
        "promise: Report on monday.",
        "- you: I am full.",
        "Board:",
    ):
        assert words in texts[2]
    assert len(staff.transcripts(page.leader.id if page.leader else "")) == 1


def test_a_ticket_that_failed_and_then_passed_proposes_a_lesson(staff: Staff):
    here = staff.here
    agent = """
    echo mine > mine.txt
    if [ $LEGION_ATTEMPT = 1 ]; then echo BROKEN > till.txt; else echo counted > till.txt; fi
    """
    ticket = here.project.dispatch("Count the till", agent, labels=["till"])
    here.project.until_settled(ticket)
    # Not in the text: there a line may end within the title.
    here.project.until_true(lambda: bool(json.loads(here.cli("lessons", "--json").stdout)["lessons"]))
    (lesson,) = json.loads(here.cli("lessons", "--json").stdout)["lessons"]
    assert lesson["text"] == (
        "Where you change till.txt, run `sh check.sh` before you say that you are done: "
        '"Count the till" failed at attempt 1, checks failed: `sh check.sh`.'
    )
    assert (lesson["proposed"], lesson["ticket"], lesson["files"], lesson["labels"]) == (
        True,
        ticket,
        ["till.txt"],
        ["till"],
    )
    assert "is accepted" in here.told("lessons", "accept", str(lesson["id"]))
    later = here.project.dispatch("Again", 'cp "$LEGION_BRIEFING" told.txt', labels=["till"])
    here.project.until_settled(later)
    assert f"checks failed: `sh check.sh`. (lesson {lesson['id']}, from ticket {ticket})" in (
        here.project.landed("told.txt") or ""
    )
    assert "1.0 attempts in 1 ticket" in here.told("usage", "--lessons")


def test_the_example_of_the_page_works_as_it_is_written(staff: Staff, tmp_path: Path):
    """With a task that names a script, in a project of its own."""
    (block,) = re.findall(r"^```sh\n(.*?)^```", (ROOT / "docs/leader.md").read_text(), re.MULTILINE | re.DOTALL)
    staff.script("page", 'say = "Ready."', 'say = "Nothing is open."', filler=0)
    project = staff.here.squad.adopt(Repository(tmp_path / "page", CHECK))
    printed = []
    for line in block.splitlines():
        words = shlex.split(
            line.replace("Lead this project.", "rehearsal: page").replace("--name leader", "--name page")
        )
        done = staff.here.squad.cli(*words[1:], cwd=project.repository.root)
        assert done.returncode == 0, f"{line}: {done.stdout}{done.stderr}"
        printed.append(done.stdout)
        if "hire" in words:
            staff.until_idle("page")
    assert printed[1] == "Nothing is open.\n"
    assert "The login is done on Friday." in printed[3]
    assert "every weekday 07:00, next " in printed[5]


def test_a_dialog_streams_what_the_leader_does_and_ends_with_the_input(staff: Staff):
    here = staff.here
    # The connection breaks in the middle of the answer: what was written until then shows that text is streamed.
    # Slow: a break discards what the program has not read yet.
    quiet = 'say = "All the tickets of this week have landed, so all is quiet."\nslow = 0.2\ndrop = "mid"\ntimes = 1'
    staff.script("talk", 'say = "Ready."', f"call = {tool('legion-status')}", quiet, filler=0)
    # Only the real program streams parts of an answer.
    with here.using(None):
        staff.hire("talk", role="leader")
        staff.until_idle("talk")
        env = {**os.environ, **here.squad.found_by(), "PYTHONPATH": str(SOURCE.parent), "TERM": "dumb"}
        ours, theirs = pty.openpty()
        words = [sys.executable, "-m", "legion", "chat", "talk"]
        chat = subprocess.Popen(words, cwd=here.project.cwd, env=env, stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        try:
            text = read_until(ours, "> ")
            assert "Ready." in text
            assert "You talk to talk." in text
            os.write(ours, b"How is it going?\n")
            text = read_until(ours, "so all is quiet.")
            assert "> legion-status" in text or "mcp__legion__legion-status" in text
            assert text.count("All the tickets of") == 2, text
            if "> " not in text.partition("so all is quiet.")[2]:
                read_until(ours, "> ")
            os.write(ours, b"\x04")
            assert chat.wait(PATIENCE) == 0
        finally:
            chat.kill()
            chat.wait()
            os.close(ours)


def read_until(handle: int, words: str) -> str:
    """What a terminal shows until these words."""
    shown = b""
    while words not in shown.decode("utf-8", "replace"):
        ready, _, _ = select.select([handle], [], [], PATIENCE)
        assert ready, f"{words!r} did not appear: {shown.decode('utf-8', 'replace')}"
        shown += os.read(handle, 4096)
    return shown.decode("utf-8", "replace")


@pytest.mark.soak
def test_a_leader_that_forgot_everything_in_the_middle_of_an_epic_ends_it_like_one_that_did_not(staff: Staff, tmp_path):
    """Ten tickets. One leader's script knows by heart what follows; the other's reads it from its briefing."""
    first, rest = ("one", "two", "three", "four", "five"), ("six", "seven", "eight", "nine", "ten")
    plan = f"rehearsal: forgot-rest. When these landed, dispatch {' '.join(rest)} and then report."

    def dispatch(titles: tuple[str, ...]) -> str:
        calls = (tool("legion-dispatch", title=one, text="x", epic="count", checkpoint=True) for one in titles)
        return f"calls = [{', '.join(calls)}]"

    promise = tool("legion-note", kind="promise", text="Report when all ten landed.")
    thread = tool("legion-note", kind="thread", text=plan)
    opening = dispatch(first).replace("calls = [", f"calls = [{thread}, {promise}, ")
    ending = (dispatch(rest), 'say = "All ten are dispatched."', 'say = "The epic is complete."')
    staff.script("knows", opening, 'say = "Five are dispatched."', *ending, filler=0)
    # The program asks for a summary as soon as its context is full. This one remembers nothing.
    summary = 'say = "rehearsal: squeezed. There was nothing of interest."'
    staff.script("forgot", f"{opening}\n{COMPACTS}", summary, filler=0)
    staff.script("squeezed", 'say = "Five are dispatched."', filler=0)
    names = {f"t{n}": rf"dispatch (?:\w+ ){{{n}}}(\w+)" for n in range(5)}
    capture = "[capture]\n" + "\n".join(f"{name} = '{pattern}'" for name, pattern in names.items())
    steps = (dispatch(tuple(f"{{{name}}}" for name in names)), *ending[1:])
    staff.here.script("forgot-rest", capture + "\n" + "\n".join(f"[[step]]\n{step}\n" for step in steps))

    def led(name: str) -> tuple[list[tuple[str, str, str]], list[str], list[str]]:
        project = staff.here.squad.adopt(Repository(tmp_path / name, CHECK))
        task = HireAgent(task=f"rehearsal: {name}", name=name, role="leader", cwd=project.cwd)
        staff.client.hire(task)
        project.until_true(lambda: len(staff.results(name)) == 3)
        return board_of(project), staff.results(name), [one.text for one in staff.client.notes(project.cwd).notes]

    # Only the real program compacts a conversation.
    with staff.here.using(None):
        assert led("forgot") == led("knows")
    forgetful = conversation(staff.here, "forgot")
    assert forgetful.handovers == 1
    assert any("compact_boundary" in text for text in transcripts(staff, "forgot"))
    assert not any("compact_boundary" in text for text in transcripts(staff, "knows"))
    assert conversation(staff.here, "knows").handovers == 0


def board_of(project: Project) -> list[tuple[str, str, str]]:
    lines = project.squad.client.status(project.cwd, True).tickets
    return [(one.title, one.state, one.epic) for one in sorted(lines, key=lambda one: one.id)]
