"""What an agent may do, and what is refused: forged names, dead tokens, other people's agents, too much money."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from legion.config.files.user import UserConfig
from legion.config.sections.claude import Answers, ClaudeSettings
from legion.domain.agents.tools import DESCRIPTIONS, Tool
from legion.domain.events import EventKind
from legion.domain.questions import QuestionKind
from legion.domain.tickets.ticket import Park, ParkReason, Start
from legion.store import events
from legion.store.board import questions, tickets
from legion.store.staff import agents, tokens
from legion.store.staff import mail as stored_mail
from legion.wire.agents import FireAgent, HireAgent, InterruptAgent, SetDelegation
from legion.wire.dispatch import Dispatch, NewTicket
from legion.wire.errors import BadInput, NotAllowed, NotFound
from legion.wire.mail import AnswerQuestion, NewMessage, ReadMail
from legion.wire.projects import AddProject
from legion.wire.tickets import Action
from tests.support.office import PERSONS, Employee, Office, office, use
from tests.support.repository import CHECK, Repository

_names = itertools.count()


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    with office(tmp_path_factory.mktemp("rights")) as one:
        yield one


@pytest.fixture
def boss(here: Office) -> Employee:
    return here.hire(f"boss-{next(_names)}")


def report_of(boss: Employee, **wanted: object) -> Employee:
    return boss.office.hire(f"report-{next(_names)}", boss, **wanted)


def refusals(here: Office, caller: str) -> list[str]:
    with here.context.store.read() as tx:
        found = [event for event in events.after(tx, 0) if event.kind is EventKind.REFUSED]
    return [str(event.data["asked"]) for event in found if event.data["caller"] == caller]


def test_an_agent_acts_as_itself_and_its_name_alone_is_worth_nothing(here: Office, boss: Employee):
    assert boss.legion.agents(False).you == boss.id
    other = report_of(boss)
    with pytest.raises(NotAllowed, match="cannot be used as"):
        here.client(boss.token, session=other.id).agents(False)
    with pytest.raises(NotAllowed, match="cannot be used as"):
        here.client(boss.token, session="root").agents(False)
    with pytest.raises(NotAllowed, match="missing or wrong"):
        here.client("", session=boss.id).agents(False)
    with pytest.raises(NotAllowed, match="cannot be used as"):
        here.client(PERSONS, session=boss.id).agents(False)
    assert refusals(here, boss.id) == ["GET /v1/agents"]


def test_a_token_dies_with_its_run(here: Office, boss: Employee):
    here.end(boss.run)
    for _ in range(3):
        with pytest.raises(NotAllowed, match="ended with its run"):
            boss.legion.agents(False)
    assert refusals(here, boss.id) == ["any call"]


def test_a_token_dies_when_its_agent_is_fired_in_the_middle_of_a_turn(here: Office, boss: Employee):
    here.person.fire(FireAgent(id=boss.id))
    with pytest.raises(NotAllowed, match="was revoked"):
        boss.use("legion-hire", task="go on without me")


def test_what_was_issued_anew_makes_the_old_token_worthless(here: Office, boss: Employee):
    with here.context.store.write() as tx:
        tokens.issue(tx, run=boss.run, agent=boss.id)
    with pytest.raises(NotAllowed, match="was revoked"):
        boss.legion.agents(False)


def test_siblings_can_write_to_each_other_and_do_nothing_else_to_each_other(here: Office, boss: Employee):
    one, other = report_of(boss), report_of(boss)
    assert one.legion.tell_agent(NewMessage(to=other.id, text="hello")).to == [other.id]
    for tool, arguments in (
        ("legion-fire", {"agent": other.id}),
        ("legion-interrupt", {"agent": other.id, "message": "stop"}),
        ("legion-stop", {"what": other.id}),
        ("legion-fire", {"agent": boss.id}),
        ("legion-fire", {"agent": one.id}),
    ):
        with pytest.raises(NotAllowed, match="only agents below you"):
            one.use(tool, **arguments)
    with pytest.raises(NotAllowed):
        one.legion.mail(ReadMail(agent=other.id))
    with pytest.raises(NotAllowed):
        one.legion.fire(FireAgent(id=other.id))
    tried = {"legion-fire", "legion-interrupt", "legion-stop", "POST /v1/mail", "POST /v1/agents/fire"}
    assert set(refusals(here, one.id)) == tried


def test_who_is_in_nobodys_tree_is_out_of_reach(here: Office, boss: Employee):
    stranger = here.hire(f"stranger-{next(_names)}")
    below = report_of(stranger)
    with pytest.raises(NotAllowed):
        boss.legion.tell_agent(NewMessage(to=below.id, text="work for me"))
    with pytest.raises(NotAllowed, match="not below you"):
        boss.legion.agent(below.id)
    with pytest.raises(NotAllowed, match="only agents below you"):
        boss.legion.fire(FireAgent(id=below.id))


@pytest.mark.parametrize("to", ["nobody", "00000000-0000-0000-0000-000000000000", "", "ticket-1", "'; DROP TABLE mail"])
def test_mail_to_unknown_ids_is_refused_and_stored_nowhere(boss: Employee, to):
    with pytest.raises((NotFound, BadInput)):
        boss.use("legion-tell", to=to, message="anybody there?")


def test_rights_only_narrow(here: Office):
    boss = here.hire(f"poor-{next(_names)}", tools=["Read", "Bash"], budget=1.0, headcount=2, depth=1, model="haiku")
    for spec, words in (
        ({"tools": ["Read", "Write"]}, "choose from Bash, Read"),
        ({"budget": 2.0}, "left to give"),
        ({"headcount": 5}, "left to give"),
        ({"depth": 3}, "left to give"),
        ({"model": "opus"}, "choose from haiku"),
    ):
        with pytest.raises(NotAllowed, match=words):
            boss.use("legion-hire", task="more than I have", **spec)
    child = boss.use("legion-hire", task="less", budget=0.25)
    assert child.data["budget"] == 0.25
    assert [one.tools for one in boss.legion.agents(False).agents if one.id == child.data["hired"]] == [
        ["Bash", "Read"]
    ]


def test_a_fork_bomb_ends_at_the_limits(here: Office):
    boss = here.hire(f"bomb-{next(_names)}", headcount=6, depth=3)
    at_work, hired = [boss], 0
    while at_work:
        one = at_work.pop()
        for _ in range(10):
            try:
                child = here.hire("", one)
            except NotAllowed:
                break
            hired += 1
            at_work.append(child)
    assert hired == 6
    here.person.fire(FireAgent(id=boss.id, subtree=True))
    for one in (boss, child):
        with pytest.raises(NotAllowed, match="was revoked"):
            one.use("legion-hire", task="again")


def test_the_same_request_hires_once(here: Office, boss: Employee):
    first = boss.use("legion-hire", "one-request", task="once")
    again = boss.use("legion-hire", "one-request", task="once")
    assert first == again
    below = [one for one in boss.legion.agents(False).agents if one.parent == boss.id]
    assert len(below) == 1
    other = report_of(boss)
    assert other.use("legion-hire", "one-request", task="once").data["hired"] != first.data["hired"]


def test_an_agent_sees_its_own_projects_board_alone(here: Office, boss: Employee, tmp_path):
    other = Repository(tmp_path / "other", CHECK)
    here.person.add_project(AddProject(path=str(other.root)))
    foreign = here.person.dispatch(
        Dispatch(cwd=str(other.root), tickets=[NewTicket(title="secret", driver="claude")])
    ).ids[0]
    try:
        assert [project.root for project in boss.legion.status(str(other.root), True).projects] == [here.cwd]
        assert "secret" not in boss.use("legion-check").text
        for ask in (boss.legion.ticket, boss.legion.log, boss.legion.diff):
            with pytest.raises(NotAllowed, match="another project"):
                ask(foreign)
        with pytest.raises(NotAllowed, match="own project"):
            boss.legion.hire(HireAgent(task="look there", cwd=str(other.root)))
        mine = boss.legion.dispatch(Dispatch(cwd=str(other.root), tickets=[NewTicket(title="lands at home")])).ids[0]
        assert here.person.ticket(mine).ticket.project == "ada"
    finally:
        here.person.stop(foreign, Action())
        here.person.remove_project(str(other.root))


def test_the_agent_of_a_ticket_reports_and_asks_and_does_nothing_else(here: Office):
    ticket = here.person.dispatch(
        Dispatch(cwd=here.cwd, tickets=[NewTicket(title="t", driver="claude", ask=True)])
    ).ids[0]
    legion = here.client(here.of_ticket(ticket), session=f"ticket-{ticket}")
    assert use(legion, "legion-report", "r", status="working", summary="half of it").data["reported"] == "working"
    use(legion, "legion-report", "r", status="working", summary="half of it")
    said = [event.data["summary"] for event in here.person.ticket(ticket).history if event.kind == "ticket.reported"]
    assert said == ["half of it"]
    for tool in ("legion-dispatch", "legion-hire", "legion-tell", "legion-status"):
        with pytest.raises(NotAllowed, match="you have legion-report, legion-ask"):
            use(legion, tool)
    with pytest.raises(NotAllowed, match="not open to agents"):
        legion.dispatch(Dispatch(cwd=here.cwd, tickets=[NewTicket(title="mine")]))
    with pytest.raises(NotAllowed, match="not open to agents"):
        legion.status(None)
    with pytest.raises(NotAllowed, match="not open to agents"):
        legion.interrupt_agent(InterruptAgent(id="root"))


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("legion-dispatch", {}, "needs 'title'"),
        ("legion-dispatch", {"title": " ", "text": "x"}, "is empty"),
        ("legion-dispatch", {"title": "t", "text": "x", "after": "3"}, "a list of whole numbers"),
        ("legion-dispatch", {"title": "t", "text": "x", "after": [True]}, "a list of whole numbers"),
        ("legion-dispatch", {"title": "t", "text": "x", "budget": "much"}, "must be a number"),
        ("legion-tell", {"to": "root", "message": 3}, "must be text"),
        ("legion-tell", {"to": "root", "message": "a\0b"}, "NUL character"),
        ("legion-check", {"ticket": 1.5}, "a whole number"),
        ("legion-check", {"ticket": 10**30}, "too large"),
        ("legion-check", {"tickets": 1}, "it takes ticket"),
        ("legion-report", {"status": "perhaps", "summary": "x"}, "one of working, done, error"),
        ("legion-fire", {"agent": "root", "subtree": "yes"}, "true or false"),
    ],
)
def test_what_a_model_says_wrong_is_answered_with_what_to_say(boss: Employee, tool, arguments, words):
    with pytest.raises(BadInput, match=words):
        boss.use(tool, **arguments)


def test_dispatch_takes_the_worker_of_legion_cc_and_models_do_not_read_of_it(boss: Employee):
    ticket = boss.use("legion-dispatch", title="t", text="x", worker_id=2).data["ticket"]
    assert boss.use("legion-check", ticket=ticket).data["title"] == "t"
    assert "worker_id" not in DESCRIPTIONS[Tool.DISPATCH].schema()["properties"]


def test_an_unknown_tool_is_answered_with_those_that_there_are(boss: Employee):
    with pytest.raises(NotFound, match="legion-dispatch, legion-check"):
        boss.use("legion-dance")


def asked_by(here: Office, who: Employee, words: str) -> int:
    """A question of an agent's own, and nobody waits for its answer."""
    with here.context.store.write() as tx:
        project = agents.get(tx, who.id).project
        asked = questions.ask(
            tx,
            key=words,
            kind=QuestionKind.ASK,
            project=project,
            agent=who.id,
            words=words,
            choices=("a", "b"),
            deadline=1e12,
        )
    return asked.id


