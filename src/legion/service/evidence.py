"""What stands behind a ticket, for its page: which criterion is proven by what, and what was found in its change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from legion.domain import evidence
from legion.domain.checks import HELD_OUT, Receipt
from legion.domain.events import Event, Kind
from legion.domain.evidence import Backing
from legion.domain.paths import matches
from legion.domain.protection import deciding
from legion.domain.tickets import State, Ticket
from legion.domain.verdicts import Reading
from legion.jobs import permission
from legion.jobs.world import Workshop
from legion.store import receipts as store
from legion.store.database import ReadTransaction
from legion.wire.tickets import EvidenceLine, ReversalLine, UnprovenLine, WeakeningLine


def weakened(shop: Workshop, ticket: Ticket) -> list[WeakeningLine]:
    """Signs that its change makes tests weaker, whether or not it was allowed to touch them."""
    if ticket.change is None or shop.project.removed_at is not None:
        return []
    return [
        WeakeningLine(sign=one.sign.value, path=one.path, line=one.line, words=one.words)
        for one in permission.found_weak(shop, ticket, ticket.change)
    ]


def lines(
    shop: Workshop,
    ticket: Ticket,
    history: Sequence[Event],
    receipts: Sequence[Receipt],
    read: Sequence[Reading],
    changed: Sequence[str],
) -> list[EvidenceLine]:
    """`receipts` are all that the page shows, `read` what readers said about its changes, `changed` its paths."""
    checks = {check.name: check.command for check in shop.config.checks}
    there = ticket.wish.checkpoint and ticket.landed is not None and shop.project.removed_at is None
    tree = shop.hub.tree_of(ticket.landed) if there and ticket.landed else ""
    landed_on = _landed_on(ticket, history, receipts, tree)
    since = _attempt_began(history)
    tried = reversal(history)
    idle = tried.idle if tried else []
    fresh = [receipt for receipt in receipts if receipt.made_at >= since]
    return [
        EvidenceLine(
            criterion=one.words,
            backing=one.backing.value,
            by=one.by,
            commit=one.receipt.commit if one.receipt else None,
            idle=one.by in idle,
            own=one.backing is not Backing.READ and _wrote(changed, one.by),
        )
        for one in evidence.weigh(
            ticket.wish.criteria, ticket.wish.bound, checks, fresh, landed_on, _seen(ticket, read)
        )
    ]


def _wrote(changed: Sequence[str], command: str) -> bool:
    named = deciding([command])
    return any(matches(path, named, any_case=True) for path in changed)


def _seen(ticket: Ticket, read: Sequence[Reading]) -> dict[int, str]:
    """What the last reader of the present change that says so saw, by the criterion's place."""
    given = [one for one in read if ticket.change is not None and one.commit == ticket.change.commit and one.verdict]
    said = [(one.reader, judged) for one in given if one.verdict is not None for judged in one.verdict.criteria]
    last = {judged.number - 1: (reader, judged) for reader, judged in said}
    return {place: f"{reader}: {judged.why or 'met'}" for place, (reader, judged) in last.items() if judged.met}


def reversal(history: Sequence[Event]) -> ReversalLine | None:
    """What is known of the latest attempt's change."""
    since = _attempt_began(history)
    found = [event.data for event in history if event.kind is Kind.REVERSED and event.at >= since]
    if not found:
        return None
    told: Any = found[-1]
    return ReversalLine(
        idle=list(told["idle"]),
        unproven=[UnprovenLine(**one) for one in told["unproven"]],
        tried=told["tried"],
        left=told["left"],
    )


def confirmed(tx: ReadTransaction, shop: Workshop, ticket: Ticket) -> tuple[Receipt, ...]:
    """What a checkpoint stands on: receipts of its commands on the files that it looked at, whoever had them run."""
    if not ticket.wish.checkpoint or ticket.landed is None or shop.project.removed_at is not None:
        return ()
    tree = shop.hub.tree_of(ticket.landed)
    commands = {*(check.command for check in shop.config.checks), *ticket.wish.proofs}
    names = {f"{HELD_OUT}{name}" for name in ticket.wish.acceptance}
    return tuple(
        receipt
        for receipt in store.for_tree(tx, ticket.project, tree)
        if receipt.command in commands or receipt.name in names
    )


def _landed_on(
    ticket: Ticket, history: Sequence[Event], receipts: Sequence[Receipt], tree: str
) -> list[Receipt] | None:
    """The receipts that let it land, or confirmed it; None before."""
    if ticket.state is not State.DONE:
        return None
    if ticket.wish.checkpoint:
        return [receipt for receipt in receipts if receipt.tree == tree]
    named = [event.data.get("receipts") for event in history if event.kind is Kind.LANDED]
    ids = {number for numbers in named if isinstance(numbers, list) for number in numbers}
    return [receipt for receipt in receipts if receipt.id in ids]


def _attempt_began(history: Sequence[Event]) -> float:
    """What ran on an earlier change says nothing about this one."""
    began = [event.at for event in history if event.kind is Kind.RUN_STARTED and not event.data.get("role")]
    return max(began, default=0.0)
