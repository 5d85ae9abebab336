"""Standing agents work from the board: they claim tickets, submit them, and have their plans approved."""

from __future__ import annotations

import uuid

from legion.config.project import parse
from legion.domain import agents as rules
from legion.domain import board
from legion.domain.agents import ROOT, STANDING, Agent, Planning
from legion.domain.conflicts import AT_WORK, Overlap, overlapping
from legion.domain.errors import BadInput, Conflict, NotAllowed, NotFound
from legion.domain.events import Kind
from legion.domain.mail import Post
from legion.domain.questions import APPROVE, REJECT, Matter
from legion.domain.tickets import State, Ticket
from legion.jobs import holding
from legion.jobs.world import World
from legion.service import mailing
from legion.service.mailing import remembered, repeated
from legion.store import agents, holdings, mail, projects, questions, runs, tickets
from legion.store.database import Transaction
from legion.wire.agents import Claimed, ClaimTicket, Plan, PlanVerdict, SubmitTicket
from legion.wire.mail import Sent

_END = "End your turn now"
_PATIENCE = 7 * 86_400.0
"""Seconds that a plan waits for the person; it stays proposed then."""
_LONGEST_SHOWN = 4000


def claim(world: World, caller: str, wanted: ClaimTicket) -> Claimed:
    """The next ready ticket, or a certain one. Two never get the same: there is one writer at a time."""
    with world.store.write() as tx:
        if (first := repeated(tx, caller, wanted.request)) is not None:
            return Claimed(**first)
        agent = _standing(tx, caller)
        if agent.only_reads:
            raise NotAllowed("You may only read until your plan is approved: propose it with legion-plan.")
        held = holdings.current(tx, agent.id)
        if held is not None:
            raise Conflict(f"You hold ticket {held.ticket}: submit it first, or let it go.")
        ready = _ready(tx, agent.project)
        if wanted.ticket:
            ready = [ticket for ticket in ready if ticket.id == wanted.ticket]
            if not ready:
                raise Conflict(f"Ticket {wanted.ticket} is not ready to be claimed: leave it out to get the next one.")
        if not ready:
            answer = Claimed(ticket=None, title="", message="No ticket is ready: end your turn.")
        else:
            holding.take(tx, agent, tickets.get(tx, ready[0].id))
            title = ready[0].wish.title
            message = f"Ticket {ready[0].id} is yours. {_END}: the next one begins with its briefing, in a fresh tree."
            answer = Claimed(ticket=ready[0].id, title=title, message=message)
        remembered(tx, caller, wanted.request, answer)
    return answer


def submit(world: World, caller: str, wanted: SubmitTicket) -> Claimed:
    """What lies in its tree at the end of this turn is the ticket's change; or the ticket goes back to the board."""
    with world.store.write() as tx:
        if (first := repeated(tx, caller, wanted.request)) is not None:
            return Claimed(**first)
        agent = _standing(tx, caller)
        held = holdings.current(tx, agent.id)
        if held is None:
            raise Conflict("You hold no ticket: claim one first.")
        title = tickets.get(tx, held.ticket).wish.title
        if wanted.let_go:
            holding.leave(tx, agent, wanted.why or f"{agent.name} let it go")
            message = f"Ticket {held.ticket} is back on the board."
        elif not held.planted:
            raise Conflict(f"Ticket {held.ticket} begins with your next turn: end this one first.")
        else:
            holdings.note(tx, held.ticket, submitted=True)
            message = f"{_END}: what lies in your folder then is the change of ticket {held.ticket}."
        answer = Claimed(ticket=held.ticket, title=title, message=message)
        remembered(tx, caller, wanted.request, answer)
    return answer


def propose(world: World, caller: str, wanted: Plan) -> Sent:
    """The plan goes to the one above, who approves it or sends it back."""
    text = mailing.checked(wanted.text)
    with world.store.write() as tx:
        if (first := repeated(tx, caller, wanted.request)) is not None:
            return Sent(**first)
        agent = _standing(tx, caller)
        if agent.plan is Planning.NONE or agent.plan is Planning.APPROVED:
            raise Conflict("Nobody asked you for a plan: go ahead.")
        agents.plan(tx, agent, Planning.PROPOSED)
        how = f"`legion approve {agent.name}`, or `legion reject {agent.name} WHY`"
        words = f"{agent.name} proposes a plan, and only reads until you approve it ({how}).\n\n{text}"
        message = mail.send(tx, sender=agent.id, recipient=agent.parent, text=words, project=agent.project)
        if agent.parent == ROOT:
            _ask_the_person(tx, agent, text)
        answer = Sent(messages=[message.id], to=[agent.parent], message=f"Your plan is proposed. {_END}.")
        remembered(tx, caller, wanted.request, answer)
    return answer


