"""Real agent programs of both protocols under trouble: their daemon, their runner or they themselves are killed, their
budget is spent, and Legion's own tools reach them over HTTP."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from legion.drivers.programs import catalog
from tests.runner.runs import assert_gone, program_of, runner_of
from tests.scenarios.test_tools import the_question
from tests.support import programs
from tests.support.looking import until_seen
from tests.support.models import Company, company

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]

WAIT = "if [ -e {0}.begun ]; then echo again; else touch {0}.begun; tail -f /dev/null; fi"


@dataclass(frozen=True)
class Installed:
    name: str
    here: Company

    def call(self, command: str) -> str:
        """A step in which the model runs this command by the program's own tool."""
        trial = catalog.programs().found[self.name].trial
        key = "cmd" if "cmd" in trial.command_input else "command"
        more = ', description = "x"' if "description" in trial.command_input else ""
        return f"[[step]]\ncall = {{tool = '{trial.command_tool}', input = {{{key} = '{command}'{more}}}}}\n"

    def dispatch(self, script: str, *steps: str, **fields: object) -> int:
        self.here.script(script, "\n".join([*steps, '[[step]]\nsay = "Done."\n']))
        text = f"rehearsal: {script}"
        return self.here.project.dispatch(f"play {script}", "", text=text, driver=self.name, **fields)

    def inside(self, ticket: int, name: str) -> str:
        """Return when the program waits in its command; the name of the run."""
        tree = self.here.project.worktree(ticket)
        until_seen(self.here.squad, (tree / f"{name}.begun").exists, "the command has begun")
        return f"ticket-{ticket}-run-{self.here.project.ticket(ticket).runs[-1].id}"


@contextmanager
def installed(name: str, folder: Path) -> Iterator[Installed]:
    try:
        place = programs.install(catalog.programs().found[name])
    except programs.NotInstalled as missing:
        pytest.skip(f"{name} cannot be tried here: {missing}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", f"{place}{os.pathsep}{os.environ['PATH']}")
        with company(folder) as one:
            yield Installed(name, one)


@pytest.fixture(scope="module", params=["copilot", "codex"])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """One of the Agent Client Protocol and one of JSON lines."""
    with installed(request.param, tmp_path_factory.mktemp(request.param)) as one:
        yield one


Victim = Callable[[Installed, str], None]


def _daemon(program: Installed, run: str) -> None:
    """The run is adopted, and its command ends as if nothing had happened."""
    process = program_of(program.here.squad.data.runs / run)
    program.here.squad.kill()
    program.here.start()
    # Codex leaves a long command behind by itself.
    for one in process.children(recursive=True) if process.is_running() else ():
        if one.name() == "tail":
            one.terminate()


def _runner(program: Installed, run: str) -> None:
    process = program_of(program.here.squad.data.runs / run)
    runner_of(program.here.squad.data.runs / run).kill()
    assert_gone([process])


def _program(program: Installed, run: str) -> None:
    program_of(program.here.squad.data.runs / run).kill()


@pytest.mark.parametrize("kill", [_daemon, _runner, _program], ids=["daemon", "runner", "program"])
def test_a_kill_loses_nothing_and_the_ticket_lands_once(program: Installed, kill: Victim):
    name = f"kill{kill.__name__}"
    work = program.call(f"echo resumed > {name}.txt")
    ticket = program.dispatch(name, program.call(WAIT.format(name)), work, work)
    kill(program, program.inside(ticket, name))
    page = program.here.project.until(ticket, "done")
    assert program.here.project.landed(f"{name}.txt") == "resumed\n"
    told = [event.facts["resumed"] for event in program.here.journal(ticket) if event.kind == "conversation"]
    assert told == ([False] if kill is _daemon else [False, True]), "the conversation continues"
    assert len([event for event in page.history if event.data.get("to") == "done"]) == 1


def test_a_spent_budget_parks_the_ticket(program: Installed):
    usage = "usage = { input = 2000000, output = 100000 }\n"
    first = program.call("echo spent > spent.txt") + usage
    ticket = program.dispatch("spender", first, program.call("echo more > more.txt"), budget=0.01)
    project = program.here.project
    assert "budget" in project.until(ticket, "parked").ticket.reason
    # The gateway writes the last lines of its ledger up to half a second after a run's end.
    project.until_true(lambda: (used := project.ticket(ticket).usage) is not None and used.usd > 0.01)


def test_legions_tools_reach_the_program_over_http(program: Installed):
    if "asks" not in program.here.squad.client.driver(program.name).driver.can:
        pytest.skip("it takes no tools of Legion's")
    ask = "[[step]]\ncall = {tool = 'legion-legion-ask', input = {question = 'What shall it hold?'}}\n"
    heard = "expect = 'a poem'\n"
    write = program.call("echo a poem > asked.txt").replace("[[step]]\n", f"[[step]]\n{heard}")
    ticket = program.dispatch("asker", ask, write, ask=True)
    question = the_question(program.here, "What shall it hold?")
    assert question.ticket == ticket
    # The call survives a restart of the daemon.
    program.here.squad.kill()
    program.here.start()
    program.here.told("answer", str(question.id), "a poem")
    program.here.project.until(ticket, "done")
    assert program.here.project.landed("asked.txt") == "a poem\n"


def test_aider_lands_a_change(tmp_path: Path):
    """The suite cannot play it: it edits by text, and calls no tools."""
    edit = "hello.txt\n```\n<<<<<<< SEARCH\n=======\nhello\n>>>>>>> REPLACE\n```\n"
    with installed("aider", tmp_path) as aider:
        ticket = aider.dispatch("aided", f"[[step]]\nsay = '''\n{edit}'''\n")
        page = aider.here.project.until(ticket, "done")
        assert aider.here.project.landed("hello.txt") == "hello\n"
        assert page.usage is not None
        assert page.usage.output > 0
