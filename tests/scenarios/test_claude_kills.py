"""kill -9 while Claude Codes work: the ticket lands, in the same conversation, and no file of a tool is lost.

A stand-in plays Claude Code, except where the subject is what Claude Code itself keeps of a conversation.
"""

from __future__ import annotations

import itertools
import json
import random
import re
from collections.abc import Callable, Iterator
from enum import Enum
from functools import partial
from pathlib import Path

import pytest

from legion.gateway.accounting import ledger
from legion.gateway.accounting.ledger import LedgerPosition, RequestEntry
from legion.gateway.files.folder import GatewayFolder
from legion.system.crash import Point
from tests.crash import invariants
from tests.scenarios.victims import Victims, Watch, Who, until
from tests.support.gates import Gate
from tests.support.legion import PATIENCE
from tests.support.models import Company, company
from tests.support.sampling import sampled

ENOUGH = 10
"""How often a gate is opened: whoever comes back to it after a kill goes through."""

NUMBERS = itertools.count(1)


class When(Enum):
    STARTED = "program-started"
    ASKED = "first-request"
    STREAMING = "mid-stream"
    IN_A_TOOL = "in-a-tool"
    BETWEEN = "between-tools"


class Work:
    """A ticket whose agent writes files, streams slowly, stands at a gate inside a tool, and thinks for a while."""

    def __init__(self, here: Company) -> None:
        self.here = here
        self.victims = Victims(here)
        self.name = f"work{next(NUMBERS)}"
        self.gate = Gate(here.squad.folder / "gates", self.name)

    def begin(self, when: When | None = None) -> None:
        """Up to the moment."""
        self.here.script(self.name, self._script(when))
        self.dispatch()
        match when:
            case None:
                return
            case When.STARTED:
                until(lambda: self.has("started"), self.here, "the start")
            case When.ASKED | When.STREAMING:
                step = 1 if when is When.ASKED else 2
                until(lambda: step in self.requests(), self.here, f"request {step}")
            case When.IN_A_TOOL:
                self.gate.arrived()
            case When.BETWEEN:
                self.gate.open()
                until(lambda: 3 in self.requests(), self.here, "request 3")

    def dispatch(self) -> None:
        self.ticket = self.here.dispatch(self.name)
        self.tree = self.here.project.worktree(self.ticket)

    def requests(self) -> list[int | None]:
        """The steps that the model was asked for, of this ticket."""
        return [line.step for line in self.here.stage.lines() if line.script == self.name]

    def conversations(self) -> list[tuple[object, object]]:
        said = [event.facts for event in self.victims.journals(self.ticket) if event.kind == "conversation"]
        return [(facts["id"], facts["resumed"]) for facts in said]

    def told(self) -> str:
        """What the agent of the last run is told where its conversation goes on."""
        return (self.victims.runs(self.ticket)[-1] / "given/again.md").read_text()

    def transcript(self) -> str:
        """What Claude Code itself has written down of the conversation."""
        conversation = self.here.project.ticket(self.ticket).conversation
        (path,) = self.here.squad.data.root.glob(f"projects/*/agents/*/claude/projects/*/{conversation}.jsonl")
        return path.read_text()

    def lands(self) -> list[str | None]:
        """Let it go on. The outcomes of its runs, once it is done and nothing of what it wrote is lost."""
        self.gate.open(ENOUGH)
        project = self.here.project
        project.until_settled(self.ticket)
        page = project.ticket(self.ticket)
        assert page.ticket.state == "done", (page.ticket.reason, project.log(self.ticket)[-2000:])
        assert project.landed(f"{self.name}.txt") == "first\n"
        assert project.landed(f"{self.name}-after.txt") == "after\n"
        assert project.kept(self.ticket, f"{self.name}.ignored") == "ignored\n"
        assert {id for id, _ in self.conversations()} <= {page.conversation}
        return [run.outcome for run in page.runs]

    def is_over(self) -> bool:
        return self.here.project.state(self.ticket) == "done"

    def has(self, kind: str) -> bool:
        return any(event.kind == kind for event in self.victims.latest(self.ticket))

    def _script(self, when: When | None) -> str:
        first = f"echo '*.ignored' > .gitignore; echo first > {self.name}.txt; echo ignored > {self.name}.ignored"
        slow, waits = (0.3 if when is When.STREAMING else 0), (3 if when is When.BETWEEN else 0)
        after = f"test -e {self.name}.ignored && echo after > {self.name}-after.txt"
        steps = [
            f'say = "I begin."\ndelay = {3 if when is When.ASKED else 0}\n{bash(first)}',
            f'say = "{"I wait at the gate, and say so at length. " * 4}"\nslow = {slow}\n{bash(self.gate.pause)}',
            f'say = "I go on."\ndelay = {waits}\n{bash(after)}',
            'say = "Done."',
            # Whoever was cut off after its last word is asked to go on.
            'say = "It was done."',
            # The next attempt begins with what there may be not, and ends with what has to be there.
            f'attempt = 2\nsay = "Once more."\n{bash(f"{first}; {after}")}',
            'attempt = 2\nsay = "Done after all."',
        ]
        return "\n".join(f"[[step]]\n{step}\nusage = {USAGE}" for step in steps)


