"""Runs checks on a commit in a check tree and stores the receipts. A check that has a receipt does not run again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from legion.config.files.project import FILE
from legion.domain.checks import Check, CheckResult, Receipt, is_proven, missing
from legion.domain.events import EventKind
from legion.domain.landing.needed_checks import needed, seen_through
from legion.domain.rules import Rule
from legion.git.merge import partial_trees
from legion.jobs.checks import on_machine, sight
from legion.jobs.checks.prepared_tree import PreparedTree, prepared
from legion.jobs.context import Context, ProjectContext
from legion.jobs.workspace import command as commands
from legion.jobs.workspace import setup
from legion.jobs.workspace.cancellation import CancelToken
from legion.store.board import receipts
from legion.system import crash
from legion.system.crash import Point


@dataclass(frozen=True, kw_only=True)
class CheckedCommit:
    """The results of the checks on one commit."""

    commit: str
    receipts: tuple[Receipt, ...]
    wanted: tuple[WantedCheck, ...]

    @property
    def green(self) -> bool:
        return all(receipt.verdict is CheckResult.GREEN for receipt in self.receipts)

    @property
    def red(self) -> tuple[Receipt, ...]:
        return tuple(receipt for receipt in self.receipts if receipt.verdict is not CheckResult.GREEN)


@dataclass(frozen=True, kw_only=True)
class WantedCheck:
    """A check, and the ticket it belongs to when it is a ticket's own proof."""

    check: Check
    ticket: int | None = None


def project_checks(project: ProjectContext) -> tuple[WantedCheck, ...]:
    return tuple(WantedCheck(check=check) for check in project.config.checks)


def needed_checks(project: ProjectContext, base: str, commit: str) -> tuple[Check, ...]:
    """The project's checks that prove the commit, given that the base is proven. New settings need all of them."""
    checks = project.config.checks
    if not any(check.paths for check in checks):
        return checks
    changed = [file.path for file in project.hub.changed_files(base, commit)]
    if FILE in changed or _setup_reads(project, base, commit, changed):
        return checks
    return needed(checks, seen_through(partial_trees.links(project.hub, commit), changed))


_FIRST_TREE = "0"
"""The check tree that is used most: what setup read there is known first."""


def _setup_reads(project: ProjectContext, base: str, commit: str, changed: Iterable[str]) -> bool:
    """Whether [setup], which all checks share, may make something else of the commit."""
    if not project.config.setup.run:
        return False
    record = project.check_trees.setup_record(_FIRST_TREE)
    return not set(project.config.setup.key).isdisjoint(changed) or setup.would_read(project, record, base, commit)


def proofs(ticket_id: int, commands_: Sequence[str]) -> tuple[WantedCheck, ...]:
    return tuple(
        WantedCheck(check=Check(name=f"proof {number} of ticket {ticket_id}", command=command), ticket=ticket_id)
        for number, command in enumerate(commands_, 1)
    )


def test(context: Context, project: ProjectContext, commit: str, wanted: Sequence[WantedCheck]) -> CheckedCommit:
    """Receipts for every wanted check on this commit: the stored ones, and new ones for the rest."""
    return test_unless_cancelled(context, project, commit, wanted, CancelToken())


def test_unless_cancelled(
    context: Context, project: ProjectContext, commit: str, wanted: Sequence[WantedCheck], cancel: CancelToken
) -> CheckedCommit:
    """The same, until the token is cancelled: then it raises Cancelled."""
    tree, have, todo = _open(context, project, commit, wanted)
    new = _run_in_slot(context, project, commit, tree, todo, wanted, cancel) if todo else []
    green = [receipt for receipt in have if receipt.verdict is CheckResult.GREEN]
    by_command = {receipt.command: receipt for receipt in (*green, *new)}
    return _tested(commit, wanted, by_command)


def run_again(
    context: Context, project: ProjectContext, commit: str, wanted: Sequence[WantedCheck], cancel: CancelToken
) -> CheckedCommit:
    """The same, whatever receipts there are."""
    todo = [want.check for want in wanted]
    new = _run_in_slot(context, project, commit, project.hub.tree_of(commit), todo, wanted, cancel)
    return _tested(commit, wanted, {receipt.command: receipt for receipt in new})


