"""Rows and worktree of a job on this machine: what the steps of a run read of its project, its ticket and itself."""

from __future__ import annotations

from pathlib import Path

from legion.domain.projects import ConfigOrigin, Project
from legion.domain.tickets.spec import TicketSpec
from legion.domain.tickets.ticket import Ticket
from legion.jobs.board import Board
from legion.jobs.machines.travel import MachineJob
from legion.jobs.trees import ProjectContext, Trees
from legion.jobs.workspace.save import branch_name
from legion.store.board import projects, tickets
from legion.store.work import machines
from legion.system import files


def write_rows(context: Trees, job: MachineJob) -> ProjectContext:
    record = _record(context, job)
    with context.store.write() as tx:
        machines.put_project(tx, record)
        # The head sends jobs only of what the person trusts there.
        projects.trust(tx, record.id, record.config_hash)
        if job.run.ticket is not None:
            tickets.mirror(tx, ticket(job))
        machines.put_run(tx, job.run)
    return context.project_of(record)


def project(context: Trees, job: MachineJob) -> ProjectContext:
    return context.project_of(_record(context, job))


def ticket(job: MachineJob) -> Ticket:
    return Ticket(
        id=job.run.ticket or 0,
        project=job.project.id,
        spec=TicketSpec(title=job.title, text=""),
        attempt=job.run.attempt,
        base=job.base,
        plant=job.plant,
    )


def worktree(project: ProjectContext, job: MachineJob) -> Path:
    """The one of the run before, where that was here; else a new one with the files that it left."""
    seat, branch = job.run.seat, branch_name(job.run.ticket or 0)
    last = project.folder / "worktrees" / f"{seat}.run"
    before = last.read_text() if last.exists() else ""
    here = before in (job.previous, job.run.name) and before != "" and job.plant is None
    exists = project.worktrees.path(seat).exists()
    if (here and exists) or (job.plant is None and job.start is None and not exists):
        tree = project.worktrees.acquire(seat, job.base, branch)
    else:
        start = job.plant or project.hub.tree_of(job.start or job.base)
        tree = project.worktrees.replant(seat, job.base, start, branch, attempt=job.run.id)
    # An empty file means another run, whose worktree is replaced.
    files.write_atomic(last, job.run.name, durable=False)
    return tree


def checkout(project: ProjectContext, job: MachineJob) -> Path:
    """A fresh one: what an earlier run left there does not count."""
    seat = job.run.seat
    start = job.plant or project.hub.tree_of(job.start or job.base)
    return project.worktrees.replant(seat, job.base, start, f"legion/{seat}", attempt=job.run.id)


def _record(context: Board, job: MachineJob) -> Project:
    """The project as the head has it, with this machine's own folders."""
    folder = context.data.project(job.project.id)
    place = context.data.root / "worktrees" / str(job.project.id)
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    return Project(
        id=job.project.id,
        name=job.project.name,
        root=str(place),
        common_dir=str(folder / "hub.git"),
        branch=job.project.branch,
        worktrees=str(place),
        config_text=job.project.config_text,
        config_hash=job.project.config_hash,
        config_origin=ConfigOrigin.TARGET,
        target=job.target,
    )
