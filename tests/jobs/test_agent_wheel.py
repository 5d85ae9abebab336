"""A person takes over a standing agent, and parts die at any moment: each message is read once, each turn ends."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from legion.domain.agents.agent import ROOT
from legion.domain.agents.mail import Delivery
from legion.domain.runs import Outcome
from legion.domain.takeovers import Takeover
from legion.drivers import InterruptRequest, Program
from legion.jobs.turn import wheel
from legion.runner.spec import TERMINAL_SOCKET, RunSpec, write_spec
from legion.service.agents import attach
from legion.service.agents import hire as hiring
from legion.store.staff import agents
from legion.store.work import takeovers
from legion.wire.agents import HireAgent
from legion.wire.errors import StateConflict
from legion.wire.terminal import AttachAgent, GiveBackAgent
from tests.jobs.office import Office, all_mail
from tests.support.listening_runner import listening

TURN_ENDS = (Outcome.INTERRUPTED, Outcome.FINISHED, Outcome.LOST)
"""How the turn ends in which a person wants the conversation."""
WHEEL_ENDS = (
    (Outcome.INTERRUPTED,),
    (Outcome.FINISHED,),
    (Outcome.LOST, Outcome.INTERRUPTED),
    (Outcome.LOST, Outcome.LOST, Outcome.FINISHED),
)
"""How the turns end in which the person holds it: a lost one opens again."""


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    one = Office(tmp_path)
    yield one
    one.close()


def next_turn(office: Office, *, crashes: bool) -> bool:
    """Starts the turn that is due, as a wheel where a person wants it; the daemon may die after that."""
    office.conduct()
    (number,) = office.claims
    if crashes:
        office.crash()
        office.conduct()
    agent, run = office.turn(number)
    with office.context.store.read() as tx:
        attended = wheel.attendance(tx, agent, run)
    program = Program(argv=("agent",), cwd=office.root, env={})
    options = {} if attended is None else {"wheel": True}
    write_spec(
        office.context.data.runs / run.name, RunSpec(run=run.name, program=program, sandbox=None, options=options)
    )
    return attended is not None


@pytest.mark.parametrize(
    ("turn_end", "wheel_ends", "crashes"),
    [
        pytest.param(*case, id=f"{case[0].value}-{'-'.join(one.value for one in case[1])}-{case[2]}")
        for case in product(TURN_ENDS, WHEEL_ENDS, (False, True))
    ],
)
def test_killed_at_any_moment_of_a_takeover_no_message_is_lost_and_no_turn_runs_twice(
    office: Office, turn_end: Outcome, wheel_ends: tuple[Outcome, ...], crashes: bool
):
    hiring.hire(office.context, ROOT, HireAgent(task="work", cwd=str(office.root), name="ada"))
    assert not next_turn(office, crashes=crashes)
    (number,) = office.claims
    office.take_prompt(number)
    with office.context.store.write() as tx:
        takeovers.put(tx, Takeover(agent=number, owes=False, alone=office.turn(number)[1].id))
    office.end_turn(number, turn_end)
    for end in wheel_ends:
        assert next_turn(office, crashes=crashes), "the person gets the conversation, and again after a kill"
        office.end_turn(number, end)
    alone = 0
    office.conduct()
    while office.claims:
        assert not next_turn(office, crashes=crashes), "the person has left"
        office.take_prompt(number)
        office.end_turn(number, Outcome.FINISHED)
        alone += 1
        office.conduct()
    (agent,) = office.standing()
    with office.context.store.write() as tx:
        assert takeovers.of_agent(tx, number) is None
        letters = all_mail(tx)
        assert not agents.get(tx, agent.id).owes
    assert len(office.heard(agent)) == 1
    assert [one.delivery for one in letters if one.recipient == agent.id] == [Delivery.HEARD]
    assert alone == (0 if turn_end is Outcome.FINISHED else 1), "a cut turn continues once"
    results = [one for one in letters if one.kind.value == "result"]
    assert len(results) == alone + (turn_end is Outcome.FINISHED)


LATER = AttachAgent(id="ada", waited=60.0)
"""A later request of a person who has waited longer than a call may take."""


def test_only_the_turn_that_the_agent_has_alone_is_interrupted_for_a_person(office: Office):
    hiring.hire(office.context, ROOT, HireAgent(task="work", cwd=str(office.root), name="ada"))
    assert not next_turn(office, crashes=False)
    office.take_prompt(1)
    with listening(office.context.data.runs / office.turn(1)[1].name) as asks:
        attach.attach(office.context, AttachAgent(id="ada"), patience=0.0)
        attach.attach(office.context, LATER, patience=0.0)
    assert asks == [InterruptRequest()], "the second call alone"
    office.end_turn(1, Outcome.INTERRUPTED)
    assert next_turn(office, crashes=False)
    with listening(office.context.data.runs / office.turn(1)[1].name) as asks:
        for _ in range(3):
            attach.attach(office.context, LATER, patience=0.0)
    assert asks == []
    office.end_turn(1, Outcome.INTERRUPTED)
    with pytest.raises(StateConflict, match="asks again"):
        attach.attach(office.context, LATER, patience=0.0)


@pytest.mark.parametrize("idle", [True, False])
def test_a_person_who_gives_up_leaves_an_agent_as_it_was(office: Office, idle: bool):
    """An idle agent idles on, and a turn continues, also where the terminal was about to open."""
    hiring.hire(office.context, ROOT, HireAgent(task="work", cwd=str(office.root), name="ada"))
    assert not next_turn(office, crashes=False)
    office.take_prompt(1)
    if idle:
        office.end_turn(1, Outcome.FINISHED)
        attach.attach(office.context, AttachAgent(id="ada"), patience=0.0)
    else:
        with listening(office.context.data.runs / office.turn(1)[1].name):
            attach.attach(office.context, AttachAgent(id="ada"), patience=0.0)
            attach.attach(office.context, LATER, patience=0.0)
        office.end_turn(1, Outcome.INTERRUPTED)
    assert next_turn(office, crashes=False)
    agent, run = office.turn(1)
    attach.give_back(office.context, GiveBackAgent(id="ada"))
    with office.context.store.read() as tx:
        assert not wheel.is_wanted(office.context, tx, agent, run)
    office.end_turn(1, Outcome.STOPPED)
    office.conduct()
    assert bool(office.claims) is not idle
    with office.context.store.read() as tx:
        assert takeovers.of_agent(tx, 1) is None


@pytest.mark.parametrize("leaves", [False, True])
def test_a_second_person_gets_the_conversation_that_the_first_one_gives_up(office: Office, leaves: bool):
    """Also in the moment in which the turn that opened for the first one ends."""
    hiring.hire(office.context, ROOT, HireAgent(task="work", cwd=str(office.root), name="ada"))
    assert not next_turn(office, crashes=False)
    attach.attach(office.context, AttachAgent(id="ada"), patience=0.0)
    office.end_turn(1, Outcome.INTERRUPTED)
    assert next_turn(office, crashes=False)
    folder = office.context.data.runs / office.turn(1)[1].name
    if leaves:
        (folder / TERMINAL_SOCKET).touch()
    with listening(folder) as asks:
        attach.give_back(office.context, GiveBackAgent(id="ada"))
        assert attach.attach(office.context, AttachAgent(id="ada"), patience=0.0).socket == ""
    assert asks == [InterruptRequest()]
    office.end_turn(1, Outcome.INTERRUPTED)
    assert next_turn(office, crashes=False), "for the second one"


def test_what_is_given_back_to_a_runner_that_was_just_killed_opens_for_no_one(office: Office):
    """Its lock is still held, by what it started, and it answers no request."""
    hiring.hire(office.context, ROOT, HireAgent(task="work", cwd=str(office.root), name="ada"))
    with office.context.store.write() as tx:
        takeovers.put(tx, Takeover(agent=1, owes=False))
    assert next_turn(office, crashes=False)
    _, run = office.turn(1)
    folder = office.context.data.runs / run.name
    (folder / TERMINAL_SOCKET).touch()
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        attach.give_back(office.context, GiveBackAgent(id="ada"))
    office.end_turn(1, Outcome.LOST)
    assert not next_turn(office, crashes=False), "the person has left"
