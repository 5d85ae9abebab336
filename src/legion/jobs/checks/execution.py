"""Runs checks on a commit in a check tree and stores the receipts. A check that has a receipt does not run again."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from legion.config.files.project import FILE
from legion.domain.agents.teams import RolePart
from legion.domain.checks import Check, CheckResult, Receipt, is_proven, missing
from legion.domain.errors import LegionError
from legion.domain.events import EventKind
from legion.domain.landing.queue import needed, seen_through
from legion.domain.machines.placement import Placed, RunPlace, Wanted, place
from legion.domain.rules import Rule
from legion.domain.runs import Run
from legion.drivers import registry
from legion.drivers.profile import RunInput
from legion.git.merge import partial_trees
from legion.jobs.agent.model_run import AgentProgram, PreparedInput
from legion.jobs.agent.preparation import Workplace
from legion.jobs.board import Board
from legion.jobs.checks import sight
from legion.jobs.checks.prepared_tree import PreparedTree, prepared, setup_would_read
from legion.jobs.context import Context
from legion.jobs.machine_runs import placements, remote
from legion.jobs.machines.travel import MachineJob
from legion.jobs.trees import ProjectContext, Trees
from legion.jobs.workspace import command as commands
from legion.jobs.workspace import setup, shell_variables
from legion.jobs.workspace.command import CancelToken, CommandEnd
from legion.runner.launch import LostRun
from legion.store.board import receipts
from legion.store.work import claims
from legion.system import crash, toolchain
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


def _setup_reads(project: ProjectContext, base: str, commit: str, changed: Iterable[str]) -> bool:
    """Whether [setup], which all checks share, may make something else of the commit."""
    if not project.config.setup.run:
        return False
    return not set(project.config.setup.key).isdisjoint(changed) or setup_would_read(project, base, commit)


def proofs(ticket_id: int, commands_: Sequence[str], timeout: float = Check.timeout) -> tuple[WantedCheck, ...]:
    return tuple(
        WantedCheck(
            check=Check(name=f"proof {number} of ticket {ticket_id}", command=command, timeout=timeout),
            ticket=ticket_id,
        )
        for number, command in enumerate(commands_, 1)
    )


def test(context: Context, project: ProjectContext, commit: str, wanted: Sequence[WantedCheck]) -> CheckedCommit:
    """Receipts for every wanted check on this commit: the stored ones, and new ones for the rest."""
    return test_unless_cancelled(context, project, commit, wanted, CancelToken())


def test_unless_cancelled(
    context: Context, project: ProjectContext, commit: str, wanted: Sequence[WantedCheck], cancel: CancelToken
) -> CheckedCommit:
    """The same, until the token is cancelled: then it raises Cancelled."""
    test = _CommitTest(context, project, commit, cancel)
    have, todo = test.open(wanted)
    new = test.in_slot(todo) if todo else []
    green = [receipt for receipt in have if receipt.verdict is CheckResult.GREEN]
    by_command = {receipt.command: receipt for receipt in (*green, *new)}
    return _tested(commit, wanted, by_command)


def run_again(
    context: Context, project: ProjectContext, commit: str, wanted: Sequence[WantedCheck], cancel: CancelToken
) -> CheckedCommit:
    """The same, whatever receipts there are: the person may have given the machine what was missing."""
    new = _CommitTest(context, project, commit, cancel, since=context.clock()).in_slot(wanted)
    return _tested(commit, wanted, {receipt.command: receipt for receipt in new})


def has_receipts(context: Context, project: ProjectContext, commit: str, wanted: Sequence[WantedCheck]) -> bool:
    """Whether every wanted check has a receipt already, so that a test runs nothing."""
    return not _CommitTest(context, project, commit, CancelToken()).open(wanted)[1]


def confirm(
    context: Context, project: ProjectContext, tested: CheckedCommit, cancel: CancelToken | None = None
) -> CheckedCommit:
    """Run each red check once more, with no other check of the project in parallel, before a change is blamed for it.

    A check that is green then is flaky, and the run after that decides. Raises Cancelled.
    """
    if tested.green:
        return tested
    failed = {receipt.command for receipt in tested.red}
    todo = {want.check.command: want for want in tested.wanted if want.check.command in failed}
    with context.check_slots.alone(project.id) as slot:
        again = _CommitTest(context, project, tested.commit, cancel or CancelToken()).run(slot, list(todo.values()))
    by_command = {receipt.command: receipt for receipt in (*tested.receipts, *again)}
    return _tested(tested.commit, tested.wanted, by_command)


def _tested(commit: str, wanted: Sequence[WantedCheck], by_command: Mapping[str, Receipt]) -> CheckedCommit:
    receipts_ = tuple(by_command[want.check.command] for want in wanted)
    return CheckedCommit(commit=commit, receipts=receipts_, wanted=tuple(wanted))


def _record_flaky(context: Board, red: Receipt, green: Receipt) -> None:
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


@dataclass(frozen=True)
class _CommitTest:
    """A test of one commit: runs checks in a slot, and stores their receipts."""

    context: Context
    project: ProjectContext
    commit: str
    cancel: CancelToken
    since: float = 0.0
    """A check that was red before, and is green now, is not flaky: the machine may have changed."""

    @cached_property
    def tree(self) -> str:
        return self.project.hub.tree_of(self.commit)

    def open(self, wanted: Sequence[WantedCheck]) -> tuple[tuple[Receipt, ...], list[WantedCheck]]:
        """The receipts of the commit's tree, and the checks that have none."""
        with self.context.store.read() as tx:
            have = receipts.for_tree(tx, self.project.id, self.tree)
        by_command = {want.check.command: want for want in wanted}
        return have, [by_command[check.command] for check in missing((one.check for one in wanted), self.tree, have)]

    def in_slot(self, todo: Sequence[WantedCheck]) -> list[Receipt]:
        slots, project = self.context.check_slots, self.project
        slot = slots.take(project.id, project.config.landing.checks_at_once)
        try:
            return self.run(slot, todo)
        finally:
            slots.give_back(project.id, slot)

    def run(self, slot: int, todo: Sequence[WantedCheck]) -> list[Receipt]:
        self.cancel.raise_if_cancelled()
        try:
            with prepared(self.context, self.project, slot, self.commit, self.cancel) as ready:
                return [self._decided(ready, want) for want in todo]
        except setup.SetupFailed as failed:
            # On a change that is its fault; on the target, a red baseline.
            return [self._kept(want, CheckResult.SETUP, tail=failed.message) for want in todo]

    def _decided(self, ready: PreparedTree, want: WantedCheck) -> Receipt:
        """The receipt that counts: the first green one after a red one on the same tree does not."""
        receipt = self._run_one(ready, want)
        if receipt.verdict is not CheckResult.GREEN:
            return receipt
        with self.context.store.read() as tx:
            of_tree = receipts.for_tree(tx, self.project.id, self.tree)
        ran = [one for one in of_tree if one.command == want.check.command]
        if is_proven(ran):
            return receipt
        red = next(one for one in reversed(ran) if one.verdict is CheckResult.RED)
        shell = shell_variables.changed_at(self.context, Path(self.project.record.common_dir))
        if red.made_at > max(self.since, shell):
            _record_flaky(self.context, red, receipt)
        return self._run_one(ready, want)

    def _run_one(self, ready: PreparedTree, want: WantedCheck) -> Receipt:
        context, project, check = self.context, self.project, want.check
        for _ in range(2):
            machine = choose(context, project, check)
            crash.reach(Point.CHECK_BEFORE_RUN)
            if machine:
                ended = run(
                    context, project, check, self.commit, machine=machine, ticket=want.ticket, cancel=self.cancel
                )
            else:
                ended = _run_here(context, project, ready, check, self.cancel)
            if not ended.lost:
                break
        crash.reach(Point.CHECK_BEFORE_RECEIPT)
        verdict = CheckResult.BROKEN if ended.lost else CheckResult.GREEN if ended.exit_code == 0 else CheckResult.RED
        receipt = self._kept(want, verdict, ended, machine=machine, tail=_tail(check, ended))
        crash.reach(Point.CHECK_AFTER_RECEIPT)
        return receipt

    def _kept(
        self,
        want: WantedCheck,
        verdict: CheckResult,
        ended: commands.CommandEnd | None = None,
        *,
        tail: str,
        machine: str = "",
    ) -> Receipt:
        """The receipt, stored. A check that could not start has no end."""
        of_project = want.ticket is None and ended is not None
        with self.context.store.write() as tx:
            return receipts.add(
                tx,
                project=self.project.id,
                ticket=want.ticket,
                name=want.check.name,
                command=want.check.command,
                commit=self.commit,
                tree=self.tree,
                verdict=verdict,
                exit_code=None if ended is None else ended.exit_code,
                duration=0.0 if ended is None else ended.duration,
                tail=tail,
                output="" if ended is None else str(ended.output.relative_to(self.context.data.root)),
                digest="" if ended is None else ended.digest,
                machine=machine,
                trusted=sight.trusted_by(self.context, tx, self.project, want.check) if of_project else "",
            )


