"""Propose, approve and reject plans of standing agents and of tickets."""

from __future__ import annotations

import uuid

from legion.domain.agents.agent import ROOT, Agent, Planning, above, may_command
from legion.domain.agents.mail import MessageKind
from legion.domain.errors import BadInput, NotAllowed, NotFound, StateConflict
from legion.domain.events import EventKind
from legion.domain.questions import APPROVE, REJECT, Question, QuestionKind
from legion.domain.tickets.ticket import State, Ticket, Unpark
from legion.jobs.agent import plan_approval
from legion.jobs.agent.plan_approval import LONGEST_SHOWN, PATIENCE
from legion.jobs.board import Board
from legion.service.agents.claim import END, standing
from legion.service.agents.mail import checked
from legion.service.shared.repeats import remembered, repeated
from legion.store.board import plan_approvals, questions, tickets
from legion.store.database.transactions import Transaction
from legion.store.staff import agents, mail, ticket_holders
from legion.wire.agents import Plan, PlanVerdict
from legion.wire.mail import Sent
from legion.wire.text import names_a_ticket


def propose(context: Board, caller: str, wanted: Plan) -> Sent:
    """Send a standing agent's plan to its parent, which approves or rejects it."""
    text = checked(wanted.text)
    with context.store.write() as tx:
        if (first := repeated(tx, caller, wanted.request, Sent)) is not None:
            return Sent(**first)
        agent = standing(tx, caller)
        if not plan_approval.reader(tx, agent).only_reads:
            raise StateConflict("You need no plan: start working.")
        about = ""
        if agent.only_reads:
            agents.plan(tx, agent, Planning.PROPOSED)
        else:
            ticket = _held(tx, agent)
            plan_approvals.propose(tx, ticket.id, text)
            about = f" for ticket {ticket.id}"
        how = f"`legion approve {agent.name}`, or `legion plan reject {agent.name} WHY`"
        letter = f"{agent.name} proposes a plan{about}, and only reads until you approve it ({how}).\n\n{text}"
        message = mail.send(tx, sender=agent.id, recipient=agent.parent, text=letter, project=agent.project)
        if agent.parent == ROOT:
            _ask_the_person(tx, agent, about, text)
        answer = Sent(messages=[message.id], to=[agent.parent], message=f"Your plan is proposed. {END}.")
        remembered(tx, caller, wanted.request, answer)
    return answer


def decide(context: Board, caller: str, wanted: PlanVerdict) -> Sent:
    """Approve or reject a plan, for an agent above or the ticket's dispatcher. A rejected agent gets the reason."""
    if not wanted.approve and not wanted.why.strip():
        raise BadInput("A rejection needs a reason, so that the next plan is better: add it.")
    with context.store.write() as tx:
        if (first := repeated(tx, caller, wanted.request, Sent)) is not None:
            return Sent(**first)
        word = wanted.agent.strip()
        if names_a_ticket(word):
            answer = _of_ticket(tx, caller, int(word.removeprefix("#")), wanted)
        else:
            answer = _of_agent(tx, caller, word, wanted)
        remembered(tx, caller, wanted.request, answer)
    return answer


def _of_agent(tx: Transaction, caller: str, word: str, wanted: PlanVerdict) -> Sent:
    agent = agents.find(tx, word, by=caller)
    if agent.fired_at is not None:
        raise NotFound(f"{agent.name} was fired already.")
    if not may_command(agents.parents(tx), caller, agent.id):
        raise NotAllowed(f"You may not approve a plan of {agent.name}: only of agents below you.")
    if not plan_approval.reader(tx, agent).only_reads:
        raise StateConflict(f"{agent.name} needs no approval: it may work already.")
    _settle(tx, questions.open_ones(tx, agent=agent.id), wanted)
    if agent.only_reads:
        agents.plan(tx, agent, Planning.APPROVED if wanted.approve else Planning.WANTED)
        kind = EventKind.PLAN_APPROVED if wanted.approve else EventKind.PLAN_REJECTED
        tx.record(kind, project=agent.project, data={"agent": agent.id, "by": caller, "why": wanted.why})
    else:
        plan_approvals.decide(tx, _held(tx, agent).id, approve=wanted.approve, by=caller, why=wanted.why)
    return _notify(tx, caller, agent, wanted, f"The plan of {agent.name}")


