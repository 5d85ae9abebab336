"""Claude Codes that are stopped, that meet a usage limit, and that work many at once: nothing is left over."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from legion.domain.scheduling.throttle import APART
from tests.scenarios.victims import Victims, Watch, until
from tests.support import elsewhere
from tests.support.gates import Gate
from tests.support.legion import PATIENCE
from tests.support.models import Company, company
from tests.support.sampling import sampled
from tests.support.stand_in import build

NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    # Limits that tests leave behind would hold those that come after them.
    with company(tmp_path_factory.mktemp("ends"), settings="[governor]\non = false\n", stand_in=True) as one:
        yield one


@pytest.fixture
def gate(here: Company) -> Iterator[Gate]:
    one = Gate(here.squad.folder / "gates", f"gate{next(NUMBERS)}")
    yield one
    one.close()


def bash(command: str) -> str:
    return f'call = {{tool = "Bash", input = {{command = {json.dumps(command)}}}}}'


def script(here: Company, name: str, *steps: str) -> str:
    here.script(name, "\n".join(f"[[step]]\n{step}" for step in steps))
    return name


STUBBORN = "(trap '' TERM INT HUP; setsid sleep 4711 & sleep 4711) & "
"""What a tool may leave running: deaf to every polite signal, one of them in a session of its own."""


WHEN = ["at-once", "while-it-starts", "while-the-model-hangs", "in-a-tool"]
AT_WORK = WHEN[2:]
"""Only then is it Claude Code itself, and what it has started, that has to end."""


@pytest.mark.parametrize("when", sampled(WHEN, 2, AT_WORK.__contains__))
def test_a_stop_answers_soon_and_leaves_no_process(here: Company, gate: Gate, when: str):
    name = f"stopped{next(NUMBERS)}"
    hangs = "delay = 600\n" if when == "while-the-model-hangs" else ""
    script(here, name, f'{hangs}say = "I wait."\n{bash(STUBBORN + gate.pause)}', 'say = "Done."')
    victims = Victims(here)
    with here.using(None if when in AT_WORK else build.program()), Watch() as watch:
        ticket = here.dispatch(name)
        tree = here.project.worktree(ticket)
        if when == "in-a-tool":
            gate.arrived()
        elif when == "while-the-model-hangs":
            until(lambda: any(line.script == name for line in here.stage.lines()), here, "the request")
        elif when == "while-it-starts":
            until(lambda: any(event.kind == "starting" for event in victims.latest(ticket)), here, "the start")
        asked = time.monotonic()
        here.project.stop(ticket)
        answered = time.monotonic() - asked
        page = here.project.until_idle(ticket)
        until(lambda: watch.is_clear(tree), here, "the end of everything")
        gone = time.monotonic() - asked
    assert page.ticket.state == "stopped"
    assert [run.outcome for run in page.runs] in (["stopped"], [] if when == "at-once" else ["stopped"])
    if when == "while-the-model-hangs":
        until(lambda: getattr(here.project.ticket(ticket).usage, "requests", 0) == 1, here, "the count of what it cost")
    # Two seconds on a quiet machine.
    assert answered < 10
    assert gone < 20


def test_a_usage_limit_parks_tickets_until_the_reset_and_survives_a_power_cut(here: Company, gate: Gate):
    """They meet the limit at the same moment, and wake one after the other."""
    names = [f"limited{next(NUMBERS)}" for _ in range(2)]
    for name in names:
        script(
            here,
            name,
            f'say = "I begin."\n{bash(f"echo first > {name}.txt; {gate.pause}")}',
            f'status = 429\ntimes = 1\nlimit = {{resets_in = 900}}\nsay = "On."\n{bash(f"echo more >> {name}.txt")}',
            'say = "Done."',
        )
    ids = [here.dispatch(name) for name in names]
    gate.arrived(len(ids))
    gate.open(len(ids))
    pages = [here.project.until(ticket, "parked") for ticket in ids]
    wakes = sorted(page.parked_until or 0.0 for page in pages)
    assert wakes[0] > time.time() + 600
    assert all(late - early >= APART - 0.001 for early, late in itertools.pairwise(wakes)), wakes
    Victims(here).cut_the_power()
    here.start()
    assert sorted(here.project.ticket(ticket).parked_until or 0.0 for ticket in ids) == wakes
    for ticket, name in zip(ids, names, strict=True):
        here.told("resume", str(ticket))
        page = here.project.until(ticket, "done")
        assert (page.ticket.attempt, [run.outcome for run in page.runs]) == (1, ["limited", "finished"])
        assert here.project.landed(f"{name}.txt") == "first\nmore\n"
        said = [event.facts for event in here.journal(ticket) if event.kind == "conversation"]
        assert [(facts["id"], facts["resumed"]) for facts in said] == [
            (page.conversation, False),
            (page.conversation, True),
        ]


@pytest.mark.soak
def test_a_limit_that_ends_soon_wakes_its_ticket_by_itself(here: Company):
    """Claude Code waits for a reset that is near, once; then it gives up, and we wait."""
    name = script(
        here,
        "soon",
        f'say = "I begin."\n{bash("echo first > soon.txt")}',
        f'status = 429\ntimes = 2\nlimit = {{resets_in = 4}}\nsay = "I go on."\n{bash("echo more >> soon.txt")}',
        'say = "Done."',
    )
    ticket = here.dispatch(name)
    page = here.project.until(ticket, "done")
    assert (page.ticket.attempt, [run.outcome for run in page.runs]) == (1, ["limited", "finished"])
    assert here.project.landed("soon.txt") == "first\nmore\n"


ROOM_FOR_EIGHT = """\
[checks.test]
run = "sh check.sh"

[agents]
parallel = 8
"""


@pytest.mark.parametrize("count", [2, pytest.param(8, marks=pytest.mark.soak)])
def test_many_at_once_work_land_and_leave_no_file_outside(tmp_path: Path, count: int):
    with company(tmp_path, config=ROOM_FOR_EIGHT, module=elsewhere.__name__) as here:
        gate = Gate(tmp_path / "gates", "gate")
        before, checkout = outside(tmp_path), here.project.repository.fingerprint()
        for n in range(count):
            steps = (bash(f"echo {n} > $TMPDIR/scratch; {gate.pause}"), bash(f"echo {n} > {n}.txt"), 'say = "Done."')
            script(here, f"many{n}", *steps)
        ids = [here.dispatch(f"many{n}") for n in range(count)]
        gate.arrived(count)
        gate.open(count)
        here.project.until_settled(patience=2 * PATIENCE)
        assert {here.project.state(ticket) for ticket in ids} == {"done"}
        assert [here.project.landed(f"{n}.txt") for n in range(count)] == [f"{n}\n" for n in range(count)]
        assert here.project.repository.fingerprint() == checkout
        assert here.squad.end() == 0
        assert outside(tmp_path) == before
        assert here.squad.processes() == [
            process for process in here.squad.processes() if process.pid == here.stage.pid
        ]
        gate.close()


OURS = {"data", "ada-legion", "gates", "scripts", "rehearsal.jsonl"}


def outside(folder: Path) -> set[Path]:
    """Everything but the data folder, the worktrees and what the test itself needs."""
    return {path for path in folder.rglob("*") if path.relative_to(folder).parts[0] not in OURS}