USAGE = "{input = 1000, output = 10, cache_read = 0, cache_write = 0}"


def bash(command: str) -> str:
    return f'call = {{tool = "Bash", input = {{command = {json.dumps(command)}}}}}'


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    """A gateway's port of its own, so that no other one can take it while ours is dead."""
    port = random.SystemRandom().randrange(24000, 30000)
    own_port = f"[daemon]\ngateway_port = {port}\n"
    with company(tmp_path_factory.mktemp("kills"), retries=10, settings=own_port, stand_in=True) as one:
        # The target is checked now, so that no check's runner dies in place of an agent's.
        one.project.until(one.project.dispatch("plain", "echo plain > plain.txt"), "done")
        yield one
        assert one.squad.end() == 0
        invariants.wait_until_gone(Victims(one).everything())


@pytest.fixture
def work(here: Company) -> Iterator[Callable[[], Work]]:
    """Makes tickets. At the end no two Claude Codes were ever seen in one worktree, and nothing of them lives."""
    made: list[Work] = []

    def one() -> Work:
        made.append(Work(here))
        return made[-1]

    with Watch() as watch:
        yield one
        for each in made:
            assert watch.saw(each.tree)
            until(partial(watch.is_clear, each.tree), here, f"the end of all processes in {each.tree}")
            each.gate.close()
    mine = {str(each.tree) for each in made}
    assert [pair for pair in watch.together if pair[0] in mine] == []


MATRIX = list(itertools.product(Who, When))
SURVIVED = (Who.DAEMON, Who.GATEWAY, Who.FORK_SERVER)
"""Whose death the program itself outlives."""


@pytest.mark.parametrize(
    "moment",
    sampled(MATRIX, 2, lambda moment: moment[0] in SURVIVED),
    ids=lambda moment: "-".join(one.value for one in moment),
)
def test_a_killed_part_costs_a_ticket_nothing_but_time(work: Callable[[], Work], moment: tuple[Who, When]):
    who, when = moment
    one = work()
    one.begin(when)
    one.victims.kill(who, one.ticket)
    outcomes = one.lands()
    if who in SURVIVED:
        assert outcomes == ["finished"]
        assert one.conversations() == [(one.conversations()[0][0], False)]
    elif who is Who.CLAUDE:
        assert outcomes == ["failed", "finished"]
    else:
        assert outcomes == ["lost", "finished"]
        assert one.here.project.ticket(one.ticket).ticket.attempt == 1
    if who in (Who.DAEMON, Who.FORK_SERVER):
        assert one.requests() == [1, 2, 3, 4]
    if who not in SURVIVED and when is When.IN_A_TOOL:
        assert f"Begun and never ended\n- Bash: {one.gate.pause[:40]}" in one.told()
        assert one.conversations()[-1][1] is True


@pytest.mark.soak
def test_after_a_power_cut_every_conversation_goes_on(work: Callable[[], Work]):
    all_of_them = [work() for _ in range(4)]
    for one in all_of_them:
        one.begin(When.IN_A_TOOL)
    all_of_them[0].victims.kill(Who.EVERYTHING, all_of_them[0].ticket)
    for one in all_of_them:
        assert one.lands() == ["lost", "finished"]
        assert f"Begun and never ended\n- Bash: {one.gate.pause[:40]}" in one.told()


POINTS = [
    Point.RUN_BEFORE_LAUNCH,
    Point.RUN_AFTER_LAUNCH,
    Point.SAVE_BEFORE_SNAPSHOT,
    Point.RUN_BEFORE_CONCLUDE,
    Point.RUN_AFTER_CONCLUDE,
    Point.RUNNER_RUN_BEFORE_LOCK,
    Point.RUNNER_RUN_AFTER_LOCK,
    Point.RUNNER_PROGRAM_BEFORE_START,
    Point.RUNNER_PROGRAM_AFTER_START,
    Point.RUNNER_RESULT_BEFORE_WRITE,
    Point.RUNNER_RESULT_AFTER_WRITE,
]


@pytest.mark.parametrize("point", sampled(POINTS, 1), ids=lambda point: point.value)
def test_whoever_dies_between_the_last_word_and_the_result_costs_no_attempt(
    here: Company, work: Callable[[], Work], tmp_path: Path, point: Point
):
    reached = tmp_path / "reached"
    assert here.squad.end() == 0
    here.start({"LEGION_CRASH_AT": f"{point.value}#1", "LEGION_CRASH_LOG": str(reached)})
    one = work()
    one.begin()
    one.gate.open(ENOUGH)
    until(lambda: reached.exists() and point.value in reached.read_text(), here, point.value)
    if point.value.startswith("jobs."):
        assert here.squad.process is not None
        here.squad.process.wait(PATIENCE)
        here.start()
    one.lands()
    assert here.project.ticket(one.ticket).ticket.attempt == 1


