"""The service as an agent may use it: its own project's board, its own tickets, and nothing wider than it has itself.

A row that is not overridden here checks the caller's rights in its use case. A row that is closed to agents is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from legion.domain.agents import agent as rules
from legion.domain.agents.agent import TIERS, Agent, ExtraRight, tier_of
from legion.domain.checks import HELD_OUT
from legion.domain.errors import NotAllowed
from legion.domain.plans.plan import LEAST_SHARE, budget_share
from legion.domain.projects import Project
from legion.domain.questions import Question
from legion.domain.tickets.spec import ReviewPolicy
from legion.drivers import registry
from legion.jobs.agent import plan_approval, tool_access
from legion.jobs.leader.facts import answerable
from legion.jobs.plan import facts
from legion.jobs.supervise import usage
from legion.jobs.trees import Trees
from legion.service.agents.claim import READ_ONLY
from legion.service.leader import chat
from legion.service.operations import Caller, Service
from legion.service.plans import create, decisions
from legion.service.questions import question_lines
from legion.service.tickets import actions
from legion.service.tickets.dispatch import dispatch
from legion.store.board import goals, projects, questions, tickets
from legion.store.database.transactions import ReadTransaction
from legion.store.staff import agents, ticket_holders
from legion.store.work import runs
from legion.wire.agents import HireAgent, Hired
from legion.wire.board import Graph, Status, WaitState
from legion.wire.dispatch import Dispatch, Dispatched, NewTicket
from legion.wire.mail import Answered, AnswerQuestion, Inbox
from legion.wire.plans import ApprovePlan, NewPlan, PlanApproved, PlanList, PlanPage, RejectPlan
from legion.wire.table import AnyAnswer, OpenTo, Operation, TicketIds
from legion.wire.ticket_pages import Diff, LogText, TicketPage
from legion.wire.tickets import Acted, Action


class LimitedService(Service):
    def __init__(self, service: Service, caller: Caller) -> None:
        super().__init__(service.context, service._news, daemon=service._daemon, end=service._end, caller=caller)

    def call(self, row: Operation, arguments: Mapping[str, Any]) -> AnyAnswer:
        """A row that is not open to agents stays closed, also behind the guard of the API."""
        if (OpenTo.AGENTS if self.caller.ticket is None else OpenTo.TICKET) not in row.open_to:
            raise NotAllowed(f"{row.name} is not open to agents; ask a person with legion-ask if you need it.")
        return super().call(row, arguments)

    def dispatch(self, wanted: Dispatch, /) -> Dispatched:
        context, caller = self.context, self.caller
        if caller.ticket is not None:
            raise NotAllowed(
                "The agent of a ticket dispatches none: finish yours, or say in legion-report what is left."
            )
        usage.catch_up(context)
        with context.store.read() as tx:
            agent = plan_approval.reader(tx, agents.get(tx, caller.id))
            drives = ExtraRight.DRIVER in tool_access.rights(context, tx, agent.id)
        _refuse_reader(agent)
        if wanted.to:
            raise NotAllowed("Only the person gives a ticket to an agent by name: leave `to` out.")
        narrowed = [_narrowed(context, agent, new, drives=drives) for new in wanted.tickets]
        own = replace(wanted, cwd=self._project().worktrees, tickets=narrowed, request=self._request(wanted.request))
        return dispatch(context, own, agent)

    def plan(self, wanted: NewPlan, /) -> PlanPage:
        """A leader's planner costs the leader's money."""
        agent = self._leader(acts=True)
        usage.catch_up(self.context)
        if agent.rights.budget is not None and wanted.budget is None:
            raise NotAllowed("Your own budget is limited: say how many dollars the planner may cost.")
        _refuse_tier(agent, wanted.model)
        own = replace(
            wanted,
            cwd=self._project().worktrees,
            model=wanted.model or agent.model,
            request=self._request(wanted.request),
        )
        return create.plan(self.context, own, agent)

    def plans(self, cwd: str, all: bool = False) -> PlanList:
        self._leader()
        return super().plans(self._project().worktrees, all)

    def plan_page(self, id: int, /) -> PlanPage:
        self._leader()
        self._see_plan(id)
        return super().plan_page(id)

    def approve_plan(self, id: int, wanted: ApprovePlan, /) -> PlanApproved:
        """Only where the person's settings give its role the right; its tickets are the leader's own."""
        agent = self._leader(acts=True)
        self._see_plan(id)
        with self.context.store.read() as tx:
            allowed = ExtraRight.APPROVE in tool_access.rights(self.context, tx, agent.id)
        if not allowed:
            raise NotAllowed(f"The person approves plans here: say that P{id} waits for `legion approve P{id}`.")
        if wanted.anyway:
            raise NotAllowed(f"Only the person approves a plan with findings: say what is left of P{id}.")
        usage.catch_up(self.context)
        approval = decisions.approval_of(self.context, id, replace(wanted, request=self._request(wanted.request)))
        narrowed = _narrowed_plan(self.context, agent, id, approval.tickets)
        return decisions.carry_out(self.context, replace(approval, tickets=narrowed), agent)

    def reject_plan(self, id: int, wanted: RejectPlan, /) -> PlanPage:
        self._leader(acts=True)
        self._see_plan(id)
        return super().reject_plan(id, wanted)

    def hire(self, wanted: HireAgent, /) -> Hired:
        with self.context.store.read() as tx:
            _refuse_reader(plan_approval.reader(tx, agents.get(tx, self.caller.id)))
        return super().hire(wanted)

    def status(self, cwd: str | None, all: bool = False) -> Status:
        project = self._project()
        seen = super().status(project.worktrees, all)
        return replace(seen, projects=[line for line in seen.projects if line.root == project.root], questions=0)

    def graph(self, cwd: str) -> Graph:
        return super().graph(self._project().worktrees)

    def wait(self, cwd: str | None, id: TicketIds = None, after_event: int = 0, timeout: float = 0.0) -> WaitState:
        for number in id or []:
            self._see(number)
        return super().wait(self._project().worktrees, id, after_event, timeout)

    def ticket(self, id: int, /) -> TicketPage:
        self._see(id)
        return _without_held_out(super().ticket(id))

    def log(self, id: int, /, run: int | None = None, offset: int = 0) -> LogText:
        self._see(id)
        return super().log(id, run, offset)

    def diff(self, id: int, /, since: str = "") -> Diff:
        self._see(id)
        return super().diff(id, since)

    def stop(self, id: int, action: Action | None = None, /) -> Acted:
        self._own(id)
        with self.context.store.read() as tx:
            by = agents.names(tx).get(self.caller.id, self.caller.id)
        return actions.stop(self.context, id, by=by)

    def retry(self, id: int, action: Action | None = None, /) -> Acted:
        self._own(id)
        if action is not None and action.edit is not None:
            raise NotAllowed("Only the person edits a ticket: retry it with feedback instead.")
        return super().retry(id, action)

    def inbox(self) -> Inbox:
        """Questions of the agents below it, where the person's settings let it answer them."""
        with self.context.store.read() as tx:
            return Inbox(questions=question_lines(tx, self._answerable(tx, questions.open_ones(tx))))

    def answer(self, id: int, given: AnswerQuestion, /) -> Answered:
        with self.context.store.read() as tx:
            if not self._answerable(tx, (questions.get(tx, id),)):
                raise NotAllowed(f"Question {id} is not yours to answer: a person has to.")
        return super().answer(id, given)

    def _answerable(self, tx: ReadTransaction, asked: tuple[Question, ...]) -> tuple[Question, ...]:
        if self.caller.ticket is not None:
            return ()
        return answerable(self.context, tx, agents.get(tx, self.caller.id), asked)

    def own_tickets(self) -> list[int]:
        """The live tickets that it may stop."""
        project = self._project()
        with self.context.store.read() as tx:
            below = _household(tx, self.caller.id)
            return [one.id for one in tickets.live(tx, project=project.id) if one.spec.dispatcher in below]

    def refuse_to_speak_for(self, id: int) -> None:
        """Raises NotAllowed unless the caller has claimed the ticket, dispatched it, or is above its dispatcher."""
        with self.context.store.read() as tx:
            held = ticket_holders.of_ticket(tx, id)
        if held is None or held.agent != self.caller.id:
            self._own(id)

    def _project(self) -> Project:
        assert self.caller.run is not None, "an agent's token is of a run"
        with self.context.store.read() as tx:
            return projects.get(tx, runs.get(tx, self.caller.run).project)

    def _leader(self, *, acts: bool = False) -> Agent:
        """The calling leader; `acts`: it must not be limited to reading."""
        if self.caller.ticket is not None:
            raise NotAllowed("The agent of a ticket makes no plans of goals: say in legion-report what is left.")
        with self.context.store.read() as tx:
            agent = plan_approval.reader(tx, chat.leader(tx, self.caller.id))
        if acts:
            _refuse_reader(agent)
        return agent

    def _see_plan(self, id: int) -> None:
        project = self._project()
        with self.context.store.read() as tx:
            if goals.get(tx, id).project != project.id:
                raise NotAllowed(f"P{id} is a plan of another project: you see those of {project.name} alone.")

    def _see(self, id: int) -> None:
        project = self._project()
        with self.context.store.read() as tx:
            if tickets.get(tx, id).project != project.id:
                raise NotAllowed(f"Ticket {id} is of another project: you see the board of {project.name} alone.")

    def _own(self, id: int) -> None:
        """Raises NotAllowed unless the caller dispatched the ticket or is above its dispatcher."""
        self._see(id)
        with self.context.store.read() as tx:
            if tickets.get(tx, id).spec.dispatcher not in _household(tx, self.caller.id):
                raise NotAllowed(f"Ticket {id} was not dispatched by you or below you: ask its dispatcher.")

    def _request(self, id: str) -> str:
        """Two callers with the same request id mean two requests."""
        return f"{self.caller.id}:{id}" if id else ""


