"""The first act of the demo: a goal in one sentence becomes a plan, which is checked and approved."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from legion.cli.base.output import count
from legion.client.legion import Legion
from legion.demo.events import EventFollower
from legion.demo.story import StoryLine
from legion.wire.errors import LegionError
from legion.wire.plans import ApprovePlan, NewPlan, PlanPage

GOAL = "Invoices know tax and discounts, print and export."
SCRIPT = "goal"
"""The script of the planner's model: the goal names none, so it is the default one."""
_PLANNING = ("planning", "asking")


def plan_goal(
    legion: Callable[[], Legion],
    cwd: str,
    events: EventFollower,
    tell: Callable[[StoryLine], None],
    tick: float,
    over: Callable[[], bool],
) -> tuple[int, Mapping[str, int]]:
    """The number of the plan, and its tickets by key. Raises LegionError where no plan without findings comes."""
    tell(StoryLine(f"legion plan '{GOAL}'", "working"))
    page = legion().plan(NewPlan(cwd=cwd, goal=GOAL))
    number = int(page.plan.id.removeprefix("P"))
    while page.plan.state in _PLANNING and not over():
        for _ in events.wait(tick):
            pass
        page = legion().plan_page(number)
    if page.plan.state != "ready" or page.findings:
        why = page.findings[0].text if page.findings else page.plan.reason or page.plan.state
        raise LegionError(f"The plan could not be approved: {why}")
    for line in _shown(page):
        tell(line)
    approved = legion().approve_plan(number, ApprovePlan())
    tell(
        StoryLine(f"legion approve {approved.plan}: the plan becomes {count(len(approved.tickets), 'ticket')}", "done")
    )
    return number, approved.tickets


def _shown(page: PlanPage) -> list[StoryLine]:
    return [
        StoryLine(f"a planner that may only read proposes {count(len(page.tickets), 'ticket')}", "done"),
        StoryLine("order, files, proofs, overlaps and size are checked: no finding", "done"),
        *(StoryLine(f"  {one.key}: {one.title}{_after(one.after)}") for one in page.tickets),
        StoryLine(f"the longest chain: {' -> '.join(page.chain)}"),
    ]


def _after(keys: list[str]) -> str:
    return f" (after {', '.join(keys)})" if keys else ""