MUTE = """#!/bin/sh
[ "$1" = --version ] && echo "2.1.325 (Claude Code)" && exit
exec sleep 1000
"""


def test_what_was_cut_off_begins_anew_or_is_told_even_if_the_next_run_dies_before_it_can_say_so(
    work: Callable[[], Work],
):
    """Claude Code notes that it was given something to do before it notes what; from that nothing can be resumed.

    What it resumes, and what it keeps of a call, are Claude Code's own subjects. Something mute plays who dies first.
    """
    one = work()
    mute = one.here.squad.folder / "claude-mute"
    mute.write_text(MUTE)
    mute.chmod(0o755)
    with one.here.using(mute):
        one.begin(When.STARTED)
    conversation = one.here.project.ticket(one.ticket).conversation
    one.victims.cut_the_power()
    state = one.here.squad.data.project(1) / f"agents/ticket-{one.ticket}/claude/projects"
    begun = state / re.sub(r"[^a-zA-Z0-9]", "-", str(one.tree)) / f"{conversation}.jsonl"
    begun.parent.mkdir(parents=True, exist_ok=True)
    begun.write_text(json.dumps({"type": "queue-operation", "operation": "enqueue", "sessionId": conversation}) + "\n")
    with one.here.using(None):
        one.here.start()
        one.gate.arrived()
        assert one.conversations()[-1] == (conversation, False)
    with one.here.using(mute):
        one.victims.kill(Who.RUNNER, one.ticket)
        until(lambda: len(one.victims.runs(one.ticket)) == 3 and one.has("started"), one.here, "the third start")
    with one.here.using(None):
        one.victims.kill(Who.RUNNER, one.ticket)
        assert one.lands() == ["lost", "lost", "lost", "finished"]
    assert f"Begun and never ended\n- Bash: {one.gate.pause[:40]}" in one.told()
    assert "Begun and never ended" in one.transcript()


@pytest.mark.parametrize("kills", [3, pytest.param(10, marks=pytest.mark.soak)])
def test_a_daemon_killed_again_and_again_costs_not_one_request(work: Callable[[], Work], kills: int):
    one = work()
    one.begin(When.STREAMING)
    one.victims.kill(Who.DAEMON, one.ticket)
    one.gate.arrived()
    for _ in range(kills - 1):
        one.victims.kill(Who.DAEMON, one.ticket)
    assert one.lands() == ["finished"]
    assert one.requests() == [1, 2, 3, 4]


@pytest.mark.parametrize("kills", [2, pytest.param(10, marks=pytest.mark.soak)])
def test_a_gateway_killed_again_and_again_keeps_its_port_and_loses_no_count(
    here: Company, work: Callable[[], Work], kills: int
):
    one = work()
    steps = [f'say = "Step {n}."\n{bash(f"echo {n} >> steps.txt; {one.gate.pause}")}' for n in range(kills)]
    steps += ['say = "Done."']
    here.script(one.name, "\n".join(f"[[step]]\n{step}\nusage = {USAGE}" for step in steps))
    one.dispatch()
    folder = GatewayFolder(here.squad.data.gateway)
    addresses = set()
    for served in range(1, kills + 1):
        one.gate.arrived()
        until(partial(has_counted, folder, one.ticket, served), here, f"line {served} of the ledger")
        addresses.add(json.loads(folder.record.read_text())["url"])
        one.victims.kill(Who.GATEWAY, one.ticket)
        one.gate.open()
    page = here.project.until(one.ticket, "done")
    assert [run.outcome for run in page.runs] == ["finished"]
    assert len(addresses) == 1
    assert one.requests() == list(range(1, kills + 2))
    until(lambda: getattr(here.project.ticket(one.ticket).usage, "requests", 0) == kills + 1, here, "the whole count")
    usage = here.project.ticket(one.ticket).usage
    assert usage is not None
    assert (usage.input, usage.output) == (1000 * (kills + 1), 10 * (kills + 1))


def has_counted(folder: GatewayFolder, ticket: int, requests: int) -> bool:
    """Whether the ledger has so many requests of the ticket."""
    position, found = LedgerPosition(), 0
    while True:
        lines, behind = ledger.read(folder, position)
        found += sum(isinstance(line, RequestEntry) and line.ticket == ticket for line in lines)
        if behind == position:
            return found == requests
        position = behind


@pytest.mark.soak
@pytest.mark.parametrize("round", range(6))
def test_random_kills_in_any_order_never_cost_a_ticket(here: Company, work: Callable[[], Work], seed: int, round: int):
    """Fewer kills than one attempt has lives. A killed Claude Code costs an attempt, so that is left out."""
    chance = random.Random(seed + round)
    one = work()
    one.begin(chance.choice(list(When)))
    for who in chance.choices([who for who in Who if who is not Who.CLAUDE], k=5):
        until(lambda: one.victims.is_at_work(one.ticket) or one.is_over(), here, "a start")
        if not one.is_over():
            one.victims.kill(who, one.ticket)
    one.lands()
    assert here.project.ticket(one.ticket).ticket.attempt == 1