def _of_ticket(tx: Transaction, caller: str, number: int, wanted: PlanVerdict) -> Sent:
    ticket, plan = tickets.get(tx, number), plan_approvals.of_ticket(tx, number)
    _refuse_foreign(tx, caller, ticket)
    if plan is None or not plan.only_reads:
        raise StateConflict(f"Ticket {number} needs no approval: see `legion ticket {number}`.")
    holding = ticket_holders.of_ticket(tx, number) if ticket.state is State.WORKING else None
    if plan.stage is not Planning.PROPOSED or (holding is None and ticket.state is not State.PARKED):
        raise StateConflict(f"Ticket {number} has no plan that waits for approval: see `legion ticket {number}`.")
    holder = agents.get(tx, holding.agent) if holding is not None else None
    asked = questions.open_ones(tx, ticket=number)
    _settle(tx, (*asked, *(questions.open_ones(tx, agent=holder.id) if holder is not None else ())), wanted)
    plan_approvals.decide(tx, number, approve=wanted.approve, by=caller, why=wanted.why)
    about = f"The plan of ticket {number}"
    if holder is not None:
        return _notify(tx, caller, holder, wanted, about)
    tickets.move(tx, number, Unpark())
    return Sent(messages=[], to=[], message=_verdict_message(about, wanted))


def _refuse_foreign(tx: Transaction, caller: str, ticket: Ticket) -> None:
    """Only its dispatcher decides, and the agents above the dispatcher."""
    boss = ticket.spec.dispatcher
    if caller != ROOT and caller not in (boss, *above(agents.parents(tx), boss)):
        raise NotAllowed(
            f"Ticket {ticket.id} was not dispatched by you or below you: leave the decision to its dispatcher."
        )


def _settle(tx: Transaction, asked: tuple[Question, ...], wanted: PlanVerdict) -> None:
    for question in asked:
        if question.kind is QuestionKind.PLAN:
            questions.settle(tx, question.id, APPROVE if wanted.approve else REJECT, wanted.why)


def _notify(tx: Transaction, caller: str, agent: Agent, wanted: PlanVerdict, about: str) -> Sent:
    verdict = "Your plan is approved: go ahead." if wanted.approve else "Your plan is rejected: make a better one."
    text = f"{verdict}\n\n{wanted.why}".strip()
    message = mail.send(
        tx, sender=caller, recipient=agent.id, kind=MessageKind.NOTICE, text=text, project=agent.project
    )
    return Sent(messages=[message.id], to=[agent.id], message=_verdict_message(about, wanted))


def _verdict_message(about: str, wanted: PlanVerdict) -> str:
    return f"{about} is {'approved' if wanted.approve else 'rejected'}."


def _held(tx: Transaction, agent: Agent) -> Ticket:
    held = ticket_holders.current(tx, agent.id)
    assert held is not None, "an agent that only reads for a ticket holds it"
    return tickets.get(tx, held.ticket)


def _ask_the_person(tx: Transaction, agent: Agent, about: str, text: str) -> None:
    """The new plan replaces the question about the last one."""
    questions.withdraw(tx, agent=agent.id, kind=QuestionKind.PLAN, why="a new plan took its place")
    questions.ask(
        tx,
        key=f"plan:{agent.id}:{uuid.uuid4()}",
        kind=QuestionKind.PLAN,
        project=agent.project,
        agent=agent.id,
        words=f"{agent.name} proposes a plan{about}, and only reads until it is approved. May it go ahead?",
        facts={"plan": text[:LONGEST_SHOWN]},
        deadline=tx.now + PATIENCE,
    )