def test_a_question_is_the_persons_to_answer(here: Office, boss: Employee):
    report = report_of(boss)
    number = asked_by(here, report, "Which of the two?")
    for one in (boss, report):
        assert one.legion.inbox().questions == []
        with pytest.raises(NotAllowed, match="not yours to answer"):
            one.legion.answer(number, AnswerQuestion(choice="a"))
        with pytest.raises(NotAllowed, match="You may not use legion-answer"):
            one.use("legion-answer", question=number, choice="a")
    shown = use(here.person, "legion-answer").data["questions"]
    assert [(one["question"], one["choices"]) for one in shown] == [(number, ["a", "b"])]
    with pytest.raises(BadInput, match="choose one of a, b"):
        use(here.person, "legion-answer", question=number, choice="c")
    assert use(here.person, "legion-answer", question=number, choice="b").data["choice"] == "b"


def test_where_a_person_allows_it_leaders_answer_those_below_them(tmp_path):
    with office(tmp_path, UserConfig(claude=ClaudeSettings(answers=Answers.LEADERS))) as here:
        boss, stranger = here.hire("boss"), here.hire("stranger")
        report = here.hire("report", boss)
        below, own = asked_by(here, report, "Which?"), asked_by(here, boss, "And I?")
        money = _budget_question(here)
        assert [one["question"] for one in boss.use("legion-answer").data["questions"]] == [below]
        for who, number in ((report, below), (stranger, below), (boss, own), (boss, money)):
            with pytest.raises(NotAllowed, match="not yours to answer"):
                who.legion.answer(number, AnswerQuestion(choice="a"))
        assert boss.use("legion-answer", question=below, choice="a").data["choice"] == "a"


