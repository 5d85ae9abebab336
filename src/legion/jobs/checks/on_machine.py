"""Runs a check on a machine: one with the labels that the check asks for, and with the toolchain that it needs."""

from __future__ import annotations

import time
from dataclasses import replace

from legion.domain.agents.teams import RolePart
from legion.domain.checks import Check
from legion.domain.errors import LegionError
from legion.domain.machines.placement import Placed, RunPlace, Wanted, place
from legion.domain.runs import Run
from legion.drivers import registry
from legion.drivers.profile import RunInput
from legion.jobs.agent.model_run import AgentProgram, PreparedInput
from legion.jobs.agent.preparation import Workplace
from legion.jobs.context import Context
from legion.jobs.machine_runs import placements, remote, run_places
from legion.jobs.machines.travel import MachineJob
from legion.jobs.trees import ProjectContext, Trees
from legion.jobs.workspace import command as commands
from legion.jobs.workspace.cancellation import CancelToken
from legion.jobs.workspace.command import CommandEnd
from legion.runner.launch import LostRun
from legion.store.work import claims
from legion.system import toolchain

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
        there = run_places.places(context, tx, at, context.clock())
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