def _tail(check: Check, ended: commands.CommandEnd) -> str:
    """What of the output is in the receipt. Agents see receipts; the person finds a held-out one in its file."""
    if check.runs:
        return ""
    return ended.tail if ended.exit_code is not None else f"{ended.tail}\n[{ended.how}]"


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


# Runs a check on a machine: one with the labels that the check asks for, and with the toolchain that it needs.

_QUEUED = 1000
"""Checks that may wait for one machine: they need no free slot at once."""
_NEVER_TAKEN = "no machine has taken it"


class NoMachineForCheck(LegionError):
    """The job backs off and tries again; no ticket is blamed."""


def choose(context: Context, project: ProjectContext, check: Check) -> str:
    """The machine for it; empty: the head. Raises NoMachineForCheck where no place fits now."""
    if not check.on:
        return ""
    wanted = Wanted(
        project=project.id, labels=frozenset(check.on), toolchain=check.toolchain or toolchain.fingerprint()
    )
    with context.store.read() as tx:
        at = {(claim.kind, claim.subject): claim.machine for claim in claims.active(tx)}
        there = placements.places(context, tx, at, context.clock())
    found = place(wanted, [_with_room(one) for one in there])
    if not isinstance(found, Placed):
        raise NoMachineForCheck(f"The check {check.name} does not run: {found.why}.")
    return "" if found.machine == context.machine else found.machine


