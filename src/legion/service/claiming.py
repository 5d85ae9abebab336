"""Standing agents work from the board: they claim tickets and submit them, or let them go."""

from __future__ import annotations

from legion.config.project import parse
from legion.config.user import CLAUDE
from legion.domain import board
from legion.domain.agents import ROOT, STANDING, Agent
from legion.domain.conflicts import AT_WORK, Overlap, overlapping
from legion.domain.errors import BadInput, Conflict, NotAllowed
from legion.domain.tickets import State, Ticket
from legion.jobs import holding, planning
from legion.jobs.world import World
from legion.service.mailing import remembered, repeated
from legion.store import agents, holdings, projects, runs, tickets
from legion.store.database import Transaction
from legion.wire.agents import Claimed, ClaimTicket, SubmitTicket

END = "End your turn now"
READS = "You may only read until your plan is approved: propose it with legion-plan."


def claim(world: World, caller: str, wanted: ClaimTicket) -> Claimed:
    """The next ready ticket, or a certain one. Two never get the same: there is one writer at a time."""
    with world.store.write() as tx:
        if (first := repeated(tx, caller, wanted.request)) is not None:
            return Claimed(**first)
        agent = standing(tx, caller)
        if agent.only_reads:
            raise NotAllowed(READS)
        held = holdings.current(tx, agent.id)
        if held is not None:
            raise Conflict(f"You hold ticket {held.ticket}: submit it first, or let it go.")
        ready = [ticket for ticket in _ready(tx, agent.project) if _fits(agent, ticket)]
        if wanted.ticket:
            ready = [ticket for ticket in ready if ticket.id == wanted.ticket]
            if not ready:
                raise Conflict(f"Ticket {wanted.ticket} is not ready to be claimed: leave it out to get the next one.")
        if not ready:
            answer = Claimed(ticket=None, title="", message="No ticket is ready: end your turn.")
        else:
            holding.take(tx, agent, tickets.get(tx, ready[0].id))
            title = ready[0].wish.title
            message = f"Ticket {ready[0].id} is yours. {END}: the next one begins with its briefing, in a fresh tree."
            answer = Claimed(ticket=ready[0].id, title=title, message=message)
        remembered(tx, caller, wanted.request, answer)
    return answer


def submit(world: World, caller: str, wanted: SubmitTicket) -> Claimed:
    """What lies in its tree at the end of this turn is the ticket's change; or the ticket goes back to the board."""
    with world.store.write() as tx:
        if (first := repeated(tx, caller, wanted.request)) is not None:
            return Claimed(**first)
        agent = standing(tx, caller)
        held = holdings.current(tx, agent.id)
        if not wanted.let_go and planning.reader(tx, agent).only_reads:
            raise NotAllowed(READS)
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
            message = f"{END}: what lies in your folder then is the change of ticket {held.ticket}."
        answer = Claimed(ticket=held.ticket, title=title, message=message)
        remembered(tx, caller, wanted.request, answer)
    return answer


def standing(tx: Transaction, caller: str) -> Agent:
    if caller == ROOT:
        raise BadInput("Tickets are claimed by standing agents: hire one, and tell it to work from the board.")
    agent = agents.get(tx, caller)
    if agent.fired_at is not None:
        raise NotAllowed("You were fired.")
    return agent


def _fits(agent: Agent, ticket: Ticket) -> bool:
    """Nobody works on a ticket with more than whoever dispatched it may give, nor in place of a program that a person
    chose."""
    if ticket.wish.driver not in ("", STANDING, CLAUDE):
        return False
    given, mine = ticket.wish.tools, agent.rights.tools
    return given is None or (mine is not None and mine <= set(given))


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
