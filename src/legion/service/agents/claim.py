"""Standing agents claim tickets from the board, and submit or release them."""

from __future__ import annotations

from legion.config.files.project import parse
from legion.config.files.user import CLAUDE
from legion.domain.agents.agent import ROOT, STANDING, Agent
from legion.domain.errors import BadInput, NotAllowed, StateConflict
from legion.domain.landing.conflicts import AT_WORK, Overlap, overlapping
from legion.domain.tickets import board
from legion.domain.tickets.ticket import State, Ticket
from legion.jobs.agent import plan_approval, preparation
from legion.jobs.board import Board
from legion.jobs.turn import claimed_tickets
from legion.service.shared.repeats import remembered, repeated
from legion.store.board import plan_approvals, projects, tickets
from legion.store.database.transactions import Transaction
from legion.store.staff import agents, ticket_holders
from legion.store.work import runs
from legion.wire.agents import Claimed, ClaimTicket, SubmitTicket

END = "End your turn now"
READ_ONLY = "You may only read until your plan is approved: propose it with legion-plan."


def claim(context: Board, caller: str, wanted: ClaimTicket) -> Claimed:
    """Claim the next ready ticket, or a given one. No two agents get the same: there is one writer at a time."""
    with context.store.write() as tx:
        if (first := repeated(tx, caller, wanted.request, Claimed)) is not None:
            return Claimed(**first)
        agent = standing(tx, caller)
        if agent.only_reads:
            raise NotAllowed(READ_ONLY)
        held = ticket_holders.current(tx, agent.id)
        if held is not None:
            raise StateConflict(f"You hold ticket {held.ticket}: submit it first, or release it.")
        ready = [ticket for ticket in _ready(tx, agent.project) if _fits(tx, agent, ticket)]
        if wanted.ticket:
            ready = [ticket for ticket in ready if ticket.id == wanted.ticket]
            if not ready:
                raise StateConflict(
                    f"Ticket {wanted.ticket} is not ready to be claimed: leave it out to get the next one."
                )
        if not ready:
            answer = Claimed(ticket=None, title="", message="No ticket is ready: end your turn.")
        else:
            claimed_tickets.claim(tx, agent, tickets.get(tx, ready[0].id))
            title = ready[0].spec.title
            message = f"Ticket {ready[0].id} is yours. {END}: the next one starts with its briefing, in a fresh tree."
            answer = Claimed(ticket=ready[0].id, title=title, message=message)
        remembered(tx, caller, wanted.request, answer)
    return answer


def submit(context: Board, caller: str, wanted: SubmitTicket) -> Claimed:
    """Make the tree at the end of this turn the ticket's change, or return the ticket to the board."""
    with context.store.write() as tx:
        if (first := repeated(tx, caller, wanted.request, Claimed)) is not None:
            return Claimed(**first)
        agent = standing(tx, caller)
        held = ticket_holders.current(tx, agent.id)
        if not wanted.let_go and plan_approval.reader(tx, agent).only_reads:
            raise NotAllowed(READ_ONLY)
        if held is None:
            raise StateConflict("You hold no ticket: claim one first.")
        title = tickets.get(tx, held.ticket).spec.title
        if wanted.let_go:
            claimed_tickets.leave(tx, agent, wanted.why or f"{agent.name} released it")
            message = f"Ticket {held.ticket} is back on the board."
        elif not held.planted:
            raise StateConflict(f"Ticket {held.ticket} starts with your next turn: end this one first.")
        else:
            ticket_holders.note(tx, held.ticket, submitted=True)
            message = f"{END}: your folder then holds the change of ticket {held.ticket}."
        answer = Claimed(ticket=held.ticket, title=title, message=message)
        remembered(tx, caller, wanted.request, answer)
    return answer


def standing(tx: Transaction, caller: str) -> Agent:
    if caller == ROOT:
        raise BadInput(
            "Only standing agents claim tickets: hire one with `legion agents hire`, and ask it to work from the board."
        )
    agent = agents.get(tx, caller)
    if agent.fired_at is not None:
        raise NotAllowed("You were fired.")
    return agent


def _fits(tx: Transaction, agent: Agent, ticket: Ticket) -> bool:
    """No agent with more tools than the ticket's dispatcher may give, no ticket for which a person chose another
    program, and none with a plan first for a program that cannot be limited to reading."""
    if ticket.spec.driver not in ("", STANDING, agent.driver or CLAUDE):
        return False
    if plan_approvals.of_ticket(tx, ticket.id) is not None and not preparation.can_limit_tools(agent):
        return False
    given, mine = ticket.spec.tools, agent.rights.tools
    return given is None or (mine is not None and mine <= set(given))


def _ready(tx: Transaction, project_id: int) -> list[Ticket]:
    """Tickets for standing agents first, then those that wait for a free slot; by priority and age."""
    project = projects.get(tx, project_id)
    if project.paused or project.upstream_pending or not projects.is_trusted(tx, project.id, project.config_hash):
        return []
    live = tickets.live(tx, project=project_id)
    overlap = parse(project.config_text, origin=project.name).conflicts.overlap
    busy = [ticket for ticket in live if ticket.state in AT_WORK]
    at_work = {run.ticket for run in runs.active(tx)}
    held = ticket_holders.tickets(tx)
    before = {other for ticket in live for other in ticket.spec.after}
    states = tickets.states_of(tx, before)
    ready = [
        ticket
        for ticket in live
        if ticket.state is State.QUEUED
        and not ticket.spec.checkpoint
        and not ticket.spec.command
        and ticket.spec.undoes is None
        and not (overlap is Overlap.RULE and overlapping(ticket, busy))
        and ticket.id not in at_work | held
        and board.ready(ticket.spec.after, states)
    ]
    return sorted(ready, key=lambda one: (one.spec.driver != STANDING, -one.spec.priority, one.id))
