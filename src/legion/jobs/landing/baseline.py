"""The baseline job: runs the project's checks on the target itself. No ticket is blamed for a red baseline."""

from __future__ import annotations

from legion.domain.scheduling.decide import Claim
from legion.jobs.checks import execution, red_checks
from legion.jobs.checks.execution import CheckedCommit
from legion.jobs.checks.job import confirmed
from legion.jobs.context import Context
from legion.jobs.trees import ProjectContext
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
    with context.store.write() as tx:
        red_checks.remember(tx, project.id, target, tested.red)
    return tested
