"""What a person opens to agents in their settings, and the limits that they set."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from legion.config.files.user import UserConfig, parse
from legion.config.sections.limits import StandingSettings
from legion.store.board import tickets
from legion.wire.agents import FireAgent, InterruptAgent
from legion.wire.dispatch import Dispatch, NewTicket
from legion.wire.errors import BadInput, NotAllowed, StateConflict
from legion.wire.mail import NewMessage, ReadMail
from tests.support.office import Employee, Office, office

SETTINGS = """
[drivers.mine]
run = "true"

[standing]
tell_anybody = ["Herald"]
interrupt_anybody = ["warden"]
fire_anybody = ["warden"]
choose_driver = ["*"]
"""


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Office]:
    with office(tmp_path_factory.mktemp("opened"), parse(SETTINGS)) as one:
        yield one


@pytest.fixture
def stranger(here: Office) -> Iterator[Employee]:
    """In a tree of its own."""
    boss = here.hire("stranger")
    yield here.hire("", boss)
    here.person.fire(FireAgent(id=boss.id, subtree=True))


def test_a_role_that_the_person_opened_writes_to_everybody(here: Office, stranger: Employee):
    plain, herald = here.hire("plain"), here.hire("herald", role=" herald")
    with pytest.raises(NotAllowed, match="write to agents above and below you"):
        plain.legion.tell_agent(NewMessage(to=stranger.id, text="hello"))
    assert stranger.name not in [one.name for one in plain.legion.agents(False).agents]
    assert stranger.name in [one.name for one in herald.legion.agents(False).agents]
    herald.use("legion-tell", to=stranger.id, message="hello")
    heard = here.person.mail(ReadMail(agent=stranger.id)).messages
    assert [(one.sender_name, one.text) for one in heard if one.kind == "tell"] == [("herald", "hello")]
    with pytest.raises(NotAllowed, match="You may not fire"):
        herald.legion.fire(FireAgent(id=stranger.id))


def test_nobody_hires_somebody_who_may_more_than_itself(here: Office, stranger: Employee):
    boss = here.hire("mole-owner")
    mole = here.hire("mole", boss, role="herald")
    with pytest.raises(NotAllowed, match="write to agents above and below you"):
        mole.legion.tell_agent(NewMessage(to=stranger.id, text="hello"))
    # Not even when it reports to the person, because its parent is gone.
    here.person.fire(FireAgent(id=boss.id))
    with pytest.raises(NotAllowed, match="write to agents above and below you"):
        mole.legion.tell_agent(NewMessage(to=stranger.id, text="hello"))


def test_a_warden_interrupts_and_fires_everybody_but_those_above_it(here: Office, stranger: Employee):
    warden = here.hire("warden", role="Warden")
    below = here.hire("deputy", warden, role="warden", headcount=0)
    interrupted = below.legion.interrupt_agent(InterruptAgent(id=stranger.id))
    assert interrupted.to == [stranger.id]
    for above in (warden.id, below.id):
        with pytest.raises(NotAllowed, match="You may not fire"):
            below.legion.fire(FireAgent(id=above))
    other = here.hire("victim")
    assert below.use("legion-fire", agent="victim").data["message"].startswith("Fired: ")
    told = [one for one in here.person.mail(ReadMail(agent="root", all=True)).messages if one.sender == other.id]
    assert told[-1].text == "victim, which reported to you, was fired."
    with pytest.raises(NotAllowed, match="was revoked"):
        other.legion.agents(False)


def test_where_it_is_open_a_ticket_names_one_of_the_persons_drivers_and_never_a_command(here: Office):
    boss = here.hire("leader")
    for driver in ("standing", "mine"):
        number = boss.use("legion-dispatch", title="t", text="x", driver=driver).data["ticket"]
        with here.context.store.read() as tx:
            spec = tickets.get(tx, number).spec
        assert (spec.driver, spec.dispatcher) == (driver, boss.id)
        claimed = here.hire("", boss).use("legion-claim", ticket=number) if driver == "standing" else None
        assert claimed is None or claimed.data["ticket"] == number
        if driver == "mine":
            with pytest.raises(StateConflict, match="not ready to be claimed"):
                here.hire("", boss).use("legion-claim", ticket=number)
        boss.use("legion-stop", what=str(number))
    with pytest.raises(BadInput, match="There is no driver"):
        boss.use("legion-dispatch", title="t", text="x", driver="nobodys")
    with pytest.raises(NotAllowed, match="leave out command"):
        boss.legion.dispatch(Dispatch(cwd=here.cwd, tickets=[NewTicket(title="t", command="true")]))


def test_where_it_is_open_an_agent_hires_with_another_program(here: Office):
    boss = here.hire("recruiter")
    offered = {one.name: one.parameters["properties"] for one in boss.legion.tools().tools}
    assert "driver" in offered["legion-hire"]
    with pytest.raises(BadInput, match="Cline cannot be a standing agent"):
        boss.use("legion-hire", task="x", driver="cline")
    assert boss.use("legion-hire", task="x", driver="claude").data["hired"]


def test_the_persons_limits_hold_also_for_those_who_were_hired_before(tmp_path):
    with office(tmp_path, UserConfig(standing=StandingSettings(most=4, levels=3))) as here:
        boss = here.hire("boss")
        second = here.hire("second", boss)
        third = here.hire("third", second)
        with pytest.raises(NotAllowed, match="as deep as allowed"):
            here.hire("fourth", third)
        here.hire("last", boss)
        with pytest.raises(NotAllowed, match="4 at once are allowed"):
            here.hire("fifth")
        here.person.fire(FireAgent(id="third"))
        # The settings as the daemon has them after the person changed the file.
        here.context.settings._config = replace(here.context.user, standing=StandingSettings(most=9, levels=2))
        with pytest.raises(NotAllowed, match="as deep as allowed"):
            here.hire("too-deep", second)
        here.hire("fits", boss)
