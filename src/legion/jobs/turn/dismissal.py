"""Fires an agent: it gets no more turns, its open mail is returned, its reports and its ticket go to others."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from legion.domain.agents import agent as rules
from legion.domain.agents.agent import Agent
from legion.domain.agents.mail import Delivery
from legion.jobs.agent import plan_approval
from legion.jobs.turn import claimed_tickets, delivery
from legion.store.database.transactions import Transaction
from legion.store.staff import agents, mail, tokens

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
        claimed_tickets.leave(tx, one, f"{one.name} was fired")
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
