"""Runs that do not get on, over a real daemon: agents with a scripted model, and plain programs.

Nobody waits for a time to pass here. Where something must be left alone, another run that hangs shows that there was
time enough: it began later, and was cut off.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from legion.rehearsal.protocol.log import RequestKind
from legion.system.crash import Point
from legion.wire.mail import AnswerQuestion
from legion.wire.ticket_pages import TicketPage
from tests.scenarios.victims import Victims, Who, until
from tests.support.gates import Gate
from tests.support.models import Company, company
from tests.support.repository import CHECK, Repository
from tests.support.staff import Staff
from tests.support.stand_in import build

SETTINGS = '[claude]\nmodel = "sonnet"\n[liveness]\nevery = 0.2\n'
PATIENT = f"{CHECK}\n[liveness]\nrepeats = 3\nhang = 3600\nprogram = 3600\nsilence = 3600\n"
"""Nothing but loops is noticed."""
HASTY = PATIENT.replace("hang = 3600\nprogram = 3600", "hang = 2\nprogram = 2")
LOOPS, HANGS, DEAD = "loops-are-broken", "hanging-is-cut-off", "dead-is-ended"
MANY = 300
"""Calls of an agent that heeds nobody; it is stopped long before."""
DONE = '[[step]]\nsay = "Done."\n'


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Company]:
    with company(tmp_path_factory.mktemp("liveness"), settings=SETTINGS, config=PATIENT, stand_in=True) as one:
        yield one


@pytest.fixture(scope="module")
def hasty(here: Company) -> Company:
    """The same people with another project, where nothing may hang."""
    project = here.squad.adopt(Repository(here.squad.folder / "hasty", HASTY))
    return Company(here.squad, project, here.stage, here.scripts)


@pytest.fixture
def gate(here: Company, request: pytest.FixtureRequest) -> Iterator[Gate]:
    one = Gate(here.squad.folder / "gates", request.node.name[:40])
    yield one
    one.close()


def call(command: str, say: str = "I try.") -> str:
    tool = f'{{tool = "Bash", input = {{command = {json.dumps(command)}}}}}'
    return f"[[step]]\nsay = {json.dumps(say)}\ncall = {tool}\n\n"


def steps(page: TicketPage) -> list[tuple[str, str]]:
    found = [event.data for event in page.history if event.kind == "watchdog.step"]
    return [(str(data["step"]), str(data["rule"])) for data in found]


def told(here: Company, ticket: int) -> list[str]:
    return [str(event.facts["text"]) for event in here.journal(ticket) if event.kind == "told"]


def hangs(here: Company, name: str, gate: Gate) -> int:
    """A ticket whose agent calls something that waits for ever, and does its work once that was cut off."""
    here.script(name, call(gate.pause) + call(f"echo ok > {name}.txt") + DONE)
    return here.dispatch(name)


def heeds(here: Company, name: str, gate: Gate) -> int:
    """A ticket whose agent goes round in circles until it is told so: what it is told quotes its call, which names the
    script that it goes on with."""
    here.script(name, call(f"echo 3 failed; echo took $$ ms # rehearsal: {name}-heeds") * MANY + DONE)
    here.script(f"{name}-heeds", call(f"{gate.pause}; echo ok > {name}.txt") + DONE)
    return here.dispatch(name)


def test_a_looping_agent_is_nudged_and_goes_on(here: Company, gate: Gate):
    ticket = heeds(here, "nudged", gate)
    gate.arrived()
    (words,) = told(here, ticket)
    assert "It made the same call" in words
    assert "take another way" in words
    doing = here.project.ticket(ticket).ticket.doing
    assert doing.startswith("loops: "), doing
    assert ", nudged " in doing
    assert " times `echo 3 failed" in here.told("status")
    assert "nudged: it made the same call" in here.told("ticket", str(ticket))
    gate.open()
    page = here.project.until(ticket, "done")
    assert page.ticket.attempt == 1
    assert steps(page) == [("nudge", LOOPS)]


def test_who_heeds_nothing_is_interrupted_then_replaced_by_fresh_eyes_then_by_another_model_then_a_person_is_asked(
    here: Company,
):
    here.script("deaf", call("echo the same") * MANY + DONE)
    ticket = here.dispatch("deaf")
    page = here.project.until(ticket, "parked")
    assert steps(page) == [("nudge", LOOPS), ("interrupt", LOOPS), ("end", LOOPS)] * 3
    assert [run.outcome for run in page.runs] == ["stopped"] * 3
    lines = [line for line in here.stage.lines() if line.script == "deaf" and line.kind is RequestKind.SCRIPTED]
    heard = list(dict.fromkeys((line.conversation, "opus" in line.model) for line in lines))
    assert [opus for _, opus in heard] == [False, False, True]
    assert len({conversation for conversation, _ in heard}) == 3
    back = [str(event.data["reason"]) for event in page.history if event.data.get("step") == "tryagain"]
    assert "next: fresh eyes" in back[0]
    assert "next: the next model of the ladder: opus" in back[1]
    (question,) = [one for one in here.squad.client.inbox().questions if one.ticket == ticket]
    assert "3 attempts did not succeed, the last because it made the same call" in question.words
    advised = [words for words in told(here, ticket) if words.startswith("You were interrupted by Legion")]
    assert len(advised) == 3
    here.squad.client.answer(question.id, AnswerQuestion(allowed=False))
    assert here.project.ticket(ticket).ticket.reason.startswith("gave up after 3 attempts: it made the same call")


BUSY = """
import os, sys, time
while not os.path.exists(sys.argv[1]):
    until = time.process_time() + 0.1
    while time.process_time() < until:
        pass
    time.sleep(0.3)
