"""Rules for the operations on a ticket: which may be called now. The service and the keys of all clients obey them.

The names are those of the operations. A rule says no where the state, the ticket's kind or its agent's driver rules the
operation out; the service may still refuse for what only it can see, for example a conflict of an undo.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from legion.domain.takeovers import TakeoverMode
from legion.domain.tickets.ticket import ENDED, Park, ParkReason, Retry, Rewind, State, Step, Stop, Ticket, allowed

WITH_CHANGE = (State.CHECKING, State.REVIEWING, State.LANDING)
"""States in which a change is on its way to the target."""


@dataclass(frozen=True, kw_only=True)
class AgentReach:
    """How a person can reach the agent that works on a ticket, as its driver says."""

    talks: bool = False
    interrupts: bool = False
    opens: bool = False
    """It has a terminal, or its conversation can be taken over in one."""


@dataclass(frozen=True, kw_only=True)
class OfferFacts:
    """What the rules need besides the ticket."""

    agent: AgentReach | None = None
    """None where no agent works on it, or it has not started yet."""
    attended: TakeoverMode | None = None
    held: bool = False
    """A standing agent works on it."""
    plan_waits: bool = False
    """Its agent proposed a plan that is not decided."""


_ALONE = OfferFacts()
_Rule = Callable[[Ticket, OfferFacts], bool]


def _step(step: type[Step]) -> _Rule:
    return lambda ticket, facts: step in allowed(ticket.state)


def _stage(ticket: Ticket) -> State:
    """The state, or for a parked ticket the one that it returns to."""
    return ticket.parked.back_to if ticket.parked is not None else ticket.state


def _has_agent(ticket: Ticket) -> bool:
    return not ticket.spec.checkpoint and ticket.spec.undoes is None


def _has_work(ticket: Ticket, facts: OfferFacts) -> bool:
    return not ticket.spec.checkpoint and (ticket.attempt > 0 or ticket.change is not None)


def _on_its_way(ticket: Ticket, facts: OfferFacts) -> bool:
    return _stage(ticket) in WITH_CHANGE and ticket.change is not None


def _review(ticket: Ticket, facts: OfferFacts) -> bool:
    if ticket.change is None:
        return False
    asks = ticket.parked is not None and ticket.parked.reason is ParkReason.QUESTION
    return ticket.state in (State.DONE, State.CHECKING, State.LANDING) or (
        asks and _stage(ticket) in (State.CHECKING, State.REVIEWING)
    )


def _attach(ticket: Ticket, facts: OfferFacts) -> bool:
    if not _has_agent(ticket) or facts.held:
        return False
    if ticket.state is State.WORKING:
        return facts.agent is None or facts.agent.opens
    return ticket.state is State.QUEUED and facts.attended is not None


OFFERS: dict[str, _Rule] = {
    "stop": _step(Stop),
    "retry": _step(Retry),
    "pause_ticket": _step(Park),
    "resume_ticket": lambda ticket, facts: ticket.state is State.PARKED and not facts.plan_waits,
    "drop": lambda ticket, facts: ticket.state in (*ENDED, State.DRAFT, State.QUEUED, State.PARKED),
    "edit": lambda ticket, facts: ticket.state is not State.DONE,
    "diff": _has_work,
    "checkout": _has_work,
    "push": _has_work,
    "shell": lambda ticket, facts: _has_agent(ticket) and ticket.attempt > 0,
    "review": _review,
    "bounce": lambda ticket, facts: _on_its_way(ticket, facts) and ticket.spec.undoes is None,
    "land": _on_its_way,
    "undo": lambda ticket, facts: ticket.state is State.DONE and not ticket.spec.checkpoint,
    "rewind": lambda ticket, facts: Rewind in allowed(ticket.state) and _has_agent(ticket) and not facts.held,
    "attach": _attach,
    "tell": lambda ticket, facts: ticket.state is State.WORKING and facts.agent is not None and facts.agent.talks,
    "interrupt": lambda ticket, facts: (
        ticket.state is State.WORKING and facts.agent is not None and facts.agent.interrupts
    ),
    "split": lambda ticket, facts: ticket.state not in (State.DONE, State.LANDING) and _has_agent(ticket),
    "tried": lambda ticket, facts: ticket.change is not None,
    "submit_ticket": lambda ticket, facts: (
        facts.attended is TakeoverMode.PERSON and ticket.state in (State.WORKING, State.PARKED)
    ),
}


def may(name: str, ticket: Ticket, facts: OfferFacts = _ALONE) -> bool:
    return OFFERS[name](ticket, facts)


def offered(ticket: Ticket, facts: OfferFacts = _ALONE) -> list[str]:
    """The operations that may be called for the ticket now, in the order of the table."""
    return [name for name in OFFERS if may(name, ticket, facts)]
