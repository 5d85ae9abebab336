"""Finds standing agents that hold a ticket and do nothing, reminds them, and then asks the person."""

from __future__ import annotations

from legion.domain.agents.agent import ROOT, Agent, ClaimedTicket
from legion.domain.agents.idle_claims import REMINDER, IdleStep, idle_step, question, reminder
from legion.domain.agents.mail import MessageKind
from legion.domain.questions import QuestionKind
from legion.jobs.board import Board
from legion.store.board import plan_approvals, projects, questions, tickets
from legion.store.database.transactions import ReadTransaction, Transaction
from legion.store.staff import agents, mail, ticket_holders
from legion.store.work import runs

_ANSWER_WITHIN = 86_400.0
_MOST_MAIL = 200
"""The last messages of an agent among which its reminders are counted."""


def look(context: Board) -> None:
    """One look at every claimed ticket. Costs one query where no agent holds any; writes only where a step is due."""
    with context.store.read() as tx:
        due = _due(tx) if ticket_holders.holders(tx) else []
    if due:
        with context.store.write() as tx:
            for agent, holding, step in _due(tx):
                _take(tx, agent, holding, step)


def _due(tx: ReadTransaction) -> list[tuple[Agent, ClaimedTicket, IdleStep]]:
    held = ((agent, ticket_holders.current(tx, agent.id)) for agent in agents.standing(tx))
    steps = ((agent, holding, _step(tx, agent, holding)) for agent, holding in held if holding is not None)
    return [(agent, holding, step) for agent, holding, step in steps if step is not IdleStep.WAIT]


def _step(tx: ReadTransaction, agent: Agent, holding: ClaimedTicket) -> IdleStep:
    latest = next(iter(runs.of_agent(tx, agent.number, limit=1)), None)
    if holding.submitted or (latest is not None and latest.ended_at is None):
        return IdleStep.WAIT
    since = max(holding.since, latest.ended_at or 0.0) if latest is not None else holding.since
    reminders = sum(
        message.recipient == agent.id and message.sent_at >= holding.since and message.text.startswith(REMINDER)
        for message in mail.about(tx, [agent.id], limit=_MOST_MAIL)
    )
    return idle_step(idle_for=tx.now - since, reminders=reminders, waits=_waits(tx, agent, holding))


def _take(tx: Transaction, agent: Agent, holding: ClaimedTicket, step: IdleStep) -> None:
    ticket = tickets.get(tx, holding.ticket)
    title = ticket.spec.title[:80]
    if step is IdleStep.REMIND:
        text = reminder(ticket.id, title)
        mail.send(tx, sender=ROOT, recipient=agent.id, kind=MessageKind.NOTICE, text=text, about=str(ticket.id))
        return
    questions.ask(
        tx,
        key=_key(agent, holding),
        kind=QuestionKind.IDLE,
        project=ticket.project,
        agent=agent.id,
        ticket=ticket.id,
        words=question(agent.name, ticket.id, title),
        deadline=tx.now + _ANSWER_WITHIN,
    )


def _key(agent: Agent, holding: ClaimedTicket) -> str:
    """One question for each claim: a person who leaves the ticket with the agent is not asked again."""
    return f"{QuestionKind.IDLE.value}:{agent.id}:{holding.number}"


def _waits(tx: ReadTransaction, agent: Agent, holding: ClaimedTicket) -> bool:
    """Whether there is a reason to do nothing: mail on its way, a limit, a plan, a question, a paused project."""
    if agent.owes or agent.held_until is not None or mail.waiting(tx, agent.id) or mail.offered(tx, agent.id):
        return True
    if questions.by_key(tx, _key(agent, holding)) is not None:
        return True
    if questions.open_ones(tx, agent=agent.id) or questions.open_ones(tx, ticket=holding.ticket):
        return True
    plan = plan_approvals.of_ticket(tx, holding.ticket)
    if plan is not None and plan.only_reads:
        return True
    return projects.get(tx, agent.project).paused
