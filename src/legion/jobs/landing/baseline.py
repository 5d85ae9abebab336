"""The baseline job: runs the project's checks on the target itself. No ticket is blamed for a red baseline."""

from __future__ import annotations

from dataclasses import replace

from legion.domain.checks import CheckResult
from legion.domain.events import EventKind
from legion.domain.scheduling.decide import Claim
from legion.jobs.checks import execution
from legion.jobs.checks.execution import CheckedCommit
from legion.jobs.checks.job import confirmed
from legion.jobs.context import Context
from legion.jobs.trees import ProjectContext
from legion.store.board import projects
from legion.store.work import claims


def baseline(context: Context, claim: Claim) -> None:
    project = context.project(claim.subject)
    learn(context, project)
    with context.store.write() as tx:
        claims.finish(tx, claim)


def learn(context: Context, project: ProjectContext) -> CheckedCommit:
    """Test the target and store the result, unless it moved meanwhile."""
    target = project.target
    tested = confirmed(context, project, execution.test(context, project, target, execution.project_checks(project)))
    verdict = CheckResult.GREEN if tested.green else CheckResult.RED
    with context.store.write() as tx:
        record = projects.get(tx, project.id)
        known = record.baseline_commit == target and record.baseline_verdict is verdict
        if record.target == target and not known:
            kind = EventKind.BASELINE_GREEN if tested.green else EventKind.BASELINE_RED
            failed = [receipt.command for receipt in tested.red]
            projects.save(
                tx,
                replace(record, baseline_commit=target, baseline_verdict=verdict),
                kind,
                {"commit": target, "failed": failed},
            )
    return tested
