"""kill -9 in the middle of a standing agent's turn: it goes on, and every message is in its conversation once."""

from __future__ import annotations

import contextlib
import itertools
import random
import threading
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path

import psutil
import pytest

from legion.domain.errors import LegionError
from legion.system.crash import Point
from tests.scenarios.victims import Victims, Who, until
from tests.support.gates import Gate
from tests.support.legion import PATIENCE
from tests.support.models import Company, company
from tests.support.sampling import sampled
from tests.support.staff import Staff, bash

ENOUGH = 10
NUMBERS = itertools.count(1)
SURVIVED = (Who.DAEMON, Who.GATEWAY, Who.FORK_SERVER)
"""Whose death the program itself outlives."""


class When(Enum):
    STARTED = "program-started"
    ASKED = "first-request"
    IN_A_TOOL = "in-a-tool"


class AgentVictims(Victims):
    """By the agent's number instead of a ticket's."""

    def __init__(self, here: Company) -> None:
        super().__init__(here)
        self._company = here

    def runs(self, ticket: int) -> list[Path]:
        return Staff(self._company).runs(ticket)

    def claudes(self, ticket: int) -> list[psutil.Process]:
        tree = str(self._company.project.worktrees / f"agent-{ticket}")
        found = []
        for process in psutil.process_iter():
            try:
                if process.cwd() == tree and "--replay-user-messages" in process.cmdline():
                    found.append(process)
            except psutil.Error:
                continue
        return found


class Turn:
    """An agent that writes a file, stands at a gate inside a tool, writes another, and says that it is done."""

    def __init__(self, here: Company) -> None:
        self.here = here
        self.staff = Staff(here)
        self.victims = AgentVictims(here)
        self.name = f"turn{next(NUMBERS)}"
        self.gate = Gate(here.squad.folder / "gates", self.name)
        self.staff.script(
            self.name,
            f'say = "I begin."\ndelay = 1.5\n{bash("echo first > first.txt")}',
            f'say = "I wait."\n{bash(self.gate.pause)}',
            f'say = "I go on."\n{bash("echo after > after.txt")}',
            'say = "Done."',
        )

    def begin(self, when: When | None = None) -> None:
        self.staff.hire(self.name)
        # Fired agents count too.
        self.number = len(self.staff.lines())
        match when:
            case None:
                return
            case When.STARTED:
                until(lambda: self.has("started"), self.here, "the start")
            case When.ASKED:
                until(lambda: any(line.script == self.name for line in self.here.stage.lines()), self.here, "a request")
            case When.IN_A_TOOL:
                self.gate.arrived()

    def has(self, kind: str) -> bool:
        return any(event.kind == kind for event in self.victims.latest(self.number))

    def ends(self) -> list[str | None]:
        """Let it go on. The outcomes of its turns, once it idles and every message was heard once."""
        self.gate.open(ENOUGH)
        self.staff.until_idle(self.name)
        self.staff.check()
        tree = self.here.project.worktrees / f"agent-{self.number}"
        page = self.staff.page(self.name)
        assert (tree / "first.txt").read_text() == "first\n", page
        assert (tree / "after.txt").read_text() == "after\n", page
        results = self.staff.results(self.name)
        # A turn that was lost behind its last word says it with the next one's.
        assert "\n".join(results).count("Done.") == 1, results
        return [turn.outcome for turn in page.turns]

    def leave(self) -> None:
        self.staff.fire(self.name)
        self.gate.close()


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    """A gateway's port of its own, so that no other one can take it while ours is dead."""
    port = random.SystemRandom().randrange(30000, 32000)
    settings = f"[daemon]\ngateway_port = {port}\n"
    with company(tmp_path_factory.mktemp("turns"), retries=10, settings=settings, stand_in=True) as one:
        yield one


@pytest.fixture
def turn(here: Company) -> Iterator[Callable[[], Turn]]:
    made: list[Turn] = []

    def one() -> Turn:
        made.append(Turn(here))
        return made[-1]

    yield one
    for each in made:
        each.leave()


