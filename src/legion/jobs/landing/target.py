"""Moves the target: intent, compare-and-swap, record.

The order makes a crash at any point harmless: the receipts are stored first; the intent is stored before the target
moves; the target moves to exactly the tested commit; then the tickets are done. After a crash the next land job finds
the intent and completes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from legion.config.files.project import FILE, hash_of, parse
from legion.domain.checks import HELD_OUT, CheckResult
from legion.domain.errors import BadInput
from legion.domain.events import EventKind
from legion.domain.landing.queue import LandingIntent, LandingTarget
from legion.domain.projects import ConfigOrigin, Project
from legion.domain.rules import Rule
from legion.domain.tickets.ticket import Land, Ticket
from legion.git.core.errors import BranchGone, RepositoryGone, TargetMoved
from legion.git.hub import remote
from legion.git.hub.repository import Hub
from legion.git.merge.candidates import merged_by_definition
from legion.git.person.inspect import loose_tip
from legion.jobs.board import Board
from legion.jobs.checks import execution
from legion.jobs.checks.candidates import ChainLink
from legion.jobs.landing import branch_questions, gate, reverted
from legion.jobs.trees import ProjectContext
from legion.store.board import forges, landings, past_tickets, projects, receipts, tickets
from legion.store.database.transactions import Transaction
from legion.system import crash
from legion.system.crash import Point


def move(context: Board, project: ProjectContext, start: str, chain: Sequence[ChainLink]) -> bool:
    """Move the target to the tested tip. False where a person moved or held one of its tickets meanwhile."""
    tip = chain[-1]
    batch = [link.ticket for link in chain if link.ticket is not None]
    members = {link.ticket.id: link.commit for link in chain if link.ticket is not None}
    below = [start, *(link.commit for link in chain)]
    parents = {link.ticket.id: under for link, under in zip(chain, below, strict=False) if link.ticket is not None}
    with context.store.write() as tx:
        # Not only the state: a ticket that was stopped and retried may wait here with another change, or its epic
        # has a gate by now.
        if any(_is_held(tx, project, ticket) for ticket in batch):
            return False
        intent = landings.open(
            tx,
            project.id,
            base=start,
            commit=tip.commit,
            tree=tip.tree,
            tickets=members,
            before=parents,
            since={ticket.id: ticket.moved_at for ticket in batch},
        )
    if not project.hub.is_ancestor(start, tip.commit):
        # The person rewrote their branch. Its former commit is kept under a name.
        project.hub.keep(f"before/{start}", start)
    crash.reach(Point.LAND_BEFORE_SWAP)
    project.hub.move_target(tip.commit, expected=start)
    crash.reach(Point.LAND_AFTER_SWAP)
    _record(context, project, intent, moved=True)
    crash.reach(Point.LAND_AFTER_RECORD)
    return True


def _is_held(tx: Transaction, project: ProjectContext, ticket: Ticket) -> bool:
    return tickets.get(tx, ticket.id).version != ticket.version or gate.waits(tx, project, ticket)


def finish_open_landings(context: Board, project: ProjectContext) -> None:
    """Complete landings that a crash interrupted: all was tested, and no ticket can be withdrawn while an intent is
    open.

    The target may have moved already. A git process that outlived its daemon may move it now, with the same result.
    """
    with context.store.read() as tx:
        intents = landings.open_ones(tx, project.id)
    for intent in intents:
        try:
            project.hub.move_target(intent.commit, expected=intent.base)
            moved = True
        except TargetMoved:
            moved = project.hub.is_ancestor(intent.commit, project.target)
        _record(context, project, intent, moved=moved)


def _record(context: Board, project: ProjectContext, intent: LandingIntent, *, moved: bool) -> None:
    left = reverted.removed_from_target(context, project, old=intent.base, new=intent.commit) if moved else ()
    back = reverted.restored_to_target(context, project, intent) if moved else ()
    with context.store.write() as tx:
        landings.close(tx, intent.id, landed=moved)
        if moved:
            reverted.record(tx, project, intent.commit, (one.id for one, _ in left), back)
            _record_target(tx, project, intent)
            for number, own_commit in intent.tickets.items():
                _record_ticket(tx, project, intent, number, own_commit)


def _record_target(tx: Transaction, project: ProjectContext, intent: LandingIntent) -> None:
    record, commit = projects.get(tx, project.id), intent.commit
    tip = record.person_tip
    absorbed = tip if tip is not None and project.hub.is_ancestor(tip, commit) else record.person_absorbed
    # What the person's commits failed may have been the red target that this one fixes: they are tried again.
    refused = None if record.baseline_red else record.person_refused
    seen = replace(record, target=commit, person_absorbed=absorbed, person_refused=refused)
    moved = with_landed_config(project.hub, seen)
    was_green = record.baseline_known and not record.baseline_red
    same_settings = moved.config_text == project.record.config_text
    if same_settings and (was_green or not _not_needed(project, intent)):
        moved = replace(moved, baseline_commit=commit, baseline_verdict=CheckResult.GREEN)
    projects.save(tx, moved, EventKind.TARGET_MOVED, {"commit": commit, "tickets": sorted(intent.tickets)})
    if absorbed != record.person_absorbed:
        tx.record(EventKind.ABSORBED, project=record.id, data={"tip": absorbed})


def with_landed_config(hub: Hub, project: Project) -> Project:
    """With the target's legion.toml in force. One that cannot be parsed is not trusted, so nothing runs by it."""
    landed = hub.read_file(project.target, FILE)
    if landed is None:
        return project
    text = landed.decode("utf-8", "replace")
    try:
        parse(text)
    except BadInput:
        return replace(project, config_hash=hash_of(text))
    return replace(project, config_text=text, config_hash=hash_of(text), config_origin=ConfigOrigin.TARGET)


