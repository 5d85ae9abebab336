"""Adds the ticket that lands a specification's documents to a plan."""

from __future__ import annotations

from legion.domain.plans.draft import PlanDraft
from legion.domain.plans.plan import GoalPlan
from legion.domain.plans.specification import kept_files, with_documents
from legion.jobs.board import Board
from legion.jobs.trees import ProjectContext
from legion.store.board import specifications


def added(context: Board, project: ProjectContext, plan: GoalPlan, draft: PlanDraft) -> PlanDraft:
    with context.store.read() as tx:
        written = specifications.of_plan(tx, plan.id)
    return with_documents(draft, plan.goal, kept_files(project.config.plans.docs, plan.name, written))
