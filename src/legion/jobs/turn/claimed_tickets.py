"""Tickets that standing agents have claimed: claim, set up the worktree, judge at the end of a turn, hand back.

An agent works on one ticket at a time, in its own worktree, which is reset between two turns. A change that it submits
is judged, checked and landed like that of any ticket; a rejected one comes back to it with the feedback.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from legion.config.files.project import parse
from legion.domain.agents import agent as rules
from legion.domain.agents.agent import ROOT, Agent, ClaimedTicket
from legion.domain.agents.mail import Delivery, MessageKind
from legion.domain.errors import StateConflict
from legion.domain.runs import Run
from legion.domain.tickets.ticket import (
    AskReview,
    Fail,
    Propose,
    Prove,
    Resume,
    Start,
    StartPointUsed,
    State,
    Ticket,
    TryAgain,
)
from legion.jobs.agent import plan_approval
from legion.jobs.agent.briefing import briefing
from legion.jobs.board import Board
from legion.jobs.trees import ProjectContext
from legion.jobs.turn import delivery
from legion.store.board import plan_approvals, projects, tickets
from legion.store.database.transactions import Transaction
from legion.store.staff import agents, mail, ticket_holders, tokens

_HOW = """\
You have claimed this ticket: your folder holds the landed code, and will hold this ticket's change only. When that is
complete, submit it with legion-claim (`submit`) and end your turn."""

_PLAN_FIRST = """\
Its plan has to be approved first: until then you may only read. Propose one with legion-plan, and end your turn."""


def claim(tx: Transaction, agent: Agent, ticket: Ticket) -> None:
    """Claim the ticket for the agent; its next turn starts with the briefing."""
    project = projects.get(tx, ticket.project)
    started = tickets.move(tx, ticket.id, Start(project.target), expected_version=ticket.version)
    ticket_holders.hold(tx, ticket.id, agent.id)
    text = briefing(started, parse(project.config_text, origin=project.name))
    sender = ticket.spec.dispatcher or ROOT
    plan = plan_approvals.of_ticket(tx, ticket.id)
    task = f"{text}\n{_HOW}\n\n{_PLAN_FIRST}" if plan is not None and plan.only_reads else f"{text}\n{_HOW}"
    mail.send(tx, sender=sender, recipient=agent.id, kind=MessageKind.TASK, text=task, about=str(ticket.id))


def hand_back(tx: Transaction, ticket_id: int, version: int) -> None:
    """To the agent that claimed it, unless that is fired or holds another ticket: then any agent may claim it."""
    ticket, holding = tickets.get(tx, ticket_id), ticket_holders.of_ticket(tx, ticket_id)
    if holding is None or ticket.version != version or ticket.state is not State.QUEUED:
        raise StateConflict(f"Ticket {ticket_id} changed meanwhile.")
    agent = agents.get(tx, holding.agent)
    if agent.fired_at is not None or ticket_holders.current(tx, agent.id) is not None:
        ticket_holders.drop(tx, ticket_id)
        tx.tell()
        return
    claim(tx, agent, ticket)


def leave(tx: Transaction, agent: Agent, why: str) -> None:
    """Put the ticket that it holds back on the board; another agent continues the attempt."""
    holding = ticket_holders.current(tx, agent.id)
    if holding is not None:
        tickets.move(tx, holding.ticket, Resume(why))
        ticket_holders.drop(tx, holding.ticket)


def reset_worktree(context: Board, project: ProjectContext, agent: Agent, this_run: Run) -> Agent:
    """Before a turn: reset the worktree to the base of the ticket that was claimed in the last turn."""
    with context.store.read() as tx:
        holding = ticket_holders.current(tx, agent.id)
        ticket = tickets.get(tx, holding.ticket) if holding is not None else None
    if holding is None or ticket is None or holding.planted:
        return agent
    assert ticket.base is not None, "a started ticket has a base"
    tree = ticket.plant or _last_saved(project, ticket) or project.hub.tree_of(ticket.base)
    seat = this_run.seat
    project.worktrees.replant(seat, ticket.base, tree, f"legion/{seat}", attempt=holding.number)
    with context.store.write() as tx:
        if ticket.plant is not None and tickets.get(tx, ticket.id).version == ticket.version:
            tickets.move(tx, ticket.id, StartPointUsed())
        ticket_holders.note(tx, ticket.id, planted=True)
        return agents.plant(tx, agent, ticket.base)


def conclude(
    tx: Transaction,
    agent: Agent,
    holding: ClaimedTicket,
    step: Propose | TryAgain | Fail,
    then: Prove | AskReview | None,
) -> None:
    """At the end of the turn in which it was submitted. A change that cannot be proposed stays with the agent."""
    ticket = tickets.get(tx, holding.ticket)
    if ticket.state is not State.WORKING:
        return
    if isinstance(step, Propose):
        tickets.move(tx, ticket.id, step)
        if then is not None:
            tickets.move(tx, ticket.id, then)
        text = (
            f"Your change for ticket {ticket.id} is being checked and landed. Claim the next ticket, if there is one."
        )
    else:
        ticket_holders.note(tx, ticket.id, submitted=False)
        text = f"Ticket {ticket.id} was not accepted: {step.reason}.\n\n{step.feedback}"
    mail.send(tx, sender=ROOT, recipient=agent.id, kind=MessageKind.NOTICE, text=text, about=str(ticket.id))


def _last_saved(project: ProjectContext, ticket: Ticket) -> str | None:
    """The tree that an earlier attempt left, where the ticket continues from it."""
    kept = project.hub.kept(f"wip/{ticket.id}")
    saves = {int(Path(name).name): commit for name, commit in kept.items() if Path(name).name.isdigit()}
    return project.hub.tree_of(saves[max(saves)]) if saves else None


ASKED = """\
You are asked to leave. Finish in this turn what has to be finished and say what is open; when the turn has ended you
are fired, and your work is kept. If you must stay, end the turn with one line: STAY: and the reason."""
_STAY = "STAY:"


@dataclass(frozen=True, kw_only=True)
class Dismissal:
    fired: tuple[Agent, ...]
    adopted: tuple[Agent, ...]
    """Agents that now report to the parent of the fired one."""
    returned: int
    """Number of messages returned to their senders."""


def dismiss(tx: Transaction, agent: Agent, *, by: str, subtree: bool, in_a_turn: Collection[int]) -> Dismissal:
    """Everything but the programs and worktrees of agents in a turn: the end of the turn handles those."""
    reports = rules.tree(agents.standing(tx))
    leaving = [agent, *(rules.below(reports, agent.id) if subtree else ())]
    gone = tuple(agents.fire(tx, one, by=by) for one in leaving)
    orphans = () if subtree else reports.get(agent.id, ())
    adopted = tuple(agents.adopt(tx, one, agent.parent) for one in orphans)
    returned = 0
    for one in gone:
        tokens.revoke(tx, agent=one.id)
        leave(tx, one, f"{one.name} was fired")
        plan_approval.reassign(tx, one)
        # A running turn may still read the mail that it was offered: its end decides.
        offered = () if one.number in in_a_turn else mail.offered(tx, one.id)
        unread = (*offered, *mail.waiting(tx, one.id))
        delivery.return_mail(tx, one, unread)
        returned += len(unread)
    return Dismissal(fired=gone, adopted=adopted, returned=returned)


def leaves(tx: Transaction, agent: Agent, report: str) -> bool:
    """At the end of a completed turn: whether it has read the request to leave and does not refuse."""
    if not agent.leaving:
        return False
    asked = mail.get(tx, agent.leaving)
    if asked is None or asked.delivery is not Delivery.HEARD:
        return False
    agents.ask_to_leave(tx, agent, "")
    return not any(line.strip().startswith(_STAY) for line in report.splitlines())
