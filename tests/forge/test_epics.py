"""An epic as one change: its tickets land on a branch of its own, which becomes a pull request, or lands as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from legion.domain.forge.pulls import PullStage
from legion.domain.plans.answer import GoalPoint, PointState
from legion.domain.plans.checks import ProofTrial
from legion.domain.plans.plan import GoalPlan, PlanSource
from legion.domain.tickets.ticket import Prove, State
from legion.service.forge import issues
from legion.service.projects import epic_branches, sessions
from legion.service.tickets import epic_change
from legion.service.tickets.actions import drop
from legion.service.tickets.dispatch import dispatch
from legion.service.views import epic as views
from legion.store import epic_sessions
from legion.store.board import goals, projects, tickets
from legion.wire.dispatch import Dispatch, Dispatched, NewTicket
from legion.wire.errors import BadInput, NotFound, StateConflict
from legion.wire.forge import AssignIssues
from legion.wire.plans import EpicBudget, NamedEpic
from legion.wire.sessions import NamedSession
from tests.forge.desk import CONFIG, Desk
from tests.forge.hosting import WRITER, hosting
from tests.support.repository import Repository

LOCAL = '[landing]\nmode = "merge"\n'


@pytest.fixture
def one_pull(tmp_path: Path) -> Iterator[Desk]:
    """A Legion at a stand-in, for which an epic is one pull request."""
    shop = Repository(tmp_path / "shop", CONFIG + 'pulls = "epic"\n')
    (tmp_path / "forge").mkdir()
    with hosting(tmp_path / "forge", shop.root) as forge:
        desk = Desk(tmp_path / "legion", shop)
        yield desk.connect(forge)
        desk.close()


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Desk]:
    desk = Desk(tmp_path / "legion", Repository(tmp_path / "shop", LOCAL))
    desk.adopt()
    yield desk
    desk.close()


def send(desk: Desk, *titles: str, epic: str = "v2", **fields: object) -> Dispatched:
    new = [NewTicket(title=title, epic=epic, **fields) for title in titles]  # type: ignore[arg-type]
    return dispatch(desk.context, Dispatch(cwd=desk.cwd, tickets=new))


def session_id(desk: Desk, name: str = "epic-v2") -> int:
    with desk.store.read() as tx:
        common_dir = projects.get(tx, 1).common_dir
        there = (*projects.sessions_of(tx, common_dir), *projects.sessions_of(tx, common_dir, ended=True))
        return next(one.id for one in there if one.session == name)


def prove(desk: Desk, ticket: int) -> None:
    """What the check job does where there are no checks."""
    with desk.store.write() as tx:
        tickets.move(tx, ticket, Prove())


def test_an_epic_becomes_one_pull_request_and_comes_back_to_one_agent(one_pull: Desk):
    desk, hosted = one_pull, one_pull.forge.hosted
    made = send(desk, "Tables", "Page", criteria="It is fast.")
    assert made.notes == ["It goes to session epic-v2: its epic lands on epic/v2."]
    single = send(desk, "Alone", epic="").ids[0]
    desk.work()
    desk.land(session_id(desk))
    assert [desk.state(number) for number in made.ids] == ["done", "done"]
    assert desk.look() == ""
    (whole,) = {number for number, one in desk.tickets.items() if one.spec.title == "Epic v2"}
    assert desk.tickets[whole].state is State.CHECKING
    prove(desk, whole)
    desk.land()
    assert desk.look() == ""
    assert desk.look() == ""
    known = desk.pull(whole)
    assert known.number is not None
    pull = hosted.issues[known.number]
    assert pull.title == "Epic v2"
    assert f"ticket {made.ids[0]}: Tables" in pull.body
    assert f"It is fast. (ticket {made.ids[1]})" in pull.body
    assert len([one for one in hosted.issues.values() if one.pull is not None]) == 2, "the epic's and the single one's"
    assert desk.pull(single).number is not None

    assert "last reader" not in pull.body
    points = (
        GoalPoint(text="It has tables", state=PointState.DONE, command="test -f tables"),
        GoalPoint(text="It is fast", state=PointState.MISSING, evidence="page.txt:1, Closes #9"),
    )
    reader = GoalPlan(id=0, project=session_id(desk), goal="A shop", epic="v2", source=PlanSource.READ, points=points)
    with desk.store.write() as tx:
        goals.create(tx, replace(reader, trials={"test -f tables": ProofTrial(exit_code=0)}))
    assert desk.look() == ""
    read = hosted.issues[known.number].body.partition("What a last reader found of the goal, point by point")[2]
    assert "done: It has tables; `test -f tables` passes\nmissing: It is fast; page.txt:1, Closes #\u20609" in read
    hosted.issues[known.number].body = "Written by a person."
    assert desk.look() == ""
    assert hosted.issues[known.number].body == "Written by a person.", "what was shown is not shown again"

    hosted.review(known.number, "CHANGES_REQUESTED", "The page is slow.", author=WRITER)
    desk.look()
    after = desk.tickets[whole]
    assert (after.state, after.attempt) == (State.QUEUED, 1)
    assert "The page is slow." in after.feedback
    assert after.plant is not None, "its agent starts with the epic's files"

    desk.work({"page.txt": "fast\n"})
    desk.land()
    desk.look()
    hosted.merge(known.number, by=WRITER)
    desk.round()
    desk.round()
    assert desk.state(whole) == "done"
    assert desk.pull(whole).stage is PullStage.LANDED
    page = views.epic_page(desk.context, desk.cwd, "v2")
    assert [one.id for one in page.tickets] == [*made.ids, whole]
    assert page.done == page.total == 3


def test_the_issues_of_an_epic_are_done_and_closed_when_its_pull_request_is_merged(one_pull: Desk):
    desk, hosted = one_pull, one_pull.forge.hosted
    first, second = (hosted.open_issue(title) for title in ("Tables", "Page"))
    wanted = AssignIssues(cwd=desk.cwd, issues=[first.number, second.number], epic="v2")
    one, two = (line.ticket or 0 for line in issues.assign(desk.context, wanted).issues)
    desk.work()
    desk.land(session_id(desk))
    assert [desk.state(number) for number in (one, two)] == ["done", "done"]
    assert desk.look() == ""
    (lander,) = {number for number, ticket in desk.tickets.items() if ticket.spec.title == "Epic v2"}
    assert "legion:working" in first.labels
    assert f"part of epic v2, which ticket {lander} lands" in first.comments[0].body
    prove(desk, lander)
    desk.land()
    desk.look()
    desk.look()
    number = desk.pull(lander).number or 0
    assert hosted.issues[number].body.startswith(f"Closes #{first.number}\nCloses #{second.number}\n")
    assert "**done" not in first.comments[0].body
    hosted.merge(number, by=WRITER)
    assert (first.state, second.state) == ("closed", "closed")
    desk.round()
    desk.round()
    for issue in (first, second):
        assert issue.labels == []
        assert f"is **done**.\n\nIt is part of epic v2, which ticket {lander} lands." in issue.comments[0].body
        assert len(issue.comments) == 1
    assert [name for name in hosted.branches() if name.startswith("issue-")] == []


def test_the_issue_of_a_ticket_that_waits_for_its_epic_or_was_dropped_is_told_so(one_pull: Desk):
    desk, hosted = one_pull, one_pull.forge.hosted
    first, second = (hosted.open_issue(title) for title in ("Tables", "Page"))
    for issue in (first, second):
        issues.assign(desk.context, AssignIssues(cwd=desk.cwd, issues=[issue.number], epic="v2"))
    drop(desk.context, 2)
    send(desk, "Open")
    desk.work({"a.txt": "a\n"})
    desk.actions.stop(3, "enough")
    desk.land(session_id(desk))
    assert desk.look() == ""
    assert "is **done on the branch epic/v2**" in first.comments[0].body
    assert first.labels == ["legion:working"]
    assert "is **dropped**" in second.comments[0].body
    assert second.labels == []
    desk.look()
    assert set(hosted.branches()) == {"issue-1-tables", "main"}


def test_a_second_round_of_an_epic_gets_a_branch_of_its_own(one_pull: Desk):
    send(one_pull, "Tables")
    one_pull.work()
    one_pull.land(session_id(one_pull))
    one_pull.look()
    made = send(one_pull, "More")
    assert made.notes == ["It goes to session epic-v2-2: its epic lands on epic/v2-2."]


def test_an_epic_whose_ticket_failed_is_not_offered(one_pull: Desk):
    first, second = send(one_pull, "Tables", "Page").ids
    one_pull.actions.stop(second, "enough")
    one_pull.work()
    one_pull.land(session_id(one_pull))
    one_pull.look()
    assert one_pull.state(first) == "done"
    assert set(one_pull.tickets) == {first, second}


def test_a_branch_of_an_epic_lands_as_a_whole(alone: Desk):
    wanted = NamedEpic(cwd=alone.cwd, epic="Big one!")
    said = epic_branches.open_branch(alone.context, wanted)
    assert "land on epic/Big-one, in session epic-Big-one" in said.message
    assert epic_branches.open_branch(alone.context, wanted).message == said.message
    assert alone.shop.git("rev-parse", "epic/Big-one") == alone.project.target
    assert [one.acting for one in sessions.session_list(alone.context, alone.cwd).sessions] == [True, False]
    with pytest.raises(StateConflict, match="Nothing has landed on epic/Big-one yet"):
        epic_change.land(alone.context, wanted)
    first, second = send(alone, "Tables", "Page", epic="Big one!").ids
    other = send(alone, "Elsewhere", epic="").ids[0]
    alone.work()
    before = alone.project.target
    alone.land(session_id(alone, "epic-Big-one"))
    assert {alone.state(number) for number in (first, second)} == {"done"}
    third = send(alone, "Late", epic="Big one!").ids[0]
    waits = epic_change.land(alone.context, wanted)
    assert waits.message == f"Epic Big one! lands by itself as one change when ticket {third} has ended."
    assert views.epic_page(alone.context, alone.cwd, "Big one!").lands_when == f"ticket {third} has ended"
    epic_change.land_wanted(alone.context)
    assert alone.project.target == before, "the target of the project has none of it"
    alone.actions.stop(third, "enough")
    epic_change.land_wanted(alone.context)
    epic_change.land_wanted(alone.context)
    (whole,) = (number for number, one in alone.tickets.items() if one.spec.title == "Epic Big one!")
    assert alone.tickets[whole].state is State.CHECKING
    prove(alone, whole)
    alone.land()
    assert {alone.state(number) for number in (other, whole)} == {"done"}
    files = alone.project.hub.files(alone.project.target)
    assert {f"ticket-{first}-1.txt", f"ticket-{second}-1.txt", f"ticket-{other}-1.txt"} <= set(files)
    assert "epic-Big-one" not in [one.name for one in sessions.session_list(alone.context, alone.cwd).sessions]


def test_a_crash_between_the_end_of_the_session_and_the_ticket_is_made_good(alone: Desk):
    wanted = NamedEpic(cwd=alone.cwd, epic="v2")
    epic_branches.open_branch(alone.context, wanted)
    send(alone, "Tables")
    alone.work()
    alone.land(session_id(alone))
    with alone.store.write() as tx:
        epic_sessions.end_to_land(tx, 1, projects.get(tx, session_id(alone)))
    sessions.complete(alone.context, NamedSession(cwd=alone.cwd, name="epic-v2"))
    with alone.store.read() as tx:
        assert epic_branches.ready(tx, projects.get(tx, 1), ()) == ["v2"]
    (whole,) = epic_change.land(alone.context, wanted).tickets
    assert alone.tickets[whole].change is not None
    with pytest.raises(NotFound, match="has no branch of its own"):
        epic_change.land(alone.context, wanted)


def test_an_epic_with_a_branch_is_dispatched_alone_and_keeps_its_budget(alone: Desk):
    epic_branches.open_branch(alone.context, NamedEpic(cwd=alone.cwd, epic="v2"))
    mixed = Dispatch(cwd=alone.cwd, tickets=[NewTicket(title="a", epic="v2"), NewTicket(title="b")])
    with pytest.raises(BadInput, match="Epic v2 has a branch of its own"):
        dispatch(alone.context, mixed)
    send(alone, "Tables")
    assert views.set_budget(alone.context, EpicBudget(cwd=alone.cwd, epic="v2", usd=5)).budget == 5
    with alone.store.read() as tx:
        assert epic_sessions.budgets(tx) == {(1, "v2"): 5.0, (2, "v2"): 5.0}
