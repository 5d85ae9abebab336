"""Carries out the run of an agent where it was placed: prepared, started or adopted, waited for, and saved.

The head's own host is a machine without a network. A kind of run says what it finds and what it is asked; no other
module asks where it works.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from legion.domain.errors import LegionError
from legion.domain.runs import Outcome, Run
from legion.domain.tickets.ticket import Ticket
from legion.git.core.errors import TreeGone
from legion.jobs.agent import preparation
from legion.jobs.agent.model_access import NoModelAccess
from legion.jobs.agent.model_run import PreparedInput, RunPaths
from legion.jobs.agent.preparation import Workplace
from legion.jobs.agent.spec import NoProgram
from legion.jobs.board import Board
from legion.jobs.context import Context
from legion.jobs.filter_sandbox import NoSandbox
from legion.jobs.machine_runs import placements, remote
from legion.jobs.machines.travel import MachineJob
from legion.jobs.supervise import wait
from legion.jobs.supervise.outcome import listener, run_outcome
from legion.jobs.supervise.questions import QuestionSource
from legion.jobs.supervise.wait import CrashPoints
from legion.jobs.trees import ProjectContext
from legion.jobs.workspace.save import Saved, save
from legion.runner.journal import JournalEvent
from legion.runner.launch import EndedRun, LostRun

_TOO_LATE = "stopped before its program was started"
_TREE_GONE = "its worktree was removed from outside"
_NOT_ARRIVED = "nothing of its tree has arrived"


class NotSaved(LegionError):
    """What the run left in its tree is not there."""

    def __init__(self, note: str, message: str) -> None:
        super().__init__(message)
        self.note = note


@dataclass(frozen=True, kw_only=True)
class AgentRun:
    """One run, as its kind describes it. Each part is asked for when it is needed, and may be asked again."""

    run: Run
    place: Callable[[], Workplace]
    tree: Callable[[Workplace], Path]
    """Makes its tree on the head's own host."""
    prepared: Callable[[RunPaths | None], PreparedInput]
    """None: another machine prepares it, so nothing may name a folder of this one."""
    wanted: Callable[[], bool]
    source: QuestionSource
    launch_points: CrashPoints


@dataclass(frozen=True, kw_only=True)
class NotStarted:
    """No program was started: there is none, it has no access to a model, or the run is no longer wanted."""

    outcome: Outcome
    detail: str


@dataclass(frozen=True, kw_only=True)
class RunOutcome:
    """How a run ended."""

    outcome: Outcome
    detail: str
    ended: EndedRun | LostRun


class HostMachine(Protocol):
    """A machine that carries out runs of a project, the head's own or another."""

    def run_to_end(self, work: AgentRun, on_event: Callable[[JournalEvent], None]) -> EndedRun | LostRun | None:
        """None where no program was started, because the run is no longer wanted."""

    def why_lost(self, run: Run) -> str:
        """For people."""

    def saved(self, ticket: Ticket, run: Run) -> Saved:
        """What a ticket's run left in its tree. Raises TreeGone."""

    def put_away(self, run: Run) -> None:
        """A checkout that has served."""


def carry_out(context: Context, project: ProjectContext, work: AgentRun) -> RunOutcome | NotStarted:
    host = host_of(context, project, work.run)
    try:
        ended = host.run_to_end(work, listener(context, work.source, work.run))
    except (NoProgram, NoSandbox) as missing:
        return NotStarted(outcome=Outcome.NOT_STARTED, detail=missing.message)
    except NoModelAccess as missing:
        return NotStarted(outcome=Outcome.REFUSED, detail=missing.message)
    if ended is None:
        return NotStarted(outcome=Outcome.STOPPED, detail=_TOO_LATE)
    outcome, detail = run_outcome(ended)
    if isinstance(ended, LostRun):
        detail = host.why_lost(work.run)
    return RunOutcome(outcome=outcome, detail=detail, ended=ended)


def saved(context: Context, project: ProjectContext, ticket: Ticket, this_run: Run) -> Saved:
    """What the run left in its tree, wherever that is. Raises NotSaved."""
    try:
        return host_of(context, project, this_run).saved(ticket, this_run)
    except TreeGone as gone:
        raise NotSaved(_TREE_GONE if is_here(this_run) else _NOT_ARRIVED, gone.message) from gone


def is_here(this_run: Run) -> bool:
    """Whether it works, or worked, on the head's own host."""
    return not this_run.machine


def host_of(context: Context, project: ProjectContext, this_run: Run) -> HostMachine:
    return _OwnHost(context, project) if is_here(this_run) else _OtherMachine(context, project)


def tree_path(context: Board, project: ProjectContext, this_run: Run) -> str:
    """The path of its tree, as its journal names it; empty where that is not known."""
    return str(project.worktrees.path(this_run.seat)) if is_here(this_run) else remote.tree_of(context, this_run)


def checkout(project: ProjectContext, this_run: Run, place: Workplace) -> Path:
    """A fresh tree: what an earlier run left there does not count."""
    start = place.plant or project.hub.tree_of(place.start or place.base)
    branch = f"legion/{this_run.seat}"
    return project.worktrees.replant(this_run.seat, place.base, start, branch, attempt=this_run.id)


@dataclass(frozen=True)
class _OwnHost:
    context: Context
    project: ProjectContext

    def run_to_end(self, work: AgentRun, on_event: Callable[[JournalEvent], None]) -> EndedRun | LostRun | None:
        return wait.run_to_end(
            self.context,
            work.run,
            wanted=work.wanted,
            prepare=lambda: self._prepare(work),
            launch_points=work.launch_points,
            on_event=on_event,
        )

    def _prepare(self, work: AgentRun) -> None:
        place = work.place()
        tree = work.tree(place)
        place = replace(place, variables={**place.variables, **place.own_variables})
        preparation.prepare(self.context, self.project, work.run, place, tree, work.prepared)

    def why_lost(self, run: Run) -> str:
        return run_outcome(LostRun())[1]

    def saved(self, ticket: Ticket, run: Run) -> Saved:
        return save(self.context, self.project, ticket, run, self.project.worktrees.path(run.seat))

    def put_away(self, run: Run) -> None:
        self.project.worktrees.discard(run.seat)


@dataclass(frozen=True)
class _OtherMachine:
    context: Context
    project: ProjectContext

    def run_to_end(self, work: AgentRun, on_event: Callable[[JournalEvent], None]) -> EndedRun | LostRun | None:
        def job() -> MachineJob:
            return placements.job_of(self.context, self.project, work.run, work.place(), work.prepared(None))

        return remote.run_to_end(self.context, work.run, job=job, wanted=work.wanted, on_event=on_event)

    def why_lost(self, run: Run) -> str:
        return remote.why_lost(self.context, run)

    def saved(self, ticket: Ticket, run: Run) -> Saved:
        found = remote.saved(self.context, self.project, ticket, run)
        if found is None:
            raise TreeGone(str(self.project.worktrees.path(run.seat)))
        return found

    def put_away(self, run: Run) -> None:
        """Its machine has done it."""