MATRIX = list(itertools.product(Who, When))


@pytest.mark.parametrize(
    "moment",
    sampled(MATRIX, 2, lambda moment: moment[0] in SURVIVED),
    ids=lambda moment: "-".join(one.value for one in moment),
)
def test_a_killed_part_loses_and_doubles_no_message(turn: Callable[[], Turn], moment: tuple[Who, When]):
    who, when = moment
    one = turn()
    one.begin(when)
    one.staff.tell(one.name, "This comes while you work.")
    one.victims.kill(who, one.number)
    outcomes = one.ends()
    heard = [message for message in one.staff.mail_of(one.name) if message.text == "This comes while you work."]
    assert [message.delivery for message in heard] == ["heard"]
    if who in SURVIVED:
        assert outcomes == ["finished", "finished"]
    elif who is not Who.CLAUDE:
        assert outcomes[0] == "lost"


POINTS = [
    *(point for point in Point if point.value.startswith("jobs.serve.")),
    Point.CONDUCT_BEFORE_CLAIM,
    Point.CONDUCT_AFTER_CLAIM,
    Point.SAVE_BEFORE_SNAPSHOT,
    Point.SAVE_AFTER_KEEP,
    Point.RUNNER_RUN_BEFORE_LOCK,
    Point.RUNNER_RUN_AFTER_LOCK,
    Point.RUNNER_PROGRAM_BEFORE_START,
    Point.RUNNER_PROGRAM_AFTER_START,
    Point.RUNNER_RESULT_BEFORE_WRITE,
    Point.RUNNER_RESULT_AFTER_WRITE,
]
MOMENTS = [(point, 1) for point in POINTS] + [
    (point, nth) for point in (Point.STORE_WRITE_BEFORE_COMMIT, Point.STORE_WRITE_AFTER_COMMIT) for nth in range(2, 8)
]


@pytest.mark.parametrize("moment", sampled(MOMENTS, 1), ids=lambda moment: f"{moment[0].value}-{moment[1]}")
def test_whoever_dies_at_a_point_of_a_turn_loses_and_doubles_nothing(
    here: Company, turn: Callable[[], Turn], tmp_path: Path, moment: tuple[Point, int]
):
    point, nth = moment
    reached = tmp_path / "reached"
    one = turn()
    one.gate.open(ENOUGH)
    # The hire itself is written before anybody can die, else nobody would know whether it was asked for.
    here.project.pause()
    one.begin()
    assert here.squad.end() == 0
    here.start({"LEGION_CRASH_AT": f"{point.value}#{nth}", "LEGION_CRASH_LOG": str(reached)})
    # Whoever dies while it answers gives no answer.
    with contextlib.suppress(LegionError, OSError):
        here.project.resume()
    until(lambda: reached.exists() and reached.read_text().split("\n").count(point.value) >= nth, here, point.value)
    if not point.value.startswith("runner."):
        assert here.squad.process is not None
        here.squad.process.wait(PATIENCE)
        here.start()
        here.project.resume()
    one.ends()


def test_words_in_the_middle_of_a_turn_that_a_kill_cut_off_are_heard_once(turn: Callable[[], Turn]):
    one = turn()
    one.begin(When.IN_A_TOOL)
    one.staff.tell(one.name, "Between two steps.")
    telling = threading.Thread(target=one.staff.tell, args=(one.name, "In this very turn."), kwargs={"now": True})
    telling.start()
    # The program has it in its queue, and the model has not seen it.
    (transcript,) = one.staff.transcripts(one.staff.lines()[one.name].id)
    until(lambda: "In this very turn." in transcript.read_text(), one.here, "the message in the queue")
    one.victims.kill(Who.RUNNER, one.number)
    telling.join(PATIENCE)
    assert one.ends()[0] == "lost"
    texts = [message.text for message in one.staff.mail_of(one.name) if message.delivery == "heard"]
    assert (texts.count("Between two steps."), texts.count("In this very turn.")) == (1, 1)