def _budget_question(here: Office) -> int:
    ticket = here.person.dispatch(Dispatch(cwd=here.cwd, tickets=[NewTicket(title="t", driver="claude")])).ids[0]
    with here.context.store.write() as tx:
        tickets.move(tx, ticket, Start("c" * 40))
        tickets.move(tx, ticket, Park(ParkReason.BUDGET, "spent"))
        (asked,) = questions.open_ones(tx, ticket=ticket)
    return asked.id


def test_a_plan_waits_in_the_inbox_and_until_then_nothing_is_done_through_others(here: Office):
    planner = here.hire(f"planner-{next(_names)}", plan=True)
    for tool in ("legion-hire", "legion-dispatch", "legion-claim", "legion-stop"):
        with pytest.raises(NotAllowed, match="You may not use"):
            planner.use(tool, task="x")
    with pytest.raises(NotAllowed, match="only read until your plan"):
        planner.legion.hire(HireAgent(task="do it for me"))
    with pytest.raises(NotAllowed, match="only read until your plan"):
        planner.legion.dispatch(Dispatch(cwd=here.cwd, tickets=[NewTicket(title="do it for me")]))
    planner.use("legion-plan", text="First this.")
    planner.use("legion-plan", text="First that.")
    (question,) = [one for one in here.person.inbox().questions if one.agent == planner.id]
    assert (question.kind, question.facts["plan"], question.choices) == ("plan", "First that.", ["approve", "reject"])
    with pytest.raises(BadInput, match="needs a reason"):
        here.person.answer(question.id, AnswerQuestion(choice="reject"))
    assert "rejected" in here.person.answer(question.id, AnswerQuestion(choice="reject", why="Too long.")).message
    planner.use("legion-plan", text="Only this.")
    (question,) = [one for one in here.person.inbox().questions if one.agent == planner.id]
    here.person.answer(question.id, AnswerQuestion(choice="approve"))
    assert [one for one in here.person.inbox().questions if one.agent == planner.id] == []
    assert planner.use("legion-hire", task="now it may").data["hired"]


