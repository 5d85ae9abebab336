"""Tickets that standing agents have claimed: taken from the board, planted, judged at the end of a turn, handed back.

An agent works on one ticket at a time, in its own worktree, which is planted anew between two turns. What it submits
is judged, checked and landed like the change of any ticket; what is sent back comes to it with the feedback.
"""

from __future__ import annotations

from pathlib import Path

from legion.config.project import parse
from legion.domain.agents import ROOT, Agent
from legion.domain.errors import Conflict
from legion.domain.holdings import Holding
from legion.domain.mail import Post
from legion.domain.runs import Run
from legion.domain.tickets import AskReview, Fail, Planted, Propose, Prove, Resume, Start, State, Ticket, TryAgain
from legion.jobs.briefing import briefing
from legion.jobs.world import Workshop, World
from legion.store import agents, holdings, mail, plans, projects, tickets
from legion.store.database import Transaction

_HOW = """\
You have claimed this ticket: your folder holds the landed code, and will hold this ticket's change only. When that is
whole, submit it with legion-claim (`submit`) and end your turn."""

_PLAN_FIRST = """\
Its plan has to be approved first: until then you may only read. Propose one with legion-plan, and end your turn."""


def take(tx: Transaction, agent: Agent, ticket: Ticket) -> None:
    """The ticket is the agent's; its next turn begins with the briefing."""
    project = projects.get(tx, ticket.project)
    begun = tickets.move(tx, ticket.id, Start(project.target), expected_version=ticket.version)
    holdings.hold(tx, ticket.id, agent.id)
    text = briefing(begun, parse(project.config_text, origin=project.name))
    sender = ticket.wish.dispatcher or ROOT
    plan = plans.of_ticket(tx, ticket.id)
    words = f"{text}\n{_HOW}\n\n{_PLAN_FIRST}" if plan is not None and plan.only_reads else f"{text}\n{_HOW}"
    mail.send(tx, sender=sender, recipient=agent.id, kind=Post.TASK, text=words, about=str(ticket.id))


def hand_back(tx: Transaction, ticket_id: int, version: int) -> None:
    """To the one who claimed it, unless that one is gone or has another in hand: then anybody may claim it."""
    ticket, holding = tickets.get(tx, ticket_id), holdings.of_ticket(tx, ticket_id)
    if holding is None or ticket.version != version or ticket.state is not State.QUEUED:
        raise Conflict(f"Ticket {ticket_id} changed meanwhile.")
    agent = agents.get(tx, holding.agent)
    if agent.fired_at is not None or holdings.current(tx, agent.id) is not None:
        holdings.drop(tx, ticket_id)
        tx.tell()
        return
    take(tx, agent, ticket)


def leave(tx: Transaction, agent: Agent, why: str) -> None:
    """Back to the board with what it has in hand; the attempt goes on with somebody else."""
    holding = holdings.current(tx, agent.id)
    if holding is not None:
        tickets.move(tx, holding.ticket, Resume(why))
        holdings.drop(tx, holding.ticket)


def plant(world: World, shop: Workshop, agent: Agent, this_run: Run) -> Agent:
    """Before a turn: the worktree stands on the ground of the ticket that was claimed in the last one."""
    with world.store.read() as tx:
        holding = holdings.current(tx, agent.id)
        ticket = tickets.get(tx, holding.ticket) if holding is not None else None
    if holding is None or ticket is None or holding.planted:
        return agent
    assert ticket.base is not None, "a started ticket stands on a base"
    tree = ticket.plant or _before(shop, ticket) or shop.hub.tree_of(ticket.base)
    seat = this_run.seat
    shop.worktrees.replant(seat, ticket.base, tree, f"legion/{seat}", attempt=holding.number)
    with world.store.write() as tx:
        if ticket.plant is not None:
            tickets.move(tx, ticket.id, Planted())
        holdings.note(tx, ticket.id, planted=True)
        return agents.plant(tx, agent, ticket.base)


def conclude(
    tx: Transaction, agent: Agent, holding: Holding, step: Propose | TryAgain | Fail, then: Prove | AskReview | None
) -> None:
    """At the end of the turn in which it was submitted. What was not fit to be proposed stays with the agent."""
    ticket = tickets.get(tx, holding.ticket)
    if ticket.state is not State.WORKING:
        return
    if isinstance(step, Propose):
        tickets.move(tx, ticket.id, step)
        if then is not None:
            tickets.move(tx, ticket.id, then)
        words = (
            f"Your change for ticket {ticket.id} is being checked and landed. Claim the next ticket, if there is one."
        )
    else:
        holdings.note(tx, ticket.id, submitted=False)
        words = f"Ticket {ticket.id} was not taken: {step.reason}.\n\n{step.feedback}"
    mail.send(tx, sender=ROOT, recipient=agent.id, kind=Post.NOTICE, text=words, about=str(ticket.id))


def _before(shop: Workshop, ticket: Ticket) -> str | None:
    """What an earlier attempt left, where the ticket goes on from there."""
    kept = shop.hub.kept(f"wip/{ticket.id}")
    saves = {int(Path(name).name): commit for name, commit in kept.items() if Path(name).name.isdigit()}
    return shop.hub.tree_of(saves[max(saves)]) if saves else None
