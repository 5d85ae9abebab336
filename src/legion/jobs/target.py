"""The target moves: intent, compare-and-swap, record.

The order makes every cut harmless: receipts are there before; the intent is stored before the target moves; the target
moves to exactly the tested commit; then the tickets are done. Whoever comes after a crash finds the intent and
completes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from legion.config.project import FILE, hash_of, parse
from legion.domain.checks import HELD_OUT, Verdict
from legion.domain.errors import BadInput
from legion.domain.events import Kind
from legion.domain.landing import Landing
from legion.domain.projects import ConfigOrigin, Project
from legion.domain.rules import Rule
from legion.domain.tickets import Land, Ticket
from legion.git.errors import TargetMoved
from legion.git.hub import Hub
from legion.jobs import traces
from legion.jobs.world import Workshop, World
from legion.store import landings, projects, receipts, tickets
from legion.store.database import Transaction
from legion.system import crash
from legion.system.crash import Point


@dataclass(frozen=True, kw_only=True)
class Link:
    """One place in the chain: a ticket's change, or the person's commits (no ticket), on top of all before it."""

    ticket: Ticket | None
    commit: str
    tree: str


def move(world: World, shop: Workshop, start: str, chain: Sequence[Link]) -> bool:
    """Move the target to the tested tip. False where a person stopped a member meanwhile: then a new batch is made."""
    tip = chain[-1]
    batch = [link.ticket for link in chain if link.ticket is not None]
    members = {link.ticket.id: link.commit for link in chain if link.ticket is not None}
    below = [start, *(link.commit for link in chain)]
    stood_on = {link.ticket.id: under for link, under in zip(chain, below, strict=False) if link.ticket is not None}
    with world.store.write() as tx:
        # Not only the state: one that was stopped and taken up again may wait here with another change.
        if any(tickets.get(tx, ticket.id).version != ticket.version for ticket in batch):
            return False
        intent = landings.open(
            tx,
            shop.project.id,
            base=start,
            commit=tip.commit,
            tree=tip.tree,
            tickets=members,
            before=stood_on,
            since={ticket.id: ticket.moved_at for ticket in batch},
        )
    if not shop.hub.is_ancestor(start, tip.commit):
        # The person rewrote their branch. What it was before stays, under a name.
        shop.hub.keep(f"before/{start}", start)
    crash.reach(Point.LAND_BEFORE_SWAP)
    shop.hub.move_target(tip.commit, expected=start)
    crash.reach(Point.LAND_AFTER_SWAP)
    _record(world, shop, intent, moved=True)
    crash.reach(Point.LAND_AFTER_RECORD)
    return True


def finish_begun(world: World, shop: Workshop) -> None:
    """Landings that a crash cut off: everything was tested and nobody could withdraw since, so the target moves now.

    It may have moved before. It may even be moving: a git that outlived its daemon does the same, with the same end.
    """
    with world.store.read() as tx:
        begun = landings.open_ones(tx, shop.project.id)
    for intent in begun:
        try:
            shop.hub.move_target(intent.commit, expected=intent.base)
            moved = True
        except TargetMoved:
            moved = shop.hub.is_ancestor(intent.commit, shop.target)
        _record(world, shop, intent, moved=moved)


def _record(world: World, shop: Workshop, intent: Landing, *, moved: bool) -> None:
    left = traces.left_behind(world, shop, intent) if moved else ()
    back = traces.brought_back(world, shop, intent) if moved else ()
    with world.store.write() as tx:
        landings.close(tx, intent.id, landed=moved)
        if moved:
            traces.record(tx, shop, intent.commit, left, back)
            _record_target(tx, shop, intent.commit, sorted(intent.tickets))
            for number, own_commit in intent.tickets.items():
                _record_ticket(tx, shop, intent, number, own_commit)


def _record_target(tx: Transaction, shop: Workshop, commit: str, landed: list[int]) -> None:
    project = projects.get(tx, shop.project.id)
    tip = project.person_tip
    absorbed = tip if tip is not None and shop.hub.is_ancestor(tip, commit) else project.person_absorbed
    moved = with_landed_config(shop.hub, replace(project, target=commit, person_absorbed=absorbed))
    if moved.config_text == shop.project.config_text:
        moved = replace(moved, baseline_commit=commit, baseline_verdict=Verdict.GREEN)
    projects.save(tx, moved, Kind.TARGET_MOVED, {"commit": commit, "tickets": landed})
    if absorbed != project.person_absorbed:
        tx.record(Kind.ABSORBED, project=project.id, data={"tip": absorbed})


def with_landed_config(hub: Hub, project: Project) -> Project:
    """The target's legion.toml is in force from now on. One that makes no sense loses the trust: nothing runs by it."""
    landed = hub.read_file(project.target, FILE)
    if landed is None:
        return project
    text = landed.decode("utf-8", "replace")
    try:
        parse(text)
    except BadInput:
        return replace(project, config_hash=hash_of(text))
    return replace(project, config_text=text, config_hash=hash_of(text), config_origin=ConfigOrigin.TARGET)


def _record_ticket(tx: Transaction, shop: Workshop, intent: Landing, number: int, commit: str) -> None:
    """While the intent is open nobody can stop or pause the ticket, so it is still landing."""
    ticket = tickets.get(tx, number)
    commands = {*(check.command for check in shop.config.checks), *ticket.wish.proofs}
    tickets.move(tx, number, Land(commit, unchecked=not (commands or ticket.wish.acceptance)))
    names = {f"{HELD_OUT}{name}" for name in ticket.wish.acceptance}
    data = {
        "commit": commit,
        "before": intent.before.get(number),
        "tested": intent.commit,
        "receipts": _proof(tx, intent, commands, names),
        "rule": Rule.GREEN_LANDS.value,
    }
    tx.record(Kind.LANDED, project=ticket.project, ticket=number, data=data)


def _proof(tx: Transaction, intent: Landing, commands: set[str], names: set[str]) -> list[int]:
    """The receipts that let it land: the latest green one of each command on the tree that was tested."""
    latest = {
        receipt.command: receipt.id
        for receipt in receipts.for_tree(tx, intent.project, intent.tree)
        if receipt.verdict is Verdict.GREEN and (receipt.command in commands or receipt.name in names)
    }
    return sorted(latest.values())