def test_who_is_fired_asks_nothing_any_more(here: Office):
    planner = here.hire(f"planner-{next(_names)}", plan=True)
    planner.use("legion-plan", text="A plan.")
    here.person.fire(FireAgent(id=planner.id))
    assert [one for one in here.person.inbox().questions if one.agent == planner.id] == []


def test_who_may_hire_nobody_sees_no_tools_for_it(here: Office, boss: Employee):
    single = report_of(boss, headcount=0)
    with pytest.raises(NotAllowed, match="You may not use legion-hire"):
        single.use("legion-hire", task="x")
    delegate = here.hire(f"delegate-{next(_names)}", tools=["legion-hire", "legion-tell"])
    with pytest.raises(NotAllowed, match="you have legion-hire, legion-tell"):
        delegate.use("legion-dispatch", title="t", text="x")


def test_an_agent_above_sets_whether_one_only_leads(here: Office, boss: Employee):
    report = report_of(boss)

    def delegates() -> bool:
        with here.context.store.read() as tx:
            return agents.get(tx, report.id).delegates

    for caller, on in [(boss.legion, True), (here.person, False), (here.person, True)]:
        assert f"{report.name} " in caller.delegate(SetDelegation(id=report.id, on=on)).message
        assert delegates() is on
    for refused, id in [(report.legion, report.id), (report.legion, boss.id), (report_of(boss).legion, report.id)]:
        with pytest.raises(NotAllowed, match="only agents below you"):
            refused.delegate(SetDelegation(id=id, on=False))
    assert delegates()
    planner = here.hire(f"planner-{next(_names)}", plan=True)
    below = here.at_work(here.person.hire(HireAgent(task="x", name=f"below-{next(_names)}", cwd=here.cwd)))
    with here.context.store.write() as tx:
        agents.adopt(tx, agents.get(tx, below.id), planner.id)
    with pytest.raises(NotAllowed, match="only read until your plan"):
        planner.legion.delegate(SetDelegation(id=below.id, on=True))
    here.person.fire(FireAgent(id=below.id))
    with pytest.raises(NotFound, match="fired already"):
        here.person.delegate(SetDelegation(id=below.id, on=True))