def _run_in_slot(
    context: Context,
    project: ProjectContext,
    commit: str,
    tree: str,
    todo: Sequence[Check],
    wanted: Sequence[WantedCheck],
    cancel: CancelToken,
) -> list[Receipt]:
    owners = {want.check.command: want.ticket for want in wanted}
    slot = context.check_slots.take(project.id, project.config.landing.checks_at_once)
    try:
        return _run_all(context, project, slot, commit, tree, todo, owners, cancel)
    finally:
        context.check_slots.give_back(project.id, slot)


def has_receipts(context: Context, project: ProjectContext, commit: str, wanted: Sequence[WantedCheck]) -> bool:
    """Whether every wanted check has a receipt already, so that a test runs nothing."""
    return not _open(context, project, commit, wanted)[2]


def _open(
    context: Context, project: ProjectContext, commit: str, wanted: Sequence[WantedCheck]
) -> tuple[str, tuple[Receipt, ...], tuple[Check, ...]]:
    """The commit's tree, its receipts, and the checks that have none."""
    tree = project.hub.tree_of(commit)
    with context.store.read() as tx:
        have = receipts.for_tree(tx, project.id, tree)
    return tree, have, missing((want.check for want in wanted), tree, have)


def confirm(
    context: Context, project: ProjectContext, tested: CheckedCommit, cancel: CancelToken | None = None
) -> CheckedCommit:
    """Run each red check once more, with no other check of the project in parallel, before a change is blamed for it.

    A check that is green then is flaky, and the run after that decides. Raises Cancelled.
    """
    if tested.green:
        return tested
    tree = project.hub.tree_of(tested.commit)
    owners = {want.check.command: want.ticket for want in tested.wanted}
    failed = {receipt.command for receipt in tested.red}
    todo = list({want.check.command: want.check for want in tested.wanted if want.check.command in failed}.values())
    with context.check_slots.alone(project.id) as slot:
        again = _run_all(context, project, slot, tested.commit, tree, todo, owners, cancel or CancelToken())
    by_command = {receipt.command: receipt for receipt in (*tested.receipts, *again)}
    return _tested(tested.commit, tested.wanted, by_command)


def _tested(commit: str, wanted: Sequence[WantedCheck], by_command: Mapping[str, Receipt]) -> CheckedCommit:
    receipts_ = tuple(by_command[want.check.command] for want in wanted)
    return CheckedCommit(commit=commit, receipts=receipts_, wanted=tuple(wanted))


def _record_flaky(context: Context, red: Receipt, green: Receipt) -> None:
    data = {
        "name": green.name,
        "command": green.command,
        "tree": green.tree,
        "receipts": [red.id, green.id],
        "rule": Rule.FLAKY_BLAMES_NONE.value,
    }
    with context.store.write() as tx:
        tx.record(EventKind.FLAKY, project=green.project, ticket=green.ticket, data=data)


def try_out(
    context: Context,
    project: ProjectContext,
    commit: str,
    check: Check,
    *,
    why: str = "reversal",
    cancel: CancelToken | None = None,
) -> int | None:
    """The exit code of a check on a commit that will never land, without a receipt. None: it did not finish."""
    try:
        with tree_of(context, project, commit, cancel or CancelToken()) as ready:
            return try_in(context, project, ready, check, why=why, cancel=cancel).exit_code
    except setup.SetupFailed:
        return None


@contextmanager
def tree_of(context: Context, project: ProjectContext, commit: str, cancel: CancelToken) -> Iterator[PreparedTree]:
    """A check tree for the commit, as soon as a slot is free. Raises SetupFailed, or Cancelled."""
    slot = context.check_slots.take(project.id, project.config.landing.checks_at_once)
    try:
        with prepared(context, project, slot, commit, cancel) as ready:
            yield ready
    finally:
        context.check_slots.give_back(project.id, slot)


def try_in(
    context: Context,
    project: ProjectContext,
    ready: PreparedTree,
    check: Check,
    *,
    why: str,
    cancel: CancelToken | None = None,
) -> commands.CommandEnd:
    """Run a check in this tree, without a receipt. Raises SetupFailed."""
    place, readable = ready.show()
    return commands.run(
        context,
        project,
        name=f"{why} {check.name}",
        command=check.command,
        tree=place,
        timeout=check.timeout,
        readable=readable,
        cancel=cancel,
    )


