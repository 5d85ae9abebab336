# mypy: disable-error-code="empty-body"
"""The rows of the table of operations about plans, epics, templates and memories; `operations` explains them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from legion.wire.table import Folder, MemoryId, OpenTo, PlanId, Table, TicketId, operation

if TYPE_CHECKING:
    from legion import wire


class PlanOperations(Table):
    """Rows of the table."""

    # Plans of goals. Of agents, only a leader uses them; it approves where the person's settings say so.

    @operation(
        "POST",
        "/v1/plans",
        open_to=OpenTo.ACTS | OpenTo.AGENTS,
        plain="cwd goal budget questions epic spec request",
        created=True,
    )
    def plan(self, wanted: wire.plans.NewPlan, /) -> wire.plans.PlanPage:
        """Have a planner propose tickets for a goal"""

    @operation("GET", "/v1/plans", open_to=OpenTo.LOOKS | OpenTo.AGENTS)
    def plans(self, cwd: Folder, all: bool = False) -> wire.plans.PlanList:
        """The plans of the project"""

    @operation("GET", "/v1/plans/{id}", open_to=OpenTo.LOOKS | OpenTo.AGENTS)
    def plan_page(self, id: PlanId, /) -> wire.plans.PlanPage:
        """A plan with its tickets, findings, rounds and estimate"""

    @operation("POST", "/v1/plans/{id}/approve", open_to=OpenTo.ACTS | OpenTo.AGENTS, plain="tickets dry_run request")
    def approve_plan(self, id: PlanId, wanted: wire.plans.ApprovePlan, /) -> wire.plans.PlanApproved:
        """Dispatch tickets of a plan, all or none"""

    @operation("POST", "/v1/plans/{id}/reject", open_to=OpenTo.ACTS | OpenTo.AGENTS, plain="why")
    def reject_plan(self, id: PlanId, wanted: wire.plans.RejectPlan, /) -> wire.plans.PlanPage:
        """Send a plan back to its planner; what was approved stays"""

    @operation("POST", "/v1/plans/{id}/retry", open_to=OpenTo.ACTS)
    def retry_plan(self, id: PlanId, /) -> wire.plans.PlanPage:
        """Start the planner of a failed plan again"""

    @operation("POST", "/v1/plans/{id}/drop", open_to=OpenTo.ACTS)
    def drop_plan(self, id: PlanId, /) -> wire.plans.PlanPage:
        """End a plan; its approved tickets stay"""

    @operation("GET", "/v1/plans/{id}/text", open_to=OpenTo.LOOKS)
    def plan_text(self, id: PlanId, /) -> wire.plans.PlanText:
        """A plan as TOML, to edit it"""

    @operation("POST", "/v1/plans/{id}/text", open_to=OpenTo.BROWSER)
    def save_plan(self, id: PlanId, wanted: wire.plans.SavePlan, /) -> wire.plans.PlanPage:
        """Replace the draft of a plan; an invalid text is refused with its line"""

    @operation("POST", "/v1/tickets/{id}/split", open_to=OpenTo.ACTS, plain="budget", created=True)
    def split(self, id: TicketId, wanted: wire.plans.SplitTicket, /) -> wire.plans.PlanPage:
        """Plan several tickets in place of one"""

    @operation("GET", "/v1/epics/page", open_to=OpenTo.LOOKS)
    def epic(self, cwd: Folder, name: str) -> wire.plans.EpicPage:
        """An epic: its tickets, progress, money and plans"""

    @operation("POST", "/v1/epics/budget", open_to=OpenTo.BROWSER)
    def epic_budget(self, wanted: wire.plans.EpicBudget, /) -> wire.plans.EpicPage:
        """Limit what an epic may cost in all"""

    @operation("POST", "/v1/epics/replan", open_to=OpenTo.ACTS, plain="cwd epic why budget", created=True)
    def replan(self, wanted: wire.plans.ReplanEpic, /) -> wire.plans.PlanPage:
        """Plan what is left of an epic; only what changes is proposed"""

    @operation("POST", "/v1/epics/stop", open_to=OpenTo.ACTS, plain="cwd epic")
    def stop_epic(self, wanted: wire.plans.StopEpic, /) -> wire.tickets.Acted:
        """Stop every ticket of an epic that has not ended"""

    # Templates of plans

    @operation("GET", "/v1/templates", open_to=OpenTo.LOOKS)
    def templates(self, cwd: Folder) -> wire.templates.TemplateList:
        """All templates, and where each is defined"""

    @operation("GET", "/v1/templates/page", open_to=OpenTo.LOOKS)
    def template(self, cwd: Folder, name: str) -> wire.templates.TemplatePage:
        """A template with its variables and its text"""

    @operation("POST", "/v1/templates/run", open_to=OpenTo.BROWSER, created=True)
    def run_template(self, wanted: wire.templates.RunTemplate, /) -> wire.templates.ExpandedTemplate:
        """Make a plan of a template, or only show it"""

    @operation("GET", "/v1/templates/from", open_to=OpenTo.LOOKS)
    def template_from(self, cwd: Folder, epic: str) -> wire.templates.TemplateText:
        """A template made of the tickets of an epic"""

    # Memories

    @operation("POST", "/v1/memories", open_to=OpenTo.ACTS, plain="cwd text files labels ticket", created=True)
    def remember(self, wanted: wire.memories.Remember, /) -> wire.memories.Memories:
        """Remember something that agents of the project should know"""

    @operation("GET", "/v1/memories", open_to=OpenTo.LOOKS)
    def memories(self, cwd: Folder) -> wire.memories.Memories:
        """What agents of the project should know"""

    @operation("POST", "/v1/memories/{id}/forget", open_to=OpenTo.ACTS, plain="cwd")
    def forget(self, id: MemoryId, wanted: wire.memories.Forget, /) -> wire.projects.Done:
        """Forget a memory"""