def test_refused_calls_fill_no_log(here: Office, boss: Employee):
    line = boss.legion.line
    for _ in range(30):
        with pytest.raises(NotAllowed):
            line.ask("POST", "/v1/shutdown")
    assert refusals(here, boss.id) == ["POST /v1/shutdown"]


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_ten_thousand_rapid_calls_are_all_answered_and_count_once_each(here: Office, boss: Employee):
    """Eight programs of one agent write, look, repeat themselves and try what is forbidden, as fast as they can."""
    report = report_of(boss)
    rounds, threads = 250, 8

    def storm(which: int) -> int:
        refused = 0
        for turn in range(rounds):
            for _ in range(2):
                boss.use("legion-tell", f"{which}-{turn}", to=report.id, message=f"{which}-{turn}")
            boss.use("legion-status")
            for tool, arguments in (("legion-fire", {"agent": boss.id}), ("legion-check", {"ticket": 10**9})):
                try:
                    boss.use(tool, **arguments)
                except (NotAllowed, NotFound):
                    refused += 1
        return refused

    with ThreadPoolExecutor(threads) as pool:
        began = time.monotonic()
        refused = sum(pool.map(storm, range(threads)))
    print(f"{rounds * threads * 5} calls in {time.monotonic() - began:.1f} s")
    assert refused == rounds * threads * 2
    with here.context.store.read() as tx:
        stored = [one.text for one in stored_mail.waiting(tx, report.id) if one.sender == boss.id]
    assert sorted(set(stored)) == sorted(stored)
    assert len([text for text in stored if "-" in text]) == rounds * threads
    minutes = (time.monotonic() - began) / 60
    assert set(refusals(here, boss.id)) == {"legion-fire"}
    assert len(refusals(here, boss.id)) <= minutes + 1
    assert here.person.healthy()