"""
"""It moves no byte, and uses a quarter of a processor."""


def test_a_hanging_tool_is_cut_off_and_those_that_work_are_left_alone(hasty: Company, gate: Gate):
    go = hasty.squad.folder / "gates" / "go"
    busy = f"echo > {go}.busy; {build.PYTHON} -c '{BUSY}' {go}; echo b > busy.txt"
    quiet = f"echo > {go}.quiet; while ! [ -e {go} ]; do echo x >> log; sleep 0.2; done; mv log quiet.txt"
    hasty.script("busy", call(busy) + DONE)
    hasty.script("quiet", call(quiet) + DONE)
    working = [hasty.dispatch("busy"), hasty.dispatch("quiet")]
    until(lambda: all(Path(f"{go}.{name}").exists() for name in ("busy", "quiet")), hasty, "both at work")
    # Only the real program shows that it uses no processor while it waits for its tool.
    with hasty.using(None):
        hanging = hangs(hasty, "hanging", gate)
        page = hasty.project.until(hanging, "done")
    assert steps(page) == [("interrupt", HANGS)]
    assert page.ticket.attempt == 1
    (words,) = told(hasty, hanging)
    assert "has used no processor and moved no byte for" in words
    assert "`timeout 60 ...`" in words
    go.touch()
    for ticket in working:
        page = hasty.project.until(ticket, "done")
        assert (steps(page), page.ticket.attempt) == ([], 1)


def test_who_waits_for_a_person_is_not_touched(hasty: Company, gate: Gate):
    outside = hasty.squad.folder / "gates" / "outside.txt"
    wanted = f'{{tool = "Write", input = {{file_path = "{outside}", content = "x"}}}}'
    hasty.script("asks", f'[[step]]\nsay = "I ask."\ncall = {wanted}\n\n' + call("echo a > asks.txt") + DONE)
    asking = hasty.dispatch("asks", ask=True)
    until(lambda: hasty.project.ticket(asking).questions, hasty, "the question")
    other = hangs(hasty, "meanwhile", gate)
    assert steps(hasty.project.until(other, "done")) == [("interrupt", HANGS)]
    page = hasty.project.ticket(asking)
    assert (steps(page), page.ticket.state) == ([], "working")
    hasty.squad.client.answer(page.questions[0].id, AnswerQuestion(allowed=True))
    assert steps(hasty.project.until(asking, "done")) == []


def test_a_plain_program_that_hangs_is_ended_and_its_next_attempt_hears_why(hasty: Company):
    command = '[ "$LEGION_ATTEMPT" = 1 ] && sleep infinity; cp "$LEGION_BRIEFING" brief.txt'
    ticket = hasty.project.dispatch("plain", command, max_attempts=2)
    page = hasty.project.until(ticket, "done")
    assert steps(page) == [("end", HANGS)]
    assert (page.ticket.attempt, page.runs[0].outcome) == (2, "stopped")
    assert page.runs[0].detail.startswith("its program has used no processor and moved no byte for")
    assert "Its program has used no processor" in (hasty.project.landed("brief.txt") or "")


def test_where_a_project_switches_it_off_nothing_happens(hasty: Company, gate: Gate):
    root = hasty.squad.folder / "left-alone"
    alone = hasty.squad.adopt(Repository(root, HASTY.replace("repeats", "on = false\nrepeats")))
    hanging = alone.dispatch("hangs", f"{gate.pause}; echo x > x.txt", max_attempts=1)
    gate.arrived()
    watched = hasty.project.dispatch("watched", "sleep infinity", max_attempts=1)
    assert steps(hasty.project.until(watched, "failed")) == [("end", HANGS)]
    assert (steps(alone.ticket(hanging)), alone.state(hanging)) == ([], "working")
    gate.open()
    alone.until(hanging, "done")


def test_a_program_that_dies_is_a_failed_attempt_and_one_that_nobody_buries_is_ended(hasty: Company, gate: Gate):
    hasty.script("mortal", call(f'[ "$LEGION_ATTEMPT" = 1 ] && {gate.pause}; echo m > mortal.txt') + DONE)
    ticket = hasty.dispatch("mortal")
    gate.arrived()
    victims = Victims(hasty)
    victims.kill(Who.CLAUDE, ticket)
    page = hasty.project.until(ticket, "done")
    assert [run.outcome for run in page.runs] == ["failed", "finished"]
    assert steps(page) == []

    unburied = hasty.project.dispatch("zombie", f'[ "$LEGION_ATTEMPT" = 1 ] && {gate.pause}; echo z > z.txt')
    gate.arrived()
    # The runner records the start behind it.
    until(lambda: [event for event in victims.latest(unburied) if event.kind == "started"], hasty, "the start")
    runner = victims.runner(unburied)
    runner.send_signal(signal.SIGSTOP)
    (started,) = [event for event in victims.latest(unburied) if event.kind == "started"]
    for child in runner.children(recursive=True):
        if child.pid == started.facts["pid"]:
            child.kill()
    until(lambda: steps(hasty.project.ticket(unburied)), hasty, "the step")
    runner.send_signal(signal.SIGCONT)
    page = hasty.project.until(unburied, "done")
    assert (steps(page), page.ticket.attempt) == ([("end", DEAD)], 2)


def test_a_program_that_is_frozen_is_silent_and_replaced(here: Company, gate: Gate):
    quiet = here.squad.adopt(Repository(here.squad.folder / "quiet", PATIENT.replace("silence = 3600", "silence = 5")))
    there = Company(here.squad, quiet, here.stage, here.scripts)
    there.script("frozen", call(f'[ "$LEGION_ATTEMPT" = 1 ] && {gate.pause}; echo f > frozen.txt') + DONE)
    ticket = there.dispatch("frozen")
    gate.arrived()
    for one in Victims(there).claudes(ticket):
        one.suspend()
    gate.open()
    page = there.project.until(ticket, "done")
    assert steps(page)[:3] == [(step, "silent-is-woken") for step in ("nudge", "interrupt", "end")]
    assert [run.outcome for run in page.runs] == ["stopped", "finished"]


def test_a_standing_agent_is_helped_too_and_its_parent_hears_of_the_end(here: Company):
    staff = Staff(here)
    tool = '{tool = "Bash", input = {command = "echo round"}}'
    staff.script("round", *[f'say = "Again."\ncall = {tool}'] * MANY)
    staff.hire("round")
    until(lambda: staff.results("round"), here, "the end of its turn")
    (said,) = staff.results("round")
    assert said.startswith("round did not complete its turn: it made the same call")
    lines = here.squad.client.history(here.project.cwd).lines
    found = [line.data["step"] for line in lines if line.kind == "watchdog.step" and "agent" in line.data]
    assert found == ["nudge", "interrupt", "end"]
    (turn,) = {line.run for line in lines if line.kind == "run.started" and line.data.get("name") == "round"}
    replayed = here.squad.client.history(None, run=turn).lines
    assert {line.run for line in replayed} == {turn}
    assert {"run.started", "begins", "returned", "told", "watchdog.step", "run.ended"} <= {
        line.kind for line in replayed
    }


@pytest.mark.timeout(300)
def test_daemons_that_are_killed_in_the_middle_of_a_step_take_it_once_all_together(tmp_path: Path):
    """The first dies when it has written the step down, the second when it has taken it."""
    with company(tmp_path, settings=SETTINGS, config=PATIENT, stand_in=True) as here:
        gate = Gate(tmp_path / "gates", "once")
        here.squad.end()
        here.start({"LEGION_CRASH_AT": Point.LIVE_AFTER_NOTE.value})
        ticket = heeds(here, "once", gate)
        _until_dead(here)
        here.start({"LEGION_CRASH_AT": Point.LIVE_AFTER_STEP.value})
        _until_dead(here)
        gate.arrived()
        here.start()
        gate.open()
        page = here.project.until(ticket, "done")
        assert steps(page) == [("nudge", LOOPS)]
        assert len(told(here, ticket)) == 1
        gate.close()


def _until_dead(here: Company) -> None:
    assert here.squad.process is not None
    assert here.squad.process.wait(90) == -signal.SIGKILL