def _without_held_out(page: TicketPage) -> TicketPage:
    """Agents learn of held-out acceptance by feedback after it failed, and not before."""
    shown = [event for event in page.history if not str(event.data.get("name", "")).startswith(HELD_OUT)]
    receipts = [receipt for receipt in page.receipts if not receipt.name.startswith(HELD_OUT)]
    return replace(page, accept=[], receipts=receipts, history=shown)


def _household(tx: ReadTransaction, id: str) -> set[str]:
    """The ids of an agent and of all agents below it."""
    return {id, *(agent.id for agent in rules.below(rules.tree(agents.standing(tx)), id))}


def _refuse_reader(agent: Agent) -> None:
    """An agent whose plan is not approved must not have others do what it may not do."""
    if agent.only_reads:
        raise NotAllowed(READ_ONLY)


def _narrowed(context: Trees, agent: Agent, new: NewTicket, *, drives: bool) -> NewTicket:
    """The ticket with what it inherits. Raises NotAllowed where it asks for what its dispatcher has not.

    `drives`: the person lets it choose among their drivers.
    """
    if new.command or (new.driver and not drives):
        raise NotAllowed("Only a person chooses the program of a ticket: leave out command and driver.")
    if new.review == ReviewPolicy.OFF.value:
        raise NotAllowed("Only a person can switch the review off: leave out review.")
    if new.accept:
        raise NotAllowed("Held-out acceptance is the person's alone: leave out accept.")
    if new.prove and not (context.sandbox.works and not context.user.sandbox.is_off):
        raise NotAllowed("There is no sandbox here, so commands of agents do not run: leave out prove.")
    if new.checkpoint:
        return new
    _refuse_tier(agent, new.model)
    if new.budget is None and agent.rights.budget is not None:
        raise NotAllowed("Your own budget is limited, so each ticket needs one: say how many dollars it may cost.")
    driver, model = agent.program(new.driver, new.model, default=registry.DEFAULT)
    return replace(new, driver=driver, model=model)


