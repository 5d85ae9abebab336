"""Whatever is hired, told, interrupted, fired and killed, in whatever order: nothing is lost, doubled or widened."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from legion.domain.agents.agent import ROOT
from legion.domain.agents.mail import PING_PONG, Delivery, MessageKind
from legion.domain.errors import LegionError, StateConflict
from legion.domain.runs import Outcome
from legion.jobs.turn.delivery import DeliveryTracker, in_ended_turn, state_folder
from legion.runner.journal import JournalEvent
from legion.service import questions as asking
from legion.service.agents import hire as hiring
from legion.service.agents import mail as mailing
from legion.store.board import questions
from legion.store.staff import agents, mail
from legion.wire.agents import FireAgent, HireAgent, InterruptAgent
from legion.wire.mail import AnswerQuestion, Broadcast, NewMessage, ReadMail
from tests.jobs.office import ENDINGS, Office, all_mail, check, settle
from tests.support.sampling import sampled

TOOLS = ("Read", "Write", "Bash", "legion-hire")
ROUNDS = 100


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    one = Office(tmp_path)
    yield one
    one.close()


def somebody(office: Office, chance: random.Random) -> str:
    return chance.choice([ROOT, *(agent.id for agent in office.standing())])


def hire(office: Office, chance: random.Random, request: str) -> None:
    wanted = HireAgent(
        task="work",
        cwd=str(office.root),
        tools=chance.choice([None, chance.sample(TOOLS, chance.randint(1, len(TOOLS)))]),
        budget=chance.choice([None, chance.uniform(0.1, 20)]),
        headcount=chance.choice([None, None, chance.randint(0, 6)]),
        depth=chance.choice([None, None, chance.randint(0, 3)]),
        model=chance.choice(["", "opus", "sonnet", "haiku"]),
        request=request,
    )
    caller = somebody(office, chance)
    first = hiring.hire(office.context, caller, wanted)
    assert hiring.hire(office.context, caller, wanted) == first, "a repeated request gets the first answer"


def tell(office: Office, chance: random.Random, request: str) -> None:
    letter = NewMessage(to=somebody(office, chance), text=f"words {request}", request=request)
    caller = somebody(office, chance)
    assert mailing.tell(office.context, caller, letter) == mailing.tell(office.context, caller, letter)


def tell_now(office: Office, chance: random.Random, request: str) -> None:
    if not office.claims:
        return
    number = chance.choice(list(office.claims))
    with office.context.store.write() as tx:
        agent = agents.numbered(tx, number)
        if agent.fired_at is not None:
            return
        if chance.random() < 0.5:
            mail.send(tx, sender=agent.parent, recipient=agent.id, text=f"before {request}")
        message = mail.send(tx, sender=agent.parent, recipient=agent.id, text=f"now {request}")
    office.say_now(number, message, taken=chance.random() < 0.6)


def interrupt(office: Office, chance: random.Random, request: str) -> None:
    words = chance.choice(["", f"instead {request}"])
    hiring.interrupt(office.context, somebody(office, chance), InterruptAgent(id=somebody(office, chance), text=words))


def fire(office: Office, chance: random.Random, request: str) -> None:
    wanted = FireAgent(id=somebody(office, chance), subtree=chance.random() < 0.2)
    hiring.fire(office.context, chance.choice([ROOT, ROOT, somebody(office, chance)]), wanted)


def broadcast(office: Office, chance: random.Random, request: str) -> None:
    mailing.broadcast(office.context, somebody(office, chance), Broadcast(text=f"all {request}"))


def go_on(office: Office, chance: random.Random, request: str) -> None:
    """A turn comes to an end, in any way, at any moment."""
    office.conduct()
    if not office.claims:
        return
    number = chance.choice(list(office.claims))
    if chance.random() < 0.75:
        office.take_prompt(number)
        office.spend(number, chance.random())
    office.end_turn(number, chance.choice(ENDINGS))


def crash(office: Office, chance: random.Random, request: str) -> None:
    office.conduct()
    office.crash()
    office.conduct()


ACTS = (hire, hire, hire, tell, tell, tell, tell_now, interrupt, fire, broadcast, go_on, go_on, go_on, go_on, crash)


@pytest.mark.parametrize("round", sampled(range(40), 2))
def test_no_order_of_events_loses_a_message_a_dollar_or_an_agent(office: Office, seed: int, round: int):
    chance = random.Random(seed * 1000 + round)
    refused = 0
    for step in range(ROUNDS):
        try:
            chance.choice(ACTS)(office, chance, str(step))
        except LegionError:
            refused += 1
        check(office)
    settle(office, chance)
    check(office)
    assert refused < ROUNDS * 0.8
    with office.context.store.write() as tx:
        everything, standing = all_mail(tx), agents.parents(tx)
    for message in everything:
        if message.recipient != ROOT:
            assert message.delivery in (Delivery.HEARD, Delivery.RETURNED), "nothing stays on the way"
        came_back = [other for other in everything if other.about == message.id]
        if message.delivery is Delivery.RETURNED and message.sender in {ROOT, *standing}:
            assert len(came_back) == (0 if message.kind is MessageKind.RETURNED else 1)
        elif message.delivery is not Delivery.RETURNED:
            assert not came_back


def test_what_the_person_reads_is_read_once(office: Office):
    hired = hiring.hire(office.context, ROOT, HireAgent(task="work", cwd=str(office.root), name="ada"))
    office.conduct()
    (number,) = office.claims
    office.take_prompt(number)
    office.end_turn(number, ENDINGS[0])
    (result,) = mailing.read(office.context, ROOT, ReadMail()).messages
    assert (result.sender, result.kind, result.delivery) == (hired.id, "result", "waiting")
    assert mailing.read(office.context, ROOT, ReadMail()).messages == []
    assert [one.delivery for one in mailing.read(office.context, ROOT, ReadMail(all=True)).messages] == ["heard"] * 2


def test_two_that_only_answer_each_other_are_stopped_with_one_question_until_the_person_lets_them_go_on(office: Office):
    hired = [hiring.hire(office.context, ROOT, HireAgent(task="talk", cwd=str(office.root))).id for _ in range(2)]

    def talk(count: int) -> int:
        """How many messages went through."""
        for sent in range(count):
            try:
                mailing.tell(
                    office.context, hired[sent % 2], NewMessage(to=hired[1 - sent % 2], text=f"and you? {sent}")
                )
            except StateConflict:
                return sent
        return count

    assert talk(PING_PONG * 3) == PING_PONG
    assert talk(1) == 0
    with office.context.store.read() as tx:
        (question,) = questions.open_ones(tx)
    assert question.choices == ("go on", "stop")
    asking.answer(office.context, question.id, AnswerQuestion(choice="go on"))
    told = mailing.read(office.context, ROOT, ReadMail(agent=question.agent, all=True)).messages
    assert [one.text for one in told if one.kind == "notice"] == [
        "You may continue with each other: send your last message again."
    ]
    assert talk(PING_PONG * 3) in (PING_PONG, PING_PONG - 1)
    mailing.tell(office.context, ROOT, NewMessage(to=hired[0], text="the person is heard all the same"))


def test_an_echo_alone_is_not_yet_heard(office: Office):
    """A program that is killed may have said more than it wrote down."""
    hiring.hire(office.context, ROOT, HireAgent(task="work", cwd=str(office.root)))
    office.conduct()
    (number,) = office.claims
    agent, run = office.turn(number)
    ear = DeliveryTracker(office.context, agent, state_folder(office.context.project(office.project), run.seat))
    ear.handle(JournalEvent(number=1, time=0.0, kind="heard", facts={"id": run.prompt}))
    with office.context.store.read() as tx:
        assert [one.delivery for one in mail.of_batch(tx, agent.id, run.prompt)] == [Delivery.OFFERED]
    office.take_prompt(number)
    ear.handle(JournalEvent(number=2, time=0.0, kind="said", facts={}))
    with office.context.store.read() as tx:
        assert [one.delivery for one in mail.of_batch(tx, agent.id, run.prompt)] == [Delivery.HEARD]


def test_after_a_turn_that_ended_by_itself_the_echo_counts_and_after_a_kill_it_does_not():
    """A transcript that cannot be read would start the same turn again and again."""
    events = [JournalEvent(number=1, time=0.0, kind="heard", facts={"id": "p"})]
    assert in_ended_turn(events, Outcome.FINISHED) == {"p"}
    assert in_ended_turn(events, Outcome.LOST) == frozenset()


def test_a_turn_that_cannot_begin_is_tried_again_later_and_its_parent_hears_of_it_once(office: Office):
    hired = hiring.hire(office.context, ROOT, HireAgent(task="work", cwd=str(office.root)))
    for _ in range(8):
        office.conduct()
        (number,) = office.claims
        office.end_turn(number, Outcome.FAILED)
        with office.context.store.read() as tx:
            held = agents.get(tx, hired.id).held_until
        assert held is not None
        assert held > office.context.clock()
    (word,) = mailing.read(office.context, ROOT, ReadMail()).messages
    assert (word.kind, "cannot start its turn" in word.text) == ("notice", True)
    office.conduct()
    office.take_prompt(number)
    office.end_turn(number, Outcome.FINISHED)
    check(office)
