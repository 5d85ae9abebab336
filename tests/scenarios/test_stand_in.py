"""The stand-in for Claude Code plays the same scripts as the real program, and Legion records the same of both."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from legion.runner.journal import JournalEvent
from legion.wire.mail import AnswerQuestion, MessageText
from tests.support.gates import Gate
from tests.support.looking import until_seen
from tests.support.models import Company, company
from tests.support.stand_in import build

Story = Callable[[Company, str], int]
COMPARED: Mapping[str, tuple[str, ...]] = {
    "said": ("text",),
    "called": ("tool", "input"),
    "begins": ("tool", "input"),
    "returned": ("failed",),
    "denied": ("tool",),
    "asked": ("tool", "input"),
    "answered": ("allowed",),
    "told": ("text",),
    "limit": ("status", "window"),
    "retry": ("status", "error"),
    "result": ("subtype", "error", "reason", "status", "denials"),
    "kept": ("tool",),
}
"""The events of a journal, and their facts, in which both programs must be alike."""
_NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    with company(tmp_path_factory.mktemp("both"), settings="[governor]\non = false\n") as one:
        yield one


def call(tool: str, **input: object) -> str:
    facts = ", ".join(f"{key} = {json.dumps(value)}" for key, value in input.items())
    return f'say = "I use {tool}."\ncall = {{tool = "{tool}", input = {{{facts}}}}}'


def play(here: Company, name: str, *steps: str, **fields: object) -> int:
    here.script(name, "\n".join(f"[[step]]\n{step}" for step in steps))
    return here.dispatch(name, **fields)


def works(here: Company, name: str) -> int:
    """Every tool; failures; a tool that does not exist; one that is denied; a second attempt in the conversation.

    Then a limit of the provider, after a retry; and the conversation continues behind it.
    """
    outside = str(here.squad.folder / "gates" / name)
    ticket = play(
        here,
        name,
        call("Bash", command=f"echo BROKEN > {name}.txt; seq 3"),
        'expect = "1\\n2\\n3"\n' + call("Bash", command="echo no; exit 3"),
        'expect = "Exit code 3\\nno"\n' + call("Write", file_path=f"{{cwd}}/{name}.md", content="one\n"),
        call("Read", file_path=f"{{cwd}}/{name}.md"),
        'expect = "1\\tone"\n' + call("Edit", file_path=f"{{cwd}}/{name}.md", old_string="one", new_string="two"),
        call("NoSuchTool", wanted="it"),
        'expect = "No such tool"\n' + call("Write", file_path=outside, content="x"),
        'say = "I am done."',
        f'attempt = 2\nexpect = "failed on your change"\n{call("Bash", command=f"echo fine > {name}.txt")}',
        "attempt = 2\nstatus = 429\ntimes = 2\nlimit = {resets_in = 1}\n" + call("Bash", command="echo on"),
        'attempt = 2\nsay = "Now it is right."',
    )
    page = here.project.until(ticket, "done")
    assert [run.outcome for run in page.runs] == ["finished", "limited", "finished"]
    assert (here.project.landed(f"{name}.txt"), here.project.landed(f"{name}.md")) == ("fine\n", "two\n")
    return ticket


def listens(here: Company, name: str) -> int:
    """A question with its answer, a tool of Legion's, words between two steps, and the end of a step that hangs."""
    gate = Gate(here.squad.folder / "gates", f"{name}-gate")
    ticket = play(
        here,
        name,
        call("Write", file_path=str(here.squad.folder / "gates" / name), content="x"),
        call("mcp__legion__legion-report", status="working", summary="Half of it."),
        call("Bash", command=gate.pause),
        'expect = "The table is users"\n' + call("Bash", command=gate.pause),
        'expect = "(?s)interrupted.*tests first"\n' + call("Bash", command=f"echo heard > {name}.txt"),
        'say = "Done."',
        ask=True,
    )
    here.project.until_true(lambda: bool(here.project.ticket(ticket).questions))
    here.squad.client.answer(here.project.ticket(ticket).questions[0].id, AnswerQuestion(allowed=True))
    gate.arrived()
    with ThreadPoolExecutor() as others:
        telling = others.submit(here.squad.client.tell, ticket, MessageText(text="The table is users."))
        until_seen(here.squad, lambda: any(one.kind == "told" for one in here.journal(ticket)), "that it was told")
        gate.open()
        assert telling.result().heard
    gate.arrived()
    assert here.squad.client.interrupt(ticket, MessageText(text="Look at the tests first.")).heard
    page = here.project.until(ticket, "done")
    assert [event.data["summary"] for event in page.history if event.kind == "ticket.reported"] == ["Half of it."]
    gate.close()
    return ticket


@pytest.mark.parametrize("story", [works, listens])
def test_legion_records_the_same_of_both_programs(here: Company, story: Story):
    assert seen(here, story, build.stand_in() / "claude") == seen(here, story, None)


def seen(here: Company, story: Story, program: Path | None) -> list[tuple[object, ...]]:
    """What the journal of a story holds that is played with this program; None is the real one."""
    name = f"story{next(_NUMBERS)}"
    with here.using(program):
        ticket = story(here, name)
    worktree = str(here.project.worktree(ticket))
    facts = [one for event in here.journal(ticket) for one in compared(event)]
    # The runner records a state when the message arrives, and the call when the SDK passes it on.
    facts.sort(key=lambda one: one[0] == "kept")
    text = re.sub(r"toolu_\w+", "CALL", json.dumps(facts).replace(name, "NAME").replace(worktree, "TREE"))
    found: list[tuple[object, ...]] = json.loads(text)
    return found


def compared(event: JournalEvent) -> Iterator[tuple[object, ...]]:
    if event.kind in COMPARED:
        yield event.kind, *(event.facts[name] for name in COMPARED[event.kind])
