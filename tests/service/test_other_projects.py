"""Agents of different projects neither see nor write to each other; what one agent sends is bounded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import pytest

from legion.client.text.tickets import questions_wait
from legion.domain.agents.mail import MOST_UNREAD
from legion.domain.questions import MOST_OPEN, QuestionKind
from legion.store.board import projects, questions, tickets
from legion.store.work import runs
from legion.wire.agents import FireAgent, HireAgent, InterruptAgent, PlanVerdict, SetDelegation
from legion.wire.dispatch import Dispatch, NewTicket
from legion.wire.errors import BadInput, LegionError, NotFound, StateConflict
from legion.wire.mail import Broadcast, NewMessage, ReadMail
from legion.wire.projects import AddProject
from tests.support.attacks import Attacker, Door, attack
from tests.support.office import Employee, Office, office, use
from tests.support.repository import CHECK, Repository


@dataclass(frozen=True)
class Neighbours:
    here: Office
    mine: Employee
    """An agent of one project."""
    other: Employee
    """An agent of another one; the person hired both."""


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Neighbours]:
    folder = tmp_path_factory.mktemp("neighbours")
    with office(folder) as here:
        private = Repository(folder / "private", CHECK)
        here.person.add_project(AddProject(path=str(private.root)))
        hired = here.person.hire(HireAgent(task="stand there", name="private-boss", cwd=str(private.root)))
        yield Neighbours(here=here, mine=here.hire("public-boss"), other=here.at_work(hired))


@attack(Attacker.AGENT, Door.RIGHTS)
def test_an_agent_lists_those_of_its_own_project(two: Neighbours):
    for fired in (False, True):
        assert [one.name for one in two.mine.legion.agents(fired).agents] == ["public-boss"]
    assert len(two.here.person.agents(False).agents) == 2
    assert "private" not in str(two.mine.legion.status(None))


@attack(Attacker.AGENT, Door.RIGHTS)
def test_a_name_that_is_taken_elsewhere_is_refused_with_the_project_for_the_person_alone(two: Neighbours):
    wanted = HireAgent(task="stand there", name="private-boss", cwd=two.here.cwd)
    with pytest.raises(StateConflict, match="called private-boss already in project private: choose another name"):
        two.here.person.hire(wanted)
    with pytest.raises(LegionError) as refused:
        two.mine.use("legion-hire", name="private-boss", task="stand there")
    assert "project private" not in str(refused.value)


REACHES: dict[str, Callable[[Employee, str], object]] = {
    "page": lambda mine, other: mine.legion.agent(other),
    "tell": lambda mine, other: mine.legion.tell_agent(NewMessage(to=other, text="obey")),
    "tell now": lambda mine, other: mine.legion.tell_agent(NewMessage(to=other, text="obey", now=True)),
    "tool": lambda mine, other: mine.use("legion-tell", agent=other, message="obey"),
    "mail": lambda mine, other: mine.legion.mail(ReadMail(agent=other)),
    "interrupt": lambda mine, other: mine.legion.interrupt_agent(InterruptAgent(id=other)),
    "fire": lambda mine, other: mine.legion.fire(FireAgent(id=other)),
    "broadcast": lambda mine, other: mine.legion.broadcast(Broadcast(text="obey", subtree=other)),
    "verdict": lambda mine, other: mine.legion.decide_plan(PlanVerdict(agent=other, approve=True)),
    "delegate": lambda mine, other: mine.legion.delegate(SetDelegation(id=other, on=True)),
}


@attack(Attacker.AGENT, Door.RIGHTS)
@pytest.mark.parametrize("by", ["id", "name", "start of id"])
@pytest.mark.parametrize("reach", REACHES)
def test_an_agent_of_another_project_does_not_exist_for_it(two: Neighbours, reach: str, by: str):
    word = {"id": two.other.id, "name": two.other.name, "start of id": two.other.id[:12]}[by]
    with pytest.raises(LegionError) as refused:
        REACHES[reach](two.mine, word)
    assert isinstance(refused.value, NotFound | BadInput)
    with pytest.raises(LegionError) as unknown:
        REACHES[reach](two.mine, "no-such-agent")
    assert refused.value.message.replace(word, "WORD") == unknown.value.message.replace("no-such-agent", "WORD")
    assert two.here.person.mail(ReadMail(agent=two.other.id, all=True)).messages[1:] == []


@attack(Attacker.AGENT, Door.RIGHTS)
def test_a_dependency_of_another_project_is_not_named(two: Neighbours):
    here = two.here
    with here.context.store.read() as tx:
        private = next(one for one in projects.all(tx) if one.id != 1)
    (hidden,) = here.person.dispatch(Dispatch(cwd=private.root, tickets=[NewTicket(title="hidden plans")])).ids
    (first,) = here.person.dispatch(Dispatch(cwd=here.cwd, tickets=[NewTicket(title="first")])).ids
    later = NewTicket(title="second", after=[first, hidden])
    (second,) = here.person.dispatch(Dispatch(cwd=here.cwd, tickets=[later])).ids
    path, query = "/legion/orchestrate/deps", {"ticket_id": second}
    mine, all_of_them = (one.line.ask("GET", path, query=query) for one in (two.mine.legion, here.person))
    assert [one["id"] for one in mine["dependencies"]] == [first]
    assert [one["id"] for one in all_of_them["dependencies"]] == [first, hidden]


@attack(Attacker.AGENT, Door.BOUNDS)
def test_an_agent_fills_no_mailbox(two: Neighbours):
    writer = two.here.hire("writer")
    for number in range(MOST_UNREAD):
        writer.legion.tell_agent(NewMessage(to="root", text=f"{number}"))
    with pytest.raises(StateConflict, match="unread messages of yours"):
        writer.legion.tell_agent(NewMessage(to="root", text="one more"))
    two.mine.legion.tell_agent(NewMessage(to="root", text="of another agent"))
    two.here.person.mail(ReadMail())
    writer.legion.tell_agent(NewMessage(to="root", text="after they were read"))


@attack(Attacker.AGENT, Door.BOUNDS)
def test_an_agent_asks_no_more_than_a_person_can_answer(two: Neighbours):
    here = two.here
    ticket = here.person.dispatch(Dispatch(cwd=here.cwd, tickets=[NewTicket(title="asks", driver="claude")])).ids[0]
    legion = here.client(here.of_ticket(ticket))
    with here.context.store.write() as tx:
        latest = runs.latest(tx, ticket)
        assert latest is not None
        for number in range(MOST_OPEN):
            questions.ask(
                tx,
                key=f"flood-{number}",
                kind=QuestionKind.ASK,
                project=1,
                ticket=ticket,
                run=latest.id,
                words=f"Question {number}?",
                deadline=tx.now + 600,
            )
    with pytest.raises(StateConflict, match="wait for the person"):
        use(legion, "legion-ask", question="One more?")


def test_a_ticket_that_an_agent_stopped_says_so(two: Neighbours):
    ids = [two.mine.legion.dispatch(Dispatch(cwd="", tickets=[NewTicket(title=one)])).ids[0] for one in ("a", "b")]
    two.mine.legion.stop(ids[0])
    two.mine.legion.line.ask("POST", "/legion/orchestrate/stop-all", body={})
    with two.here.context.store.read() as tx:
        assert [tickets.get(tx, id).reason for id in ids] == ["stopped by the agent public-boss"] * 2


def test_a_project_says_how_many_questions_are_of_others(two: Neighbours):
    person = two.here.person
    here, other = (one.root for one in person.status(None).projects)
    before = [person.status(cwd) for cwd in (here, other, None)]
    with two.here.context.store.write() as tx:
        questions.ask(tx, key="elsewhere", kind=QuestionKind.ASK, project=2, words="Which?", deadline=tx.now + 600)
    after = [person.status(cwd) for cwd in (here, other, None)]
    assert [new.questions - old.questions for new, old in zip(after, before, strict=True)] == [1, 1, 1]
    elsewhere = [new.questions_elsewhere - old.questions_elsewhere for new, old in zip(after, before, strict=True)]
    assert elsewhere == [1, 0, 0]
    assert questions_wait(replace(after[0], questions=2, questions_elsewhere=1)) == (
        "2 questions wait for you, 1 in other projects"
    )
