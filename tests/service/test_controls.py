"""A person's own hands on tickets, numbers and everything at once, over the real service."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from legion.jobs.agent.briefing import briefing
from legion.store.board import projects
from legion.wire.dispatch import Dispatch, NewTicket
from legion.wire.errors import BadInput, LegionError, NotAllowed, StateConflict
from legion.wire.mail import ArchiveMail, FindMail, NewMessage, ReadMail
from legion.wire.projects import SetNumbers, Where
from legion.wire.tickets import Action, EditTicket
from tests.support.board import Board
from tests.support.legion import Project, new
from tests.support.office import QuietSquad
from tests.support.repository import Repository


@pytest.fixture(scope="module")
def one_board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Board]:
    one = Board(tmp_path_factory.mktemp("controls"))
    yield one
    one.close()


@pytest.fixture
def board(one_board: Board) -> Board:
    one_board.reset()
    return one_board


@pytest.fixture(scope="module")
def shop(house: QuietSquad, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """One project for the tests that look at their own tickets only."""
    return house.adopt(Repository(tmp_path_factory.mktemp("shop") / "ada"))


def is_paused(board: Board) -> bool:
    project = board.service.status(board.cwd).project
    return project is not None and project.paused


def test_an_edit_reaches_the_page_and_the_briefing(house: QuietSquad, project: Project):
    first = project.dispatch("First", "true")
    ticket = project.dispatch("Second", "true", criteria="a\nb", prove=["a :: true", "b :: false"])
    wanted = EditTicket(
        title=" New  title", text="Do that.", criteria="b\nc", after=[first], files=["x/**"], priority=7
    )
    message = house.client.edit(ticket, wanted).message
    assert message == f"Ticket {ticket} is changed: title, text, criteria, after, files, priority."
    page = house.client.ticket(ticket)
    assert (page.ticket.title, page.text, page.files) == ("New title", "Do that.", ["x/**"])
    assert (page.ticket.after, page.ticket.priority) == ([first], 7)
    assert [(one.criterion, one.backing) for one in page.evidence] == [("b", "open"), ("c", "claimed")]
    assert page.history[-1].data["fields"] == ["after", "criteria", "files", "priority", "text", "title"]
    assert house.client.edit(ticket, EditTicket(after=[])).tickets == [ticket]
    assert house.client.graph(project.cwd).edges == []


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({}, "Name what to change"),
        ({"title": " "}, "needs a title"),
        ({"priority": 2000}, "--priority must be a whole number from -1000 to 1000"),
        ({"files": ["/etc"]}, "--files has '/etc', which starts with a slash"),
        ({"gate": "never"}, "--gate must be auto, person or risk"),
        ({"after": [999_999]}, "There is no ticket 999999"),
    ],
    ids=["nothing", "no-title", "priority", "files", "gate", "unknown"],
)
def test_an_edit_that_a_dispatch_would_refuse_is_refused_and_changes_nothing(
    house: QuietSquad, shop: Project, wanted, message
):
    ticket = shop.dispatch("One", "true")
    before = house.client.ticket(ticket)
    with pytest.raises(BadInput, match=message):
        house.client.edit(ticket, EditTicket(**wanted))
    assert house.client.ticket(ticket) == before


def test_no_edit_makes_a_circle(house: QuietSquad, shop: Project):
    one = shop.dispatch("One", "true")
    two = shop.dispatch("Two", "true", after=[one])
    with pytest.raises(BadInput, match="wait for each other in a circle"):
        house.client.edit(one, EditTicket(after=[two]))


def test_work_in_progress_takes_a_new_priority_and_gate_and_nothing_else(board: Board):
    board.put(1, state="landing")
    with pytest.raises(StateConflict, match="only its priority, its gate and --alone can change now"):
        board.service.edit(1, EditTicket(text="Other."))
    board.service.edit(1, EditTicket(priority=4, gate="person"))
    assert board.service.ticket(1).gate == "person"
    board.service.edit(1, EditTicket(gate=""))
    assert board.service.ticket(1).gate == ""


def test_a_retry_takes_new_texts_which_reach_the_next_attempt(board: Board):
    board.put(1, state="failed")
    said = board.service.retry(1, Action(feedback="Mind the till.", edit=EditTicket(text="Ring once.")))
    assert said.message == "Ticket 1 is queued again, with a new text."
    ticket = board.tickets[1]
    assert ticket.feedback.startswith("Mind the till.\n\nThe person changed the ticket since your last attempt.")
    text = briefing(ticket, board.context.project(1).config)
    assert "Ring once." in text.split("## What went wrong")[0]
    with pytest.raises(StateConflict, match="only an ended one can be tried again"):
        board.service.retry(1, Action(edit=EditTicket(text="x")))


def test_no_agent_edits_a_ticket(house: QuietSquad):
    agent = house.office.hire("editor").legion
    with pytest.raises(NotAllowed):
        agent.edit(1, EditTicket(gate="auto"))


def test_numbers_hold_at_once_and_return_to_legion_toml(house: QuietSquad, project: Project):
    client, cwd = house.client, project.cwd
    assert client.numbers(cwd).message == (
        "4 agents work at once (legion.toml); a ticket is tried 3 times (legion.toml)."
    )
    client.set_numbers(SetNumbers(cwd=cwd, workers=2))
    now = client.set_numbers(SetNumbers(cwd=cwd, retries=7))
    assert (now.workers, now.workers_set, now.retries, now.retries_set) == (2, True, 7, True)
    assert client.ticket(project.dispatch("One", "true")).ticket.max_attempts == 7
    context = house.office.context
    with context.store.read() as tx:
        (mine,) = [one.id for one in projects.all(tx) if one.root == cwd]
    assert context.project(mine).config.agents.parallel == 2
    again = client.set_numbers(SetNumbers(cwd=cwd, workers=0, retries=0))
    assert (again.workers, again.workers_set, again.retries) == (4, False, 3)
    for wrong in ({"workers": 65}, {"retries": -1}):
        with pytest.raises(BadInput, match="takes a number from 1 to"):
            client.set_numbers(SetNumbers(cwd=cwd, **wrong))


def test_a_freeze_parks_agents_at_work_and_thaw_resumes_exactly_those(board: Board):
    board.put(1, state="working")
    board.put(2, state="parked")
    board.put(3, state="landing")
    assert board.service.freeze().tickets == [1]
    states = {number: ticket.state.value for number, ticket in board.tickets.items()}
    assert states == {1: "parked", 2: "parked", 3: "landing"}
    assert is_paused(board)
    project = board.service.status(board.cwd).project
    assert project is not None
    assert project.frozen
    notes = board.service.dispatch(Dispatch(cwd=board.cwd, tickets=[NewTicket(title="x")], dry_run=True)).notes
    assert "The project is paused. Run `legion resume --all` to resume it." in notes
    assert board.service.thaw().tickets == [1]
    assert not is_paused(board)
    ticket = board.tickets[1]
    assert (ticket.state.value, ticket.attempt, ticket.interrupted) == ("queued", 1, True)
    assert board.tickets[2].state.value == "parked"


def test_a_project_that_was_paused_before_stays_paused(board: Board):
    board.service.pause(Where(cwd=board.cwd))
    board.service.freeze()
    board.service.thaw()
    assert is_paused(board)


def test_a_dry_run_says_what_would_be_created_and_creates_nothing(house: QuietSquad, project: Project):
    there = project.dispatch("There", "true")
    plan = [new("One", "true", key="one", after=[there]), new("Two", "true", after_keys=["one"]), checkpoint()]
    before = house.client.status(project.cwd)
    made = house.client.dispatch(Dispatch(cwd=project.cwd, tickets=plan, dry_run=True))
    assert made.ids == []
    assert made.planned == [
        f"1. One (after ticket {there}, team solo, 3 attempts)",
        "2. Two (after number 1, team solo, 3 attempts)",
        "3. Gate (checkpoint)",
    ]
    assert house.client.status(project.cwd).tickets == before.tickets
    with pytest.raises(BadInput, match="There is no ticket 999999"):
        house.client.dispatch(Dispatch(cwd=project.cwd, tickets=[new("x", "true", after=[999_999])], dry_run=True))
    assert project.dispatch("Next", "true") == there + 1


def checkpoint() -> NewTicket:
    return NewTicket(title="Gate", checkpoint=True)


def test_a_ticket_goes_to_an_agent_by_name_or_not_at_all(house: QuietSquad):
    client, cwd = house.office.person, house.office.cwd
    agent = house.office.hire("ada")
    made = client.dispatch(Dispatch(cwd=cwd, tickets=[NewTicket(title="Yours")], to="ada"))
    assert "ada gets it with its next turn." in made.notes
    assert client.ticket(made.ids[0]).ticket.doing == "held by ada"
    for wanted, message in (
        (Dispatch(cwd=cwd, tickets=[NewTicket(title="More")], to="ada"), "ada holds ticket"),
        (Dispatch(cwd=cwd, tickets=[NewTicket(title="More")], to="nobody"), "not found"),
        (Dispatch(cwd=cwd, tickets=[NewTicket(title="More", command="true")], to="ada"), "--to names the agent"),
        (Dispatch(cwd=cwd, tickets=[NewTicket(title="A"), NewTicket(title="B")], to="ada"), "--to takes one ticket"),
    ):
        count = len(client.status(cwd).tickets)
        with pytest.raises(LegionError, match=message):
            client.dispatch(wanted)
        assert len(client.status(cwd).tickets) == count
    with pytest.raises(NotAllowed, match="Only the person gives a ticket"):
        agent.legion.dispatch(Dispatch(cwd=cwd, tickets=[NewTicket(title="Mine")], to="ada"))


def test_mail_is_answered_found_and_put_away(house: QuietSquad):
    client = house.office.person
    agent = house.office.hire("grace")
    agent.legion.tell_agent(NewMessage(to="root", text="Blue or GREEN_door?"))
    (question,) = [one for one in client.mail(ReadMail()).messages if one.sender_name == "grace"]
    client.tell_agent(NewMessage(to="", text="Green.", reply_to=question.number))
    thread = client.find_mail(FindMail(thread=question.number)).messages
    assert [(one.sender_name, one.reply_to) for one in thread[-2:]] == [("grace", None), ("root", question.number)]
    assert [one.number for one in client.find_mail(FindMail(text="green_DOOR")).messages] == [question.number]
    assert client.find_mail(FindMail(text="greenXdoor")).messages == []
    assert client.archive_mail(ArchiveMail(numbers=[question.number])).message == "1 message is archived."
    assert question.number not in [one.number for one in client.mail(ReadMail(all=True)).messages]
    assert question.number in [one.number for one in client.find_mail(FindMail(thread=question.number)).messages]
    other = house.office.hire("hopper")
    with pytest.raises(NotAllowed, match="is not yours to answer"):
        other.legion.tell_agent(NewMessage(to="", text="Red.", reply_to=question.number))
    for wanted in (FindMail(), FindMail(text=" ")):
        with pytest.raises(BadInput, match="Say what to look for"):
            client.find_mail(wanted)
    with pytest.raises(BadInput, match="is not addressed to you"):
        client.archive_mail(ArchiveMail(numbers=[thread[-1].number]))


def test_usage_is_cut_by_role_and_project_from_a_day_on(board: Board):
    board.put(1, state="working")
    board.run(1)
    assert [share.key for share in board.service.usage(board.cwd, "role").shares] == ["builder"]
    assert [share.key for share in board.service.usage(None, "project").shares] == ["shop"]
    assert board.service.usage(board.cwd, "role", "2999-01-01").shares == []
    with pytest.raises(BadInput, match="is no day"):
        board.service.usage(board.cwd, "role", "yesterday")


def test_what_an_agent_says_about_its_progress_is_shown_where_people_look(board: Board):
    board.put(1, state="working")
    run = board.run(1, "STATUS: read → write\nSMOKE_TESTS:\n- open /login\nEND_SMOKE_TESTS\n", ended=False)
    board.prepare(run)
    page = board.service.ticket(1)
    assert (page.progress, page.smoke_tests) == ("read → write", "- open /login")
    assert page.ticket.doing.endswith(": read → write")
