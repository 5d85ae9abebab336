"""Plans as a person decides about them, on the real store and real git. The planner's answers are given here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from legion.domain.plans.answer import parse_points
from legion.domain.plans.draft import MalformedDraft
from legion.domain.plans.plan import PlanSource
from legion.domain.runs import Outcome
from legion.domain.tickets.ticket import Change, Fail, Land, Propose, Prove, Retry, Start, Stop
from legion.jobs.plan import job, planner_run
from legion.jobs.plan.result_conditions import read_what_is_over
from legion.jobs.supervise.questions import settle_overdue
from legion.store.board import goals, tickets
from legion.store.work import runs
from legion.wire.agents import HireAgent
from legion.wire.dispatch import Dispatch, NewTicket
from legion.wire.errors import BadInput, NotAllowed, NotFound, StateConflict
from legion.wire.mail import AnswerQuestion
from legion.wire.plans import ApprovePlan, EpicBudget, NamedEpic, NewPlan, RejectPlan, ReplanEpic, SavePlan, SplitTicket
from legion.wire.projects import AddProject
from legion.wire.tickets import Action
from tests.support.office import Office, office
from tests.support.planner import TWO, Planner, ticket
from tests.support.repository import CHECK, Repository


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    with office(tmp_path_factory.mktemp("plans"), config=CHECK) as one:
        yield one


@pytest.fixture
def planner(desk: Office) -> Planner:
    return Planner(desk)


def test_a_goal_is_planned_shown_and_approved_in_two_parts(desk: Office, planner: Planner):
    page = planner.plan(TWO)
    assert (page.plan.state, page.summary, page.chain) == ("ready", "Two steps.", ["schema", "login"])
    assert (page.estimate.usd, page.estimate.seconds) == (None, None)
    assert page.plan.id in [one.id for one in desk.person.plans(desk.cwd).plans]

    tried = planner.approve(page, dry_run=True)
    assert ([one.key for one in tried.proposed], tried.tickets) == (["schema", "login"], {})
    first = planner.approve(page, "schema")
    assert (first.state, list(first.tickets)) == ("partly", ["schema"])
    with pytest.raises(StateConflict, match="schema of P"):
        planner.approve(page, "schema")
    second = planner.approve(page)
    assert (second.state, list(second.tickets)) == ("approved", ["login"])
    made = desk.person.ticket(second.tickets["login"])
    assert made.ticket.after == [first.tickets["schema"]]
    assert (made.ticket.epic, made.criteria, made.prove) == (page.plan.id, "- login works", [])
    assert [(one.criterion, one.by) for one in made.evidence] == [("login works", "sh check.sh")]
    assert desk.person.ticket(first.tickets["schema"]).files == ["db.sql"]
    with pytest.raises(StateConflict, match="has nothing to approve: it is approved"):
        planner.approve(page)
    epic = desk.person.epic(desk.cwd, page.plan.id)
    assert (epic.done, epic.total, [one.id for one in epic.plans]) == (0, 2, [page.plan.id])
    assert epic.budget is None
    limited = EpicBudget(cwd=desk.cwd, epic=page.plan.id, usd=2.5)
    assert desk.person.epic_budget(limited).budget == 2.5
    assert desk.person.epic_budget(replace(limited, usd=0)).budget is None
    with pytest.raises(BadInput, match="A budget is a number of dollars"):
        desk.person.epic_budget(replace(limited, usd=-1))
    assert len(desk.person.stop_epic(NamedEpic(cwd=desk.cwd, epic=page.plan.id)).tickets) == 2
    assert desk.person.epic(desk.cwd, page.plan.id).counts == {"stopped": 2}


def test_what_is_wrong_goes_back_by_itself_and_then_to_the_person(desk: Office, planner: Planner):
    missing = {"tickets": [ticket("a", files=["gone.py"])]}
    page = planner.plan(missing)
    assert (page.plan.state, page.plan.rounds) == ("planning", 1)
    assert page.findings[0].text == "gone.py does not exist: list it in `new_files`, or correct it"
    assert planner.answer(page.plan.id, {"tickets": [ticket("a", files=["README.txt"])]}).plan.state == "ready"

    page = planner.plan("Certainly! I would begin with the login.", missing, '{"tickets": [{"key": "half"')
    assert (page.plan.state, [one.usable for one in page.rounds]) == ("faulty", [False, True, False])
    assert [one.key for one in page.tickets] == ["a"], "the last valid plan counts"
    with pytest.raises(StateConflict, match=r"has 1 finding, first: gone.py.* approve it with --anyway"):
        planner.approve(page)
    assert list(planner.approve(page, anyway=True).tickets) == ["a"]


def test_nonsense_three_times_is_a_failed_plan_that_can_be_retried_or_dropped(desk: Office, planner: Planner):
    page = planner.plan("No.", "No.", "No.")
    assert (page.plan.state, page.plan.reason) == ("failed", 'the answer holds no JSON object with the key "tickets"')
    id = int(page.plan.id[1:])
    with pytest.raises(StateConflict, match="has nothing to approve"):
        planner.approve(page)
    with pytest.raises(StateConflict, match="has no draft"):
        desk.person.plan_text(id)
    assert desk.person.retry_plan(id).plan.state == "planning"
    assert planner.answer(page.plan.id, TWO).plan.state == "ready"
    assert desk.person.drop_plan(id).plan.state == "dropped"
    assert page.plan.id not in [one.id for one in desk.person.plans(desk.cwd).plans]
    assert page.plan.id in [one.id for one in desk.person.plans(desk.cwd, all=True).plans]


def test_a_plan_that_cannot_be_dispatched_is_not_even_anyway(planner: Planner):
    circle = {"tickets": [ticket("a", "b"), ticket("b", "a")]}
    page = planner.plan(circle, circle, circle)
    assert (page.plan.state, page.findings[0].kind, page.chain) == ("faulty", "circle", [])
    with pytest.raises(StateConflict, match="cannot be dispatched: These tickets wait for each other"):
        planner.approve(page, anyway=True)


def test_a_rejection_keeps_what_was_approved(desk: Office, planner: Planner):
    page = planner.plan(TWO)
    made = planner.approve(page, "schema").tickets["schema"]
    id = int(page.plan.id[1:])
    with pytest.raises(BadInput, match="needs a reason"):
        desk.person.reject_plan(id, RejectPlan(why=" "))
    assert desk.person.reject_plan(id, RejectPlan(why="Add a logout.")).plan.state == "planning"
    again = {"tickets": [ticket("schema", title="Another"), ticket("logout", "schema")]}
    page = planner.answer(page.plan.id, again)
    assert [(one.key, one.title, one.ticket) for one in page.tickets] == [
        ("schema", "Make schema", made),
        ("logout", "Make logout", None),
    ]
    assert (page.plan.state, [one.author for one in page.rounds]) == ("partly", ["planner", "person", "planner"])
    assert list(planner.approve(page).tickets) == ["logout"]


def test_of_two_approvals_at_once_one_counts(desk: Office, planner: Planner):
    page = planner.plan(TWO)
    before = len(desk.person.status(desk.cwd).tickets)

    def approve(_: int) -> object:
        try:
            return planner.approve(page)
        except StateConflict as late:
            return late

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(approve, range(4)))
    assert sorted(type(one).__name__ for one in answers) == ["PlanApproved", *["StateConflict"] * 3]
    assert len(desk.person.status(desk.cwd).tickets) == before + 2


def test_a_new_test_is_not_announced_as_a_question(planner: Planner):
    new = ["tests/test_tax.py", "tests/conftest.py", "legion.toml"]
    page = planner.plan({"summary": "x", "tickets": [ticket("tax", new_files=new)]})
    assert page.tickets[0].asks_for == new[1:]


def test_a_repeated_request_answers_as_the_first_one(planner: Planner):
    page = planner.plan(TWO)
    first = planner.approve(page, "schema", request="once")
    assert list(first.tickets) == ["schema"]
    assert planner.approve(page, "schema", request="once").tickets == first.tickets
    with pytest.raises(StateConflict):
        planner.approve(page, "schema", request="twice")


def test_a_repeated_approval_of_an_epic_with_its_own_branch_answers_as_the_first_one(desk: Office, planner: Planner):
    desk.person.open_epic_branch(NamedEpic(cwd=desk.cwd, epic="v2"))
    page = planner.plan(TWO, epic="v2")
    first = planner.approve(page, request="once")
    assert planner.approve(page, request="once").tickets == first.tickets


def test_a_planner_asks_once_and_plans_with_the_answers(desk: Office, planner: Planner):
    asked = {"questions": [{"text": "Which database?", "proposals": ["SQLite", "Postgres"]}] * 2}
    page = planner.plan(asked, questions=True)
    assert (page.plan.state, [one.default for one in page.questions]) == ("asking", ["SQLite", "SQLite"])
    first, second = page.questions
    with pytest.raises(StateConflict, match="There is nothing to plan"):
        planner.answer(page.plan.id, TWO)
    with pytest.raises(BadInput, match="Say what instead"):
        desk.person.answer(first.id, AnswerQuestion(choice="other"))
    said = desk.person.answer(first.id, AnswerQuestion(choice="other", why="MySQL"))
    assert said.message == f"The planner of {page.plan.id} gets this answer."
    desk.person.answer(second.id, AnswerQuestion(choice="postgres"))
    with pytest.raises(StateConflict, match="already settled"):
        desk.person.answer(second.id, AnswerQuestion(choice="SQLite"))
    with desk.context.store.write() as tx:
        job.begin(tx, int(page.plan.id[1:]))
    page = planner.answer(page.plan.id, asked)
    assert (page.plan.state, page.plan.reason) == ("planning", "no more questions can be asked: answer with the plan")
    assert planner.answer(page.plan.id, TWO).plan.state == "ready"


def test_an_answer_after_the_deadline_is_refused_and_the_first_proposal_counts(desk: Office, planner: Planner):
    asked = {"questions": [{"text": "Which colour?", "proposals": ["green", "red"]}]}
    page = planner.plan(asked, questions=True)
    (question,) = page.questions
    settle_overdue(replace(desk.context, clock=lambda: question.deadline))
    with pytest.raises(StateConflict, match="already settled"):
        desk.person.answer(question.id, AnswerQuestion(choice="red"))
    project = desk.context.project(1)
    with desk.context.store.read() as tx:
        prompt = planner_run.prompts(project, tx, goals.get(tx, int(page.plan.id[1:]))).again
    assert "Which colour?\n  green" in prompt
    assert planner.answer(page.plan.id, TWO).plan.state == "ready"


def test_a_dropped_plan_withdraws_its_questions(desk: Office, planner: Planner):
    asked = {"questions": [{"text": "Which?", "proposals": ["a", "b"]}]}
    page = planner.plan(asked, questions=True)
    desk.person.drop_plan(int(page.plan.id[1:]))
    assert page.questions[0].id not in [one.id for one in desk.person.inbox().questions]


def test_a_plan_is_edited_as_toml_checked_and_never_overwritten_by_an_older_text(desk: Office, planner: Planner):
    page = planner.plan(TWO)
    id = int(page.plan.id[1:])
    there = desk.person.plan_text(id)
    assert there.text.startswith(f"# {page.plan.id}: {page.plan.goal}\n")
    wrong = there.text.replace("after = ", "afte = ")
    with pytest.raises(BadInput, match=f"{page.plan.id}, line 21: ticket `login` has no field 'afte'"):
        desk.person.save_plan(id, SavePlan(text=wrong, version=there.version))
    edited = there.text.replace('after = ["schema"]', 'files = ["lost.py"]')
    page = desk.person.save_plan(id, SavePlan(text=edited, version=there.version))
    assert (page.plan.state, [one.kind for one in page.findings]) == ("faulty", ["file"])
    with pytest.raises(StateConflict, match="changed while you edited it"):
        desk.person.save_plan(id, SavePlan(text=there.text, version=there.version))
    page = desk.person.save_plan(id, SavePlan(text=there.text, version=desk.person.plan_text(id).version))
    assert (page.plan.state, [one.author for one in page.rounds]) == ("ready", ["planner", "person", "person"])


def test_naming_a_protected_file_in_a_plan_gives_no_right_to_change_it(desk: Office, planner: Planner):
    greedy = ["README.txt", "legion.toml", "**/*", "LEGION.toml"]
    page = planner.plan({"tickets": [ticket("a", files=greedy[:3], new_files=greedy[3:])]})
    assert page.tickets[0].asks_for == greedy[1:]
    made = planner.approve(page, anyway=True)
    assert desk.person.ticket(made.tickets["a"]).files == ["README.txt"]


def test_only_a_person_plans_and_approves(desk: Office, planner: Planner):
    page = planner.plan(TWO)
    id = int(page.plan.id[1:])
    agent = desk.hire("planner-like").legion
    ticket_agent = desk.client(desk.of_ticket(planner.approve(page, "schema").tickets["schema"]))
    for legion in (agent, ticket_agent):
        for call in (
            lambda legion=legion: legion.approve_plan(id, ApprovePlan(anyway=True)),
            lambda legion=legion: legion.reject_plan(id, RejectPlan(why="x")),
            lambda legion=legion: legion.save_plan(id, SavePlan(text="", version=1)),
            lambda legion=legion: legion.plan(NewPlan(cwd=desk.cwd, goal="x")),
            lambda legion=legion: legion.split(1, SplitTicket()),
        ):
            with pytest.raises(NotAllowed):
                call()
    assert desk.person.plan_page(id).plan.approved == 1


@pytest.mark.parametrize(
    ("wanted", "error", "message"),
    [
        ({"goal": " "}, BadInput, "A goal has 1 to 40,000 characters"),
        ({"budget": -1.0}, BadInput, "A budget is a number of dollars"),
        ({"team": "nobodys"}, NotFound, "no team"),
        ({"epic": "a\nb"}, BadInput, "one line"),
    ],
)
def test_a_goal_that_cannot_be_planned_is_refused(desk: Office, wanted, error, message):
    with pytest.raises(error, match=message):
        desk.person.plan(NewPlan(**{"cwd": desk.cwd, "goal": "x"} | wanted))


def test_unknown_plans_tickets_and_epics_are_named(desk: Office):
    with pytest.raises(NotFound, match="There is no plan P4711"):
        desk.person.plan_page(4711)
    with pytest.raises(NotFound, match="There is no epic 'none'"):
        desk.person.epic(desk.cwd, "none")
    with pytest.raises(NotFound, match="There is no epic 'none'"):
        desk.person.replan(ReplanEpic(cwd=desk.cwd, epic="none"))
    with pytest.raises(BadInput, match="'P3' is the name of a plan"):
        desk.person.hire(HireAgent(task="x", name="P3", cwd=desk.cwd))


def test_a_planner_that_cannot_start_says_why_and_a_removed_project_has_no_plans(desk: Office, tmp_path: Path):
    other = Repository(tmp_path / "other")
    cwd = str(other.root)
    desk.person.add_project(AddProject(path=cwd))
    page = desk.person.plan(NewPlan(cwd=cwd, goal="x"))
    assert page.notes == ["legion.toml is not trusted, so nothing starts. Read it and run `legion trust`."]
    desk.person.remove_project(cwd)
    assert desk.person.plan_page(int(page.plan.id[1:])).plan.state == "dropped"


def test_a_repeated_goal_is_one_plan(desk: Office):
    wanted = NewPlan(cwd=desk.cwd, goal="Once.", request="the same")
    assert desk.person.plan(wanted).plan.id == desk.person.plan(wanted).plan.id


def dispatch(desk: Office, *new: NewTicket) -> list[int]:
    return desk.person.dispatch(Dispatch(cwd=desk.cwd, tickets=list(new))).ids


def test_a_split_ticket_is_replaced_when_all_of_the_plan_is_approved(desk: Office, planner: Planner):
    before, big, later = dispatch(
        desk,
        NewTicket(title="Before", key="before"),
        NewTicket(title="Big", key="big", epic="split", after_keys=["before"]),
        NewTicket(title="Later", after_keys=["big"]),
    )
    with desk.context.store.write() as tx:
        tickets.move(tx, big, Start("c" * 40))
        tickets.move(tx, big, Fail("too large"))
    page = desk.person.split(big, SplitTicket())
    with pytest.raises(StateConflict, match=f"already splits ticket {big}"):
        desk.person.split(big, SplitTicket())
    page = planner.answer(page.plan.id, {"tickets": [ticket("one"), ticket("two", big), ticket("three", "one")]})
    assert (page.drops, page.plan.epic) == ([big], "split")
    first = planner.approve(page, "one")
    assert (first.dropped, desk.person.ticket(later).ticket.after) == ([], [big])
    rest = planner.approve(page)
    assert rest.dropped == [big]
    assert desk.person.ticket(first.tickets["one"]).ticket.after == [before]
    assert desk.person.ticket(rest.tickets["two"]).ticket.after == []
    assert desk.person.ticket(later).ticket.after == [rest.tickets["two"], rest.tickets["three"]]
    land(desk, later)
    with pytest.raises(StateConflict, match="cannot be split"):
        desk.person.split(later, SplitTicket())


def land(desk: Office, number: int) -> None:
    change = Change(base="c" * 40, commit="d" * 40)
    with desk.context.store.write() as tx:
        for step in (Start("c" * 40), Propose(change), Prove(), Land("d" * 40)):
            tickets.move(tx, number, step)


def test_an_epic_is_planned_again_with_only_what_changes(desk: Office, planner: Planner):
    page = planner.plan({"tickets": [ticket("a"), ticket("b", "a"), ticket("c", "b")]}, epic="shop")
    made = planner.approve(page).tickets
    land(desk, made["a"])
    again = desk.person.replan(ReplanEpic(cwd=desk.cwd, epic="shop", why="No b."))
    assert again.plan.goal == f"{page.plan.goal}\n\nNo b."
    (other,) = dispatch(desk, NewTicket(title="Another's"))
    drops = [made["a"], made["b"], other, 4711]
    again = planner.answer(again.plan.id, {"drop": drops, "tickets": [ticket("d", made["a"])]})
    assert planner.approve(again).dropped == [made["b"]], "neither what landed nor what belongs to others"
    assert desk.person.ticket(made["c"]).ticket.after == []
    epic = desk.person.epic(desk.cwd, "shop")
    assert (epic.done, epic.total, epic.landed) == (1, 3, ["d" * 40])


def test_an_epic_whose_tickets_are_off_the_board_is_planned_again(desk: Office, planner: Planner):
    page = planner.plan(TWO)
    for number in planner.approve(page, "schema").tickets.values():
        desk.person.stop(number, Action())
        desk.person.drop(number)
    assert desk.person.replan(ReplanEpic(cwd=desk.cwd, epic=page.plan.id)).plan.source == "epic"


def test_an_epic_without_a_goal_is_planned_again_without_the_reasons_of_earlier_times(desk: Office, planner: Planner):
    (number,) = dispatch(desk, NewTicket(title="Large", epic="by hand"))
    desk.person.split(number, SplitTicket())
    desk.person.replan(ReplanEpic(cwd=desk.cwd, epic="by hand", why="First."))
    again = desk.person.replan(ReplanEpic(cwd=desk.cwd, epic="by hand", why="Second."))
    assert again.plan.goal == "Complete the epic by hand.\n\nSecond."


def test_an_estimate_comes_from_what_landed_and_says_how_wrong_it_was(desk: Office, planner: Planner):
    for number in dispatch(desk, *(NewTicket(title=f"Old {n}") for n in range(3))):
        with desk.context.store.write() as tx:
            runs.end(tx, runs.start(tx, number, 1).id, Outcome.FINISHED)
        land(desk, number)
    page = planner.plan(TWO)
    assert page.estimate.usd == 0.0
    assert page.estimate.usd_error is None
    made = planner.approve(page)
    with desk.context.store.read() as tx:
        assert goals.origin_of(tx, made.tickets["login"]) == (int(page.plan.id[1:]), "login")


def lands(desk: Office, number: int) -> None:
    with desk.context.store.write() as tx:
        for step in (Start("c" * 40), Propose(Change(base="c" * 40, commit="d" * 40)), Prove(), Land("d" * 40)):
            tickets.move(tx, number, step)


def read_again(desk: Office) -> list[str]:
    """Epics whose last readers were stored by now."""
    read_what_is_over(desk.context)
    with desk.context.store.read() as tx:
        everything = goals.of_project(tx, 1)
    return [one.epic for one in everything if one.source is PlanSource.READ]


def test_a_goal_is_read_again_once_all_of_it_is_over_and_something_landed(desk: Office, planner: Planner):
    page = planner.plan(TWO)
    assert page.plan.id not in read_again(desk)
    first = planner.approve(page, "schema").tickets["schema"]
    lands(desk, first)
    assert page.plan.id not in read_again(desk), "a part of the plan is not approved"
    last = planner.approve(page).tickets["login"]
    assert page.plan.id not in read_again(desk), "a ticket is open"
    with desk.context.store.write() as tx:
        tickets.move(tx, last, Fail("no"))
    assert page.plan.id not in read_again(desk), "a person decides about a failed one"
    with desk.context.store.write() as tx:
        tickets.move(tx, last, Retry(""))
        tickets.move(tx, last, Stop())
    assert [read_again(desk).count(page.plan.id) for _ in range(2)] == [1, 1], "once"

    none = planner.plan(TWO)
    for number in planner.approve(none).tickets.values():
        with desk.context.store.write() as tx:
            tickets.move(tx, number, Stop())
    assert none.plan.id not in read_again(desk), "nothing of it landed"


POINT = {"text": "It holds", "state": "missing", "command": "test -f no"}


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"tickets": []}, 'no JSON object with the key "points"'),
        ({"points": []}, "must be a list of 1 to 60 points"),
        ({"points": [POINT]}, "a point is missing, and no ticket"),
        ({"points": [POINT | {"state": "done"}], **TWO}, "every point is done"),
        ({"points": [POINT | {"state": "perhaps"}]}, "needs a `text`, and a `state`"),
        ({"points": [POINT | {"command": ""}]}, "point 1: give a `command`"),
        ({"points": [7]}, "point 1 must be a table"),
        ({"points": [POINT | {"text": 7}]}, "point 1: `text` must be a text"),
    ],
)
def test_an_answer_of_a_last_reader_that_cannot_be_used_says_why(given: object, fault: str):
    with pytest.raises(MalformedDraft, match=fault):
        parse_points(json.dumps(given))