def _with_room(one: RunPlace) -> RunPlace:
    own = toolchain.fingerprint() if one.head else one.toolchain
    return replace(one, slots=one.slots + _QUEUED, toolchain=own)


def run(
    context: Context,
    project: ProjectContext,
    check: Check,
    commit: str,
    *,
    machine: str,
    ticket: int | None,
    cancel: CancelToken,
) -> CommandEnd:
    """Raises Cancelled. A machine that was lost meanwhile proves nothing: the end is `lost`."""
    with context.store.write() as tx:
        number = tx.next("run")
    this_run = Run(
        id=number,
        project=project.id,
        ticket=ticket or 0,
        role=f"check-{number}",
        part=RolePart.READ,
        started_at=context.clock(),
        machine=machine,
    )
    folder = context.data.runs / this_run.name
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    began = time.monotonic()
    with cancel.running(folder):
        ended = remote.run_to_end(
            context,
            this_run,
            job=lambda: _job(context, project, this_run, check, commit),
            wanted=lambda: not cancel.cancelled,
            on_event=lambda _: None,
        )
    end = commands.end_of(folder, ended or LostRun(), time.monotonic() - began)
    if not end.lost:
        return end
    why = remote.why_lost(context, this_run) if ended is not None else _NEVER_TAKEN
    failed_setup = remote.setup_failed(context, this_run)
    return replace(end, lost=not failed_setup, how=why, tail=f"{end.tail}\n{why}" if failed_setup else end.tail)


def _job(context: Trees, project: ProjectContext, this_run: Run, check: Check, commit: str) -> MachineJob:
    driver = registry.PROFILES[registry.COMMAND]
    name = f"check {check.name}"
    chosen = AgentProgram(driver=driver, argv=("sh", "-c", check.command), timeout=check.timeout)
    variables = {"LEGION_CHECK": name}
    place = Workplace(program=chosen, title=name, base=commit, has_environment=False, variables=variables)
    asked = PreparedInput(program=chosen, input=RunInput(prompt=""))
    return placements.job_of(context, project, this_run, place, asked)