def _narrowed_plan(context: Trees, agent: Agent, plan: int, new: list[NewTicket]) -> list[NewTicket]:
    """The tickets of a plan as the leader's own: those that an agent works on get a share of a limited budget."""
    project = context.project(agent.project)
    with context.store.read() as tx:
        money = agents.all_means(tx, context.user.standing.top)[agent.id].money
        each = facts.estimated(project, tx, goals.get(tx, plan)).usd_each
    working = sum(not one.checkpoint for one in new)
    share = None if money is None or not working else budget_share(money, working, each)
    if money is not None and share is not None and share < (each or LEAST_SHARE):
        needs = f", and each usually takes {each:.2f}" if each else ""
        raise NotAllowed(
            f"You cannot give {working} tickets a budget: {money:.2f} dollars are left to give{needs}. Approve some of "
            "them by their keys, or ask the person for more money."
        )
    shared = [one if one.checkpoint else replace(one, budget=share) for one in new]
    return [_narrowed(context, agent, one, drives=False) for one in shared]


def _refuse_tier(agent: Agent, model: str) -> None:
    tier = agent.rights.tier
    if model and TIERS.index(tier_of(model, tier)) > TIERS.index(tier):
        names = ", ".join(one.value for one in TIERS[: TIERS.index(tier) + 1])
        raise NotAllowed(f"You cannot give a model like {model}: choose from {names}.")