def _record_ticket(tx: Transaction, project: ProjectContext, intent: LandingIntent, number: int, commit: str) -> None:
    """While the intent is open the ticket cannot be stopped or paused, so it is still landing."""
    ticket = tickets.get(tx, number)
    commands = {*(check.command for check in project.config.checks), *ticket.spec.proofs}
    tickets.move(tx, number, Land(commit, unchecked=not (commands or ticket.spec.acceptance)))
    for other in (*ticket.spec.retires, *((ticket.spec.undoes,) if ticket.spec.undoes is not None else ())):
        past_tickets.retire(tx, ticket.project, other, f"ticket {number}: {ticket.spec.title}")
    names = {f"{HELD_OUT}{name}" for name in ticket.spec.acceptance}
    data = {
        "commit": commit,
        "before": intent.before.get(number),
        "tested": intent.commit,
        "receipts": _proof(tx, intent, commands, names),
        "not_needed": _not_needed(project, intent),
        "merged": merged_by_definition(project.hub, commit) if project.config.conflicts.by_definition else "",
        "rule": Rule.GREEN_LANDS.value,
    }
    tx.record(EventKind.LANDED, project=ticket.project, ticket=number, data=data)


def _not_needed(project: ProjectContext, intent: LandingIntent) -> dict[str, list[str]]:
    """The checks that it landed without, each with the paths of which it touches nothing."""
    ran = execution.needed_checks(project, intent.base, intent.commit)
    return {check.name: list(check.paths) for check in project.config.checks if check not in ran}


def _proof(tx: Transaction, intent: LandingIntent, commands: set[str], names: set[str]) -> list[int]:
    """The receipts that prove it: the latest green one of each command on the tested tree."""
    latest = {
        receipt.command: receipt.id
        for receipt in receipts.for_tree(tx, intent.project, intent.tree)
        if receipt.verdict is CheckResult.GREEN and (receipt.command in commands or receipt.name in names)
    }
    return sorted(latest.values())


# Fetches the person's own commits into the hub. The merge queue absorbs them like any change, never rewritten.


def fetch(context: Board, project: ProjectContext) -> Project:
    """Fetch the person's branch and store its tip. A branch or repository that is gone is skipped.

    Where work lands at a forge, its branch takes the place of the person's; `jobs/forge` has fetched it.
    """
    if project.config.landing.target is not LandingTarget.LOCAL and (tip := _at_forge(context, project)) is not None:
        return _store(context, project, tip)
    common_dir, branch = Path(project.record.common_dir), project.record.branch
    if project.record.person_tip is not None and loose_tip(common_dir, branch) == project.record.person_tip:
        return project.record
    try:
        tip = project.hub.fetch_person(common_dir, branch)
    except BranchGone:
        branch_questions.ask_gone(context, project.record)
        return project.record
    except RepositoryGone:
        return project.record
    return _store(context, project, tip)


def _at_forge(context: Board, project: ProjectContext) -> str | None:
    with context.store.read() as tx:
        forge = forges.of_project(tx, project.id)
    return None if forge is None else project.hub.resolve(remote.ref_of(forge.branch))


def _store(context: Board, project: ProjectContext, tip: str) -> Project:
    if tip == project.record.person_tip:
        return project.record
    left = _left(project, tip)
    target = project.target
    if left is not None and target != project.record.person_absorbed and project.hub.is_ancestor(left, target):
        branch_questions.ask_rewritten(context, project.record, left)
    inside = project.hub.is_ancestor(tip, target)
    with context.store.write() as tx:
        record = projects.get(tx, project.id)
        # A person who had all of the target and then reset their branch wants the target reset, too.
        went_back = inside and tip != target == record.person_absorbed
        absorbed = tip if inside and not went_back else None
        if tip == record.person_tip and absorbed in (None, record.person_absorbed):
            return record
        seen = replace(record, person_tip=tip, person_absorbed=absorbed or record.person_absorbed)
        return projects.save(tx, seen, EventKind.PERSON_SEEN, {"tip": tip, **({"left": left} if left else {})})


def _left(project: ProjectContext, tip: str) -> str | None:
    """The former tip, if a rebase or a reset dropped it from the branch. The hub keeps it."""
    before = project.record.person_tip
    if before is None or before == tip or project.hub.is_ancestor(before, tip):
        return None
    project.hub.keep(f"before/{before}", before)
    return before
