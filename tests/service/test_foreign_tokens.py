"""An agent with its own token and somebody else's names: tickets, runs, mail, questions and agents stay closed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from legion.domain.questions import QuestionKind
from legion.store.board import questions
from legion.store.database import schema
from legion.store.work import runs
from legion.wire.agents import ClaimTicket, FireAgent, InterruptAgent, PlanVerdict
from legion.wire.dispatch import Dispatch, NewTicket
from legion.wire.errors import BadInput, LegionError, NotAllowed, NotFound, StateConflict
from legion.wire.mail import AnswerQuestion, ReadMail
from legion.wire.operations import OPERATIONS
from legion.wire.projects import AddProject, Trust
from legion.wire.table import OpenTo
from legion.wire.tickets import Action
from tests.support.office import PERSONS, Employee, Office, office
from tests.support.repository import Repository

REFUSALS = (NotAllowed, NotFound, StateConflict)


class Foreign:
    """A thief and a victim that are siblings, and things that belong to others: here and in another project."""

    def __init__(self, here: Office, folder: Path) -> None:
        self.here = here
        self.thief, self.victim = here.hire("thief"), here.hire("victim")
        other = Repository(folder / "grace")
        here.person.add_project(AddProject(path=str(other.root)))
        shown = here.person.trustable(str(other.root))
        here.person.trust(Trust(cwd=str(other.root), hashes=[text.hash for text in shown.texts]))
        self.persons = self.dispatched(here.cwd)
        self.elsewhere = self.dispatched(str(other.root))
        self.standing = self.dispatched(str(other.root), "standing")
        self.own = self.thief.use("legion-dispatch", title="own", text="x").data["ticket"]
        with here.context.store.write() as tx:
            self.their_run = runs.start(tx, self.persons, 1).id
            self.run_elsewhere = runs.start(tx, self.elsewhere, 1).id
            self.question = questions.ask(
                tx, key="ask:1", kind=QuestionKind.ASK, project=1, ticket=self.persons, words="Which?", deadline=2e9
            ).id

    def dispatched(self, cwd: str, driver: str = "claude") -> int:
        wanted = Dispatch(cwd=cwd, tickets=[NewTicket(title="the person's", driver=driver)])
        return self.here.person.dispatch(wanted).ids[0]

    def state(self) -> str:
        """Everything that a call could have changed, but for the record of refusals."""
        tables = (schema.tickets, schema.questions, schema.agents, schema.runs)
        with self.here.context.store.read() as tx:
            return "\n".join(str(row) for table in tables for row in tx.execute(table.select()))


@pytest.fixture(scope="module")
def foreign(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Foreign]:
    folder = tmp_path_factory.mktemp("foreign")
    with office(folder) as here:
        yield Foreign(here, folder)


CALLS: dict[str, Callable[[Foreign, Employee], object]] = {
    "stop a person's ticket": lambda f, me: me.legion.stop(f.persons, Action()),
    "retry a person's ticket": lambda f, me: me.legion.retry(f.persons, Action()),
    "stop it by the tool": lambda f, me: me.use("legion-stop", what=str(f.persons)),
    "read a ticket of another project": lambda f, me: me.legion.ticket(f.elsewhere),
    "read its log": lambda f, me: me.legion.log(f.elsewhere),
    "read its diff": lambda f, me: me.legion.diff(f.elsewhere),
    "wait for it": lambda f, me: me.legion.wait(None, [f.elsewhere], 0, 0),
    "read a foreign run under an own ticket": lambda f, me: me.legion.log(f.own, run=f.run_elsewhere),
    "read a sibling's mail": lambda f, me: me.legion.mail(ReadMail(agent=f.victim.id)),
    "answer a question": lambda f, me: me.legion.answer(f.question, AnswerQuestion(choice="yes")),
    "fire a sibling": lambda f, me: me.legion.fire(FireAgent(id=f.victim.id)),
    "interrupt a sibling": lambda f, me: me.legion.interrupt_agent(InterruptAgent(id=f.victim.id, text="stop")),
    "claim a ticket of another project": lambda f, me: me.legion.claim(ClaimTicket(ticket=f.standing)),
    "approve a sibling's plan": lambda f, me: me.legion.decide_plan(PlanVerdict(agent=f.victim.id, approve=True)),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_token_opens_nothing_of_another_agent(foreign: Foreign, name: str):
    before = foreign.state()
    with pytest.raises(REFUSALS):
        CALLS[name](foreign, foreign.thief)
    assert foreign.state() == before


@pytest.mark.parametrize("name", sorted(name for name, row in OPERATIONS.items() if OpenTo.TICKET not in row.open_to))
def test_the_token_of_a_tickets_agent_opens_no_operation_but_its_tools(foreign: Foreign, name: str):
    row = OPERATIONS[name]
    path = row.path.format(**{one.name: 1 for one in row.in_path})
    token = foreign.here.of_ticket(foreign.own)
    with pytest.raises(NotAllowed, match="not open to agents"):
        foreign.here.line(token).ask(row.method, path, body=None if row.method == "GET" else {})


def test_a_token_under_another_agents_name_is_refused_at_the_api_and_at_mcp(foreign: Foreign):
    thief, victim = foreign.thief, foreign.victim
    wrong = foreign.here.client(thief.token, session=victim.id)
    with pytest.raises(NotAllowed, match="cannot be used as"):
        wrong.agents(False)
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    with pytest.raises(LegionError, match="cannot be used as"):
        wrong.line.ask("POST", "/mcp", body=call)
    events = foreign.here.person.history(None, last=50)
    assert "cannot be used as" in str(events), "it is recorded"


@pytest.mark.parametrize(
    ("tool", "name"), [("legion-report", "ticket"), ("legion-mail", "agent"), ("legion-ask", "agent")]
)
def test_tools_that_act_for_the_caller_take_no_other_name(foreign: Foreign, tool: str, name: str):
    with pytest.raises(BadInput, match=f"has no parameter '{name}'"):
        foreign.thief.use(tool, **{name: foreign.victim.id})


@pytest.mark.parametrize("token", ["", "wrong", PERSONS[:-1], f"{PERSONS}x", "legion-agent-00000000"])
def test_no_token_and_a_wrong_one_open_nothing(foreign: Foreign, token: str):
    with pytest.raises(NotAllowed, match="token is missing or wrong"):
        foreign.here.line(token).ask("GET", "/v1/status")
