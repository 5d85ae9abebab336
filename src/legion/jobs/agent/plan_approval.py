"""Plans of tickets: an agent reads first, its final message is its plan, and it works once that is approved.

The ticket's dispatcher decides, or any agent above it: agents by their mail, the person in the inbox.
"""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Sequence
from dataclasses import replace

from legion.domain.agents.agent import READING, ROOT, Agent, Planning
from legion.domain.agents.mail import MessageKind
from legion.domain.agents.tools import PREFIX
from legion.domain.errors import StateConflict
from legion.domain.questions import QuestionKind
from legion.domain.runs import Outcome, Run
from legion.domain.tickets.ladder import next_try
from legion.domain.tickets.spec import TicketPlan
from legion.domain.tickets.ticket import Fail, Park, ParkReason, State, Ticket, TryAgain
from legion.jobs.agent.mail_prompt import name_of, quoted
from legion.jobs.agent.resume_prompt import MODEL_ANSWERED, final_messages
from legion.jobs.board import Board
from legion.runner.journal import read_journal
from legion.store.board import plan_approvals, questions, tickets
from legion.store.database.transactions import ReadTransaction, Transaction
from legion.store.staff import agents, mail, ticket_holders
from legion.store.work import runs

PATIENCE = 7 * 86_400.0
"""Seconds that a plan waits for the person; after them it stays proposed."""
LONGEST_SHOWN = 4000

RULE = """\
- You may only read for now. Read what you need, change nothing, and say in your final message how you will do it: which
  files, what in them, how you will know that it works. That is your plan; you may work once it is approved."""
_FIRST = """\
## First a plan

You may only read for now, whatever the text above says. End with your plan: which files you will change, what in them,
and how you will know that it works. It is approved, or comes back to you with a reason."""
_NONE = "it proposed no plan"


def of_ticket(context: Board, ticket: Ticket) -> TicketPlan | None:
    with context.store.read() as tx:
        return plan_approvals.of_ticket(tx, ticket.id)


def only_reading(tools: frozenset[str] | None) -> frozenset[str]:
    """The tools it keeps until a plan is approved; Legion's own stay."""
    return READING if tools is None else frozenset(name for name in tools if name in READING or name.startswith(PREFIX))


def reader(tx: ReadTransaction, agent: Agent) -> Agent:
    """The agent with the plan that limits it: it also only reads while it holds a ticket whose plan is not approved."""
    held = ticket_holders.current(tx, agent.id)
    plan = plan_approvals.of_ticket(tx, held.ticket) if held is not None and not agent.only_reads else None
    return replace(agent, plan=plan.stage) if plan is not None and plan.only_reads else agent


def with_plan(context: Board, plan: TicketPlan | None, this_run: Run, text: str, *, resumes: bool) -> str:
    """The prompt with the decision about its plan. A conversation that resumes gets the decision once."""
    if plan is None:
        return text
    with context.store.read() as tx:
        earlier = [run for run in runs.of_ticket(tx, this_run.ticket or 0) if run.id < this_run.id]
        names = agents.names(tx)
    parts = [text.rstrip()]
    if plan.decided_at is not None and not (resumes and _was_read(context, plan.decided_at, earlier)):
        parts.append(_verdict(plan, name_of(plan.decided_by, names)))
    if plan.only_reads:
        parts.append(_FIRST)
    return "\n\n".join(parts) + "\n"


def _was_read(context: Board, since: float, earlier: Sequence[Run]) -> bool:
    """Whether the model has answered in a run whose prompt held the decision about its plan."""
    later = [run for run in earlier if run.started_at >= since]
    return any(event.kind in MODEL_ANSWERED for run in later for event in read_journal(context.data.runs / run.name))


def _verdict(plan: TicketPlan, by: str) -> str:
    """The decision, with the texts of others quoted as theirs."""
    why = quoted(plan.why, source=by, id=secrets.token_hex(8), about="words") if plan.why.strip() else ""
    if plan.only_reads:
        return f"## Your plan was rejected\n\n{why}".rstrip()
    mine = quoted(plan.text, source="yourself", id=secrets.token_hex(8), about="plan")
    head = "## Your plan is approved\n\nYou have all your tools now: go ahead, and do what it says."
    return "\n\n".join(part for part in (head, mine, why) if part)


def outcome(context: Board, ticket: Ticket, this_run: Run, how: Outcome) -> tuple[Park | TryAgain | Fail | None, str]:
    """The next step of a ticket whose agent has only read, and its plan. None where the run is judged as any other."""
    plan = of_ticket(context, ticket)
    if plan is None or not plan.only_reads or how is not Outcome.FINISHED:
        return None, ""
    text = final_messages(read_journal(context.data.runs / this_run.name))
    if not text:
        return next_try(ticket, _NONE, "You ended without a message: end with your plan."), ""
    how_to = f"`legion approve {ticket.id}`, or `legion plan reject {ticket.id} WHY`"
    return Park(ParkReason.QUESTION, f"its plan waits to be approved: {how_to}"), text


def propose(tx: Transaction, ticket: Ticket, text: str) -> None:
    """In the transaction that parks the ticket: store the plan and send it to its approver."""
    plan_approvals.propose(tx, ticket.id, text)
    _send_to_approver(tx, ticket, text)


def reassign(tx: Transaction, fired: Agent) -> None:
    """The person decides about plans that waited for an agent that was fired."""
    for number in plan_approvals.proposed(tx, fired.id):
        ticket, plan = tickets.get(tx, number), plan_approvals.of_ticket(tx, number)
        if plan is not None and ticket.state is State.PARKED:
            _send_to_approver(tx, ticket, plan.text)


def refuse_unapproved(tx: ReadTransaction, ticket: Ticket) -> None:
    """A ticket that waits for the approval of its plan resumes only by that decision."""
    plan = plan_approvals.of_ticket(tx, ticket.id)
    parked = ticket.parked is not None and ticket.parked.reason is ParkReason.QUESTION
    if parked and plan is not None and plan.stage is Planning.PROPOSED:
        raise StateConflict(
            f"Ticket {ticket.id} waits for a decision about its plan: `legion approve {ticket.id}`, "
            f"or `legion plan reject {ticket.id} WHY`."
        )


def _send_to_approver(tx: Transaction, ticket: Ticket, text: str) -> None:
    boss = ticket.spec.dispatcher
    if boss and agents.get(tx, boss).fired_at is None:
        plan = quoted(text, source=f"the agent of ticket {ticket.id}", id=secrets.token_hex(8), about="plan")
        message = (
            f"The agent of ticket {ticket.id} ({ticket.spec.title}) proposes a plan, and only reads until you approve "
            f'it: legion-plan with agent "{ticket.id}" and approve, and why where you reject it.\n\n{plan}'
        )
        mail.send(
            tx,
            sender=ROOT,
            recipient=boss,
            kind=MessageKind.NOTICE,
            text=message,
            project=ticket.project,
            about=str(ticket.id),
        )
        return
    questions.ask(
        tx,
        key=f"plan:{ticket.id}:{uuid.uuid4()}",
        kind=QuestionKind.PLAN,
        project=ticket.project,
        ticket=ticket.id,
        words="Its agent proposes a plan, and only reads until it is approved. May it go ahead?",
        facts={"plan": text[:LONGEST_SHOWN]},
        deadline=tx.now + PATIENCE,
    )
