"""The rows of wire/forge_operations.py, each with its use case; `service/operations.py` adds them to the service."""

from __future__ import annotations

from legion.jobs.context import Context
from legion.service.forge import connections, issues
from legion.service.forge import pulls as pull_cases
from legion.wire.forge import (
    AddForge,
    Assigned,
    AssignIssues,
    Forges,
    ForgeTested,
    HookAddress,
    MergePulls,
    PlanIssues,
    Pulls,
    TriedByHand,
    TryIt,
)
from legion.wire.forge_operations import ForgeOperations
from legion.wire.plans import PlanPage
from legion.wire.projects import Done, Where


class ForgeRows(ForgeOperations):
    context: Context

    def forges(self) -> Forges:
        return connections.listed(self.context)

    def add_forge(self, wanted: AddForge, /) -> Done:
        return connections.add(self.context, wanted)

    def remove_forge(self, cwd: str) -> Done:
        return connections.remove(self.context, cwd)

    def try_forge(self, where: Where, /) -> ForgeTested:
        return connections.try_out(self.context, where)

    def sync_forge(self, where: Where, /) -> Done:
        return connections.sync_now(self.context, where)

    def forge_hook(self, where: Where, /) -> HookAddress:
        return connections.hook(self.context, where)

    def assign(self, wanted: AssignIssues, /) -> Assigned:
        return issues.assign(self.context, wanted)

    def plan_issues(self, wanted: PlanIssues, /) -> PlanPage:
        return issues.plan(self.context, wanted)

    def pulls(self, cwd: str) -> Pulls:
        return pull_cases.listed(self.context, cwd)

    def pull(self, id: int, /) -> Pulls:
        return pull_cases.page(self.context, id)

    def merge_pulls(self, wanted: MergePulls, /) -> Pulls:
        return pull_cases.merge(self.context, wanted)

    def tried(self, id: int, wanted: TriedByHand, /) -> TryIt:
        return pull_cases.tried(self.context, id, wanted)
