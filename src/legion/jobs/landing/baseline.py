"""The baseline job: runs the project's checks on the target itself. No ticket is blamed for a red baseline."""

from __future__ import annotations

from dataclasses import replace

from legion.domain.checks import CheckResult
from legion.domain.events import EventKind
from legion.domain.scheduling.claims import Claim
from legion.jobs.checks import execution
from legion.jobs.checks.execution import CheckedCommit
from legion.jobs.checks.job import confirmed
from legion.jobs.context import Context, ProjectContext
from legion.store.board import projects
from legion.store.work import claims


def baseline(context: Context, claim: Claim) -> None:
    project_context = context.project_context(claim.subject)
    learn(context, project_context)
    with context.store.write() as tx:
        claims.finish(tx, claim)


def learn(context: Context, project_context: ProjectContext) -> CheckedCommit:
    """Test the target and store the result, unless it moved meanwhile."""
    target = project_context.target
    tested = confirmed(
        context,
        project_context,
        execution.test(context, project_context, target, execution.project_checks(project_context)),
    )
    verdict = CheckResult.GREEN if tested.green else CheckResult.RED
    with context.store.write() as tx:
        project = projects.get(tx, project_context.project.id)
        known = project.baseline_commit == target and project.baseline_verdict is verdict
        if project.target == target and not known:
            kind = EventKind.BASELINE_GREEN if tested.green else EventKind.BASELINE_RED
            failed = [receipt.command for receipt in tested.red]
            projects.save(
                tx,
                replace(project, baseline_commit=target, baseline_verdict=verdict),
                kind,
                {"commit": target, "failed": failed},
            )
    return tested