def _run_all(
    context: Context,
    project: ProjectContext,
    slot: int,
    commit: str,
    tree: str,
    todo: Sequence[Check],
    owners: dict[str, int | None],
    cancel: CancelToken,
) -> list[Receipt]:
    cancel.raise_if_cancelled()
    try:
        with prepared(context, project, slot, commit, cancel) as ready:
            return [_decided(context, project, ready, tree, check, owners[check.command], cancel) for check in todo]
    except setup.SetupFailed as failed:
        return [_without_setup(context, project, commit, tree, check, owners[check.command], failed) for check in todo]


def _decided(
    context: Context,
    project: ProjectContext,
    ready: PreparedTree,
    tree: str,
    check: Check,
    ticket: int | None,
    cancel: CancelToken,
) -> Receipt:
    """The receipt that counts: the first green one after a red one on the same tree does not."""
    receipt = _run_one(context, project, ready, tree, check, ticket, cancel)
    if receipt.verdict is not CheckResult.GREEN:
        return receipt
    with context.store.read() as tx:
        ran = [one for one in receipts.for_tree(tx, project.id, tree) if one.command == check.command]
    if is_proven(ran):
        return receipt
    _record_flaky(context, next(one for one in reversed(ran) if one.verdict is CheckResult.RED), receipt)
    return _run_one(context, project, ready, tree, check, ticket, cancel)


def _run_one(
    context: Context,
    project: ProjectContext,
    ready: PreparedTree,
    tree: str,
    check: Check,
    ticket: int | None,
    cancel: CancelToken,
) -> Receipt:
    commit = ready.commit
    for _ in range(2):
        machine = on_machine.choose(context, project, check)
        crash.reach(Point.CHECK_BEFORE_RUN)
        if machine:
            ended = on_machine.run(context, project, check, commit, machine=machine, ticket=ticket, cancel=cancel)
        else:
            ended = _run_here(context, project, ready, check, cancel)
        if not ended.lost:
            break
    crash.reach(Point.CHECK_BEFORE_RECEIPT)
    verdict = CheckResult.BROKEN if ended.lost else CheckResult.GREEN if ended.exit_code == 0 else CheckResult.RED
    tail = ended.tail if ended.exit_code is not None else f"{ended.tail}\n[{ended.how}]"
    if check.runs:
        # Agents see receipts; the person finds the output in its file.
        tail = ""
    with context.store.write() as tx:
        receipt = receipts.add(
            tx,
            project=project.id,
            ticket=ticket,
            name=check.name,
            command=check.command,
            commit=commit,
            tree=tree,
            verdict=verdict,
            exit_code=ended.exit_code,
            duration=ended.duration,
            tail=tail,
            output=str(ended.output.relative_to(context.data.root)),
            digest=ended.digest,
            machine=machine,
            trusted="" if ticket is not None else sight.trusted_by(context, tx, project, check),
        )
    crash.reach(Point.CHECK_AFTER_RECEIPT)
    return receipt


def _run_here(
    context: Context, project: ProjectContext, ready: PreparedTree, check: Check, cancel: CancelToken
) -> commands.CommandEnd:
    place, readable = ready.show()
    return commands.run(
        context,
        project,
        name=f"check {check.name}",
        command=check.runs or check.command,
        tree=place,
        timeout=check.timeout,
        readable=(*readable, *((Path(check.folder),) if check.folder else ())),
        env={"LEGION_ACCEPTANCE": check.folder} if check.folder else None,
        offline=check.offline,
        # Downloads are setup's task. Without one a check keeps its own, unless a ticket or an acceptance brought it.
        landed=ready.is_landed and not project.config.setup.run and check in project.config.checks,
        cancel=cancel,
    )


def _without_setup(
    context: Context,
    project: ProjectContext,
    commit: str,
    tree: str,
    check: Check,
    ticket: int | None,
    failed: setup.SetupFailed,
) -> Receipt:
    """The receipt of a check that could not start. On a change that is its fault; on the target, a red baseline."""
    with context.store.write() as tx:
        return receipts.add(
            tx,
            project=project.id,
            ticket=ticket,
            name=check.name,
            command=check.command,
            commit=commit,
            tree=tree,
            verdict=CheckResult.SETUP,
            exit_code=None,
            duration=0.0,
            tail=failed.message,
            output="",
            digest="",
        )
