"""What a ticket's line offers is what the service does: every state and every operation, over the real service."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from legion.domain.agents import agent
from legion.domain.agents.agent import ROOT, Planning, Rights
from legion.domain.forge import connections
from legion.domain.forge.connections import TicketPull
from legion.domain.forge.pulls import PullStage
from legion.domain.machines import machine
from legion.domain.machines.machine import MachineState
from legion.domain.plans import plan, toml_text
from legion.domain.plans.checks import FindingKind, PlanFinding
from legion.domain.plans.draft import PlanDraft, PlanTicket
from legion.domain.plans.plan import GoalPlan, PlanSource, PlanState
from legion.domain.plans.specification import SpecStage
from legion.domain.takeovers import Takeover, TakeoverMode
from legion.domain.tickets.offers import OFFERS
from legion.domain.tickets.ticket import Park, ParkReason, State
from legion.service.agents import attach as agent_terminals
from legion.service.operations import Service
from legion.store.board import goals, tickets
from legion.store.staff import agents
from legion.store.work import machines, runs, takeovers
from legion.wire.agents import FireAgent, InterruptAgent, PlanVerdict, SetDelegation
from legion.wire.errors import BadInput, LegionError, NotAllowed, NotFound, Retryable, StateConflict
from legion.wire.forge import TriedByHand
from legion.wire.machines import MachineLine, RemoveMachine
from legion.wire.mail import MessageText, NewMessage
from legion.wire.operations import OFFERED, Operations
from legion.wire.plans import ApprovePlan, RejectPlan, SavePlan, SplitTicket
from legion.wire.table import Operation, rows
from legion.wire.terminal import AttachAgent
from legion.wire.tickets import EditTicket, RewindTo
from tests.support.board import Board

PLANNED = PlanDraft(tickets=(PlanTicket(key="one", title="One", text="Do it."),))

CALLS: dict[str, Callable[[Service], object]] = {
    "edit": lambda service: service.edit(1, EditTicket(priority=3)),
    "rewind": lambda service: service.rewind(1, RewindTo(to="1")),
    "tell": lambda service: service.tell(1, MessageText(text="wait")),
    "split": lambda service: service.split(1, SplitTicket()),
    "tried": lambda service: service.tried(1, TriedByHand(passed=True)),
}
BY_NUMBER = (
    "stop", "retry", "pause_ticket", "resume_ticket", "drop", "review", "bounce", "land", "undo", "interrupt",
    "submit_ticket",
)  # fmt: skip
TRIED = (*CALLS, *BY_NUMBER)
NEEDS_A_PROGRAM = {"attach", "shell", "checkout", "push", "diff"}
"""Their tests are in tests/scenarios."""
LATER = {
    "undo": "is left in the target",
    "rewind": "has no run 1",
    "tell": "has just ended",
    "interrupt": "has just ended",
    "submit_ticket": "nothing to submit yet",
}
"""What the service says of an operation that the state allows, where this board lacks what it needs next."""
STATES = [state.value for state in State if state is not State.DRAFT]


@pytest.fixture(scope="module")
def one_board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Board]:
    one = Board(tmp_path_factory.mktemp("offers"))
    yield one
    one.close()


@pytest.fixture
def board(one_board: Board) -> Board:
    one_board.reset()
    return one_board


def offers(board: Board) -> list[str]:
    return board.service.ticket(1).ticket.offers


def refusal(board: Board, name: str) -> str:
    """Why the service does not do it; empty where it does, or would with a program at work."""
    try:
        CALLS[name](board.service) if name in CALLS else getattr(board.service, name)(1)
    except (StateConflict, NotFound, Retryable) as error:
        return "" if LATER.get(name, "\0") in error.message else error.message
    except LegionError as error:
        pytest.fail(f"{name}: {error.message}")
    return ""


def test_every_offer_is_an_operation_of_a_ticket_and_is_tried_here():
    table = rows(Operations)
    assert {name for name in OFFERS if "{id}" not in table[name].path} == set()
    assert set(TRIED) | NEEDS_A_PROGRAM == set(OFFERS)


def test_every_offer_of_a_line_is_an_operation():
    assert set(rows(Operations)) >= OFFERED


@pytest.mark.parametrize("row", [row for row in rows(Operations).values() if row.asks], ids=lambda row: row.name)
def test_a_question_names_one_thing(row: Operation):
    assert row.method != "GET"
    assert row.asks.format(what="it").endswith(("?", "."))
    assert "?" in row.asks


@pytest.mark.parametrize("name", TRIED)
@pytest.mark.parametrize("state", STATES)
def test_the_service_does_what_is_offered_and_refuses_what_is_not(board: Board, state: str, name: str):
    board.put(1, "One", state)
    offered = name in offers(board)
    assert offered == (refusal(board, name) == ""), offers(board)


@pytest.mark.parametrize("name", TRIED)
def test_a_checkpoint_offers_no_agent_and_no_change(board: Board, name: str):
    board.put(1, "One", "queued", checkpoint=True)
    assert (name in offers(board)) == (refusal(board, name) == "")


@pytest.mark.parametrize("back_to", ["working", "checking", "reviewing", "landing"])
@pytest.mark.parametrize("name", ["review", "bounce", "land", "resume_ticket"])
def test_a_ticket_that_asks_offers_what_its_stage_allows(board: Board, back_to: str, name: str):
    board.put(1, "One", back_to)
    with board.store.write() as tx:
        tickets.move(tx, 1, Park(ParkReason.QUESTION, "it asks"))
    assert (name in offers(board)) == (refusal(board, name) == "")


@pytest.mark.parametrize("name", ["tell", "interrupt"])
@pytest.mark.parametrize("driver", ["claude", "command", "terminal", ""])
def test_what_the_driver_cannot_do_is_not_offered(board: Board, driver: str, name: str):
    """Without a driver the program has not started yet."""
    board.put(1, "One", "working")
    board.run(1, ended=False, driver=driver)
    can = {"claude": ("tell", "interrupt"), "terminal": ("interrupt",)}.get(driver, ())
    assert (name in offers(board)) == (name in can)
    assert (refusal(board, name) == "") == (name in can)


@pytest.mark.parametrize(("driver", "opens"), [("claude", True), ("terminal", True), ("command", False), ("", True)])
def test_attach_is_offered_for_an_agent_with_a_terminal_form_or_one_that_starts(board: Board, driver: str, opens: bool):
    board.put(1, "One", "working")
    board.run(1, ended=False, driver=driver)
    assert ("attach" in offers(board)) == opens


@pytest.mark.parametrize("mode", TakeoverMode)
def test_only_a_ticket_that_a_person_works_on_is_submitted(board: Board, mode: TakeoverMode):
    board.put(1, "One", "working")
    with board.store.write() as tx:
        takeovers.put(tx, Takeover(ticket=1, mode=mode))
    assert ("submit_ticket" in offers(board)) == (mode is TakeoverMode.PERSON)
    assert (refusal(board, "submit_ticket") == "") == (mode is TakeoverMode.PERSON)


def refused(call: Callable[[], object]) -> bool:
    try:
        call()
    except (StateConflict, NotFound, BadInput, NotAllowed):
        return True
    return False


PLAN_CALLS: dict[str, Callable[[Service, int], object]] = {
    "approve_plan": lambda service, id: service.approve_plan(id, ApprovePlan(dry_run=True, anyway=True)),
    "reject_plan": lambda service, id: service.reject_plan(id, RejectPlan(why="smaller")),
    "plan_text": lambda service, id: service.plan_text(id),
    "save_plan": lambda service, id: service.save_plan(id, SavePlan(text=_text_of(service, id), version=1)),
    "retry_plan": lambda service, id: service.retry_plan(id),
    "drop_plan": lambda service, id: service.drop_plan(id),
}


def _text_of(service: Service, id: int) -> str:
    is_written = service.plan_page(id).plan.state == PlanState.WRITTEN.value
    return SPECIFICATION if is_written else toml_text.write(PLANNED, "")


SPECIFICATION = "# What it does\n\nIt starts."


@pytest.mark.parametrize("name", plan.OFFERS)
@pytest.mark.parametrize("finding", [None, FindingKind.CIRCLE, FindingKind.SIZE])
@pytest.mark.parametrize("source", [PlanSource.GOAL, PlanSource.TEMPLATE])
@pytest.mark.parametrize("state", PlanState)
def test_a_plan_offers_what_the_service_does(
    board: Board, state: PlanState, source: PlanSource, finding: FindingKind | None, name: str
):
    if state is PlanState.WRITTEN and (finding or source is PlanSource.TEMPLATE):
        return  # Nothing is drafted yet, and no planner of a template writes.
    found = (PlanFinding(kind=finding, ticket="one", text="it is wrong"),) if finding else ()
    draft = None if state in (PlanState.PLANNING, PlanState.ASKING, PlanState.WRITTEN) else PLANNED
    with board.store.write() as tx:
        made = goals.create(
            tx, GoalPlan(id=0, project=1, goal="Go", state=state, source=source, draft=draft, findings=found)
        )
        if state is PlanState.WRITTEN:
            goals.add_document(tx, made.id, SpecStage.WRITE, SPECIFICATION, run=1)
    offered = board.service.plan_page(made.id).plan.offers
    assert (name in offered) == (not refused(lambda: PLAN_CALLS[name](board.service, made.id))), offered


def test_a_plan_that_failed_without_a_draft_has_no_text(board: Board):
    with board.store.write() as tx:
        made = goals.create(tx, GoalPlan(id=0, project=1, goal="Go", state=PlanState.FAILED))
    assert board.service.plan_page(made.id).plan.offers == ["reject_plan", "save_plan", "retry_plan", "drop_plan"]
    assert refused(lambda: board.service.plan_text(made.id))


MACHINE_CALLS: dict[str, Callable[[Service, str], object]] = {
    "machine_log": lambda service, name: service.machine_log(name),
    "pause_machine": lambda service, name: service.pause_machine(name),
    "resume_machine": lambda service, name: service.resume_machine(name),
    "drain_machine": lambda service, name: service.drain_machine(name),
    "update_machine": lambda service, name: service.update_machine(name),
    "remove_machine": lambda service, name: service.remove_machine(name, RemoveMachine()),
}


def machine_of(board: Board, name: str) -> MachineLine | None:
    return next((one for one in board.service.machines().machines if one.name == name), None)


@pytest.mark.parametrize("name", machine.OFFERS)
@pytest.mark.parametrize("state", [one for one in MachineState if one is not MachineState.REMOVED])
def test_a_machine_offers_what_changes_something(board: Board, state: MachineState, name: str):
    """The same state again is no fault, but nothing that a person is asked to press."""
    with board.store.write() as tx:
        code = machines.invite(tx, name="desk", labels=[], slots=1, seconds=60)
        machines.join(tx, code, boot="b", version="1", protocol=1, toolchain="")
        machines.set_state(tx, "desk", state)
    line = machine_of(board, "desk")
    assert line is not None
    MACHINE_CALLS[name](board.service, "desk")
    after = machine_of(board, "desk")
    changed = after is None or after.offers != line.offers
    assert (name in line.offers) == (changed or name in ("machine_log", "update_machine"))


@pytest.mark.parametrize("name", machine.OFFERS)
def test_the_head_is_offered_nothing_and_refuses_everything(board: Board, name: str):
    line = machine_of(board, "here")
    assert line is not None
    assert line.offers == []
    assert refused(lambda: MACHINE_CALLS[name](board.service, "here"))


AGENT_CALLS: dict[str, Callable[[Service, str], object]] = {
    "tell_agent": lambda service, id: service.tell_agent(NewMessage(to=id, text="go")),
    "interrupt_agent": lambda service, id: service.interrupt_agent(InterruptAgent(id=id)),
    "attach_agent": lambda service, id: agent_terminals.attach(service.context, AttachAgent(id=id), patience=0.0),
    "decide_plan": lambda service, id: service.decide_plan(PlanVerdict(agent=id, approve=True)),
    "delegate": lambda service, id: service.delegate(SetDelegation(id=id, on=True)),
    "fire": lambda service, id: service.fire(FireAgent(id=id)),
}


@pytest.mark.parametrize("name", agent.OFFERS)
@pytest.mark.parametrize("fired", [False, True])
@pytest.mark.parametrize("plans", [False, True])
@pytest.mark.parametrize("in_turn", [False, True])
@pytest.mark.parametrize("driver", ["claude", "codex"])
def test_an_agent_offers_what_the_service_does(
    board: Board, driver: str, in_turn: bool, plans: bool, fired: bool, name: str
):
    with board.store.write() as tx:
        made = agents.hire(
            tx, project=1, parent=ROOT, name="ada", role="", task="Go", model="", rights=Rights(),
            plan=Planning.WANTED if plans else Planning.NONE, delegates=False, driver=driver,
        )  # fmt: skip
        if in_turn:
            runs.start_turn(tx, made, "prompt")
    if fired:
        board.service.fire(FireAgent(id=made.id))
    offered = board.service.agent(made.id).agent.offers
    assert (name in offered) == (not refused(lambda: AGENT_CALLS[name](board.service, made.id))), offered


@pytest.mark.parametrize("stage", PullStage)
@pytest.mark.parametrize("foreign", ["", "abc"])
def test_a_pull_request_offers_to_merge_what_is_open_and_its_own(stage: PullStage, foreign: str):
    """What the service does with the others is in tests/forge."""
    pull = TicketPull(
        ticket=1, project=1, stage=stage, branch="b", base="c", tested="d", number=7, foreign_commit=foreign
    )
    assert ("merge_pulls" in connections.offered(pull)) == (stage is PullStage.OPEN and not foreign)
