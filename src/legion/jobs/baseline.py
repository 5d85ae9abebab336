"""The project's checks on the target itself: a red baseline is said, and no ticket is blamed for it."""

from __future__ import annotations

from dataclasses import replace

from legion.domain.checks import Verdict
from legion.domain.events import Kind
from legion.domain.jobs import Claim
from legion.jobs import checking
from legion.jobs.check import told
from legion.jobs.checking import Tested
from legion.jobs.world import Workshop, World
from legion.store import jobs, projects


def baseline(world: World, claim: Claim) -> None:
    shop = world.workshop(claim.subject)
    learn(world, shop)
    with world.store.write() as tx:
        jobs.finish(tx, claim)


def learn(world: World, shop: Workshop) -> Tested:
    """Test the target as it is and remember the verdict, unless it moved on meanwhile."""
    target = shop.target
    tested = told(world, shop, checking.test(world, shop, target, checking.project_checks(shop)))
    verdict = Verdict.GREEN if tested.green else Verdict.RED
    with world.store.write() as tx:
        project = projects.get(tx, shop.project.id)
        known = project.baseline_commit == target and project.baseline_verdict is verdict
        if project.target == target and not known:
            kind = Kind.BASELINE_GREEN if tested.green else Kind.BASELINE_RED
            failed = [receipt.command for receipt in tested.red]
            projects.save(
                tx,
                replace(project, baseline_commit=target, baseline_verdict=verdict),
                kind,
                {"commit": target, "failed": failed},
            )
    return tested