def decide(world: World, caller: str, wanted: PlanVerdict) -> Sent:
    """By anybody above. Rejected, the agent gets the reason and plans again."""
    with world.store.write() as tx:
        if (first := repeated(tx, caller, wanted.request)) is not None:
            return Sent(**first)
        agent = agents.find(tx, wanted.agent)
        if agent.fired_at is not None:
            raise NotFound(f"{agent.name} was fired already.")
        if not rules.may_command(agents.parents(tx), caller, agent.id):
            raise NotAllowed(f"You may not approve a plan of {agent.name}: only of those below you.")
        if not agent.only_reads:
            raise Conflict(f"{agent.name} needs no approval: it may work already.")
        if not wanted.approve and not wanted.why.strip():
            raise BadInput("Say why the plan is rejected, so that the next one is better.")
        agents.plan(tx, agent, Planning.APPROVED if wanted.approve else Planning.WANTED)
        for question in questions.open_ones(tx, agent=agent.id):
            if question.kind is Matter.PLAN:
                questions.settle(tx, question.id, APPROVE if wanted.approve else REJECT, wanted.why)
        kind = Kind.PLAN_APPROVED if wanted.approve else Kind.PLAN_REJECTED
        tx.record(kind, project=agent.project, data={"agent": agent.id, "by": caller, "why": wanted.why})
        words = "Your plan is approved: go ahead." if wanted.approve else "Your plan is rejected: make a better one."
        text = f"{words}\n\n{wanted.why}".strip()
        message = mail.send(tx, sender=caller, recipient=agent.id, kind=Post.NOTICE, text=text, project=agent.project)
        said = f"The plan of {agent.name} is {'approved' if wanted.approve else 'rejected'}."
        answer = Sent(messages=[message.id], to=[agent.id], message=said)
        remembered(tx, caller, wanted.request, answer)
    return answer


def _ask_the_person(tx: Transaction, agent: Agent, text: str) -> None:
    """A new plan takes the place of the one before."""
    questions.withdraw(tx, agent=agent.id, kind=Matter.PLAN, why="a new plan took its place")
    questions.ask(
        tx,
        key=f"plan:{agent.id}:{uuid.uuid4()}",
        kind=Matter.PLAN,
        project=agent.project,
        agent=agent.id,
        words=f"{agent.name} proposes a plan, and only reads until it is approved. May it go ahead?",
        facts={"plan": text[:_LONGEST_SHOWN]},
        deadline=tx.now + _PATIENCE,
    )


def _standing(tx: Transaction, caller: str) -> Agent:
    if caller == ROOT:
        raise BadInput("Tickets are claimed by standing agents: hire one, and tell it to work from the board.")
    agent = agents.get(tx, caller)
    if agent.fired_at is not None:
        raise NotAllowed("You were fired.")
    return agent


def _ready(tx: Transaction, project_id: int) -> list[Ticket]:
    """Those that wait for a standing agent first, then what waits for a free slot; by priority and age."""
    project = projects.get(tx, project_id)
    if project.paused or project.person_waiting or not projects.is_trusted(tx, project.id, project.config_hash):
        return []
    live = tickets.live(tx, project=project_id)
    overlap = parse(project.config_text, origin=project.name).conflicts.overlap
    busy = [ticket for ticket in live if ticket.state in AT_WORK]
    at_work = {run.ticket for run in runs.active(tx)}
    held = holdings.tickets(tx)
    before = {other for ticket in live for other in ticket.wish.after}
    states = tickets.states_of(tx, before)
    ready = [
        ticket
        for ticket in live
        if ticket.state is State.QUEUED
        and not ticket.wish.checkpoint
        and not ticket.wish.command
        and ticket.wish.undoes is None
        and not (overlap is Overlap.RULE and overlapping(ticket, busy))
        and ticket.id not in at_work | held
        and board.ready(ticket.wish.after, states)
    ]
    return sorted(ready, key=lambda one: (one.wish.driver != STANDING, -one.wish.priority, one.id))
