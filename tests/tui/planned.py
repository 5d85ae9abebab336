"""A plan of two tickets that waits for the person, as the daemon answers."""

from __future__ import annotations

from legion.domain.plans.draft import PlanDraft
from legion.domain.plans.plan import GoalPlan, PlanState, offered
from legion.wire.mail import Inbox, WaitingLine
from legion.wire.plans import (
    PlanApproved,
    PlanCriterionLine,
    PlanEstimateLine,
    PlanFindingLine,
    PlanLine,
    PlanList,
    PlanPage,
    PlanText,
    PlanTicketLine,
)


def line(state: str = "ready", number: int = 2) -> PlanLine:
    return PlanLine(
        id=f"P{number}", project="shop", goal="People can log in", state=state, source="goal", epic="login", tickets=2,
        approved=0, findings=1, rounds=1, reason="no model" if state == "failed" else "", created_at=1.0, moved_at=2.0,
        offers=offered(GoalPlan(id=number, project=1, goal="", state=PlanState(state), draft=PlanDraft(tickets=()))),
    )  # fmt: skip


def ticket(key: str, title: str, *after: str) -> PlanTicketLine:
    return PlanTicketLine(
        key=key, title=title, text="Make it so.", context="", plan="",
        criteria=[PlanCriterionLine(text="it works", proof="make test")], files=["app.py"], new_files=[],
        after=list(after), checkpoint=False, labels=[], lines=20,
    )  # fmt: skip


def page(state: str = "ready") -> PlanPage:
    return PlanPage(
        plan=line(state), summary="Two steps.", risks="none known",
        tickets=[ticket("a", "Tables"), ticket("b", "A page", "a")],
        chain=["a", "b"], findings=[PlanFindingLine(kind="size", ticket="b", text="is large")], rounds=[],
        estimate=PlanEstimateLine(usd=1.5, seconds=600.0, usd_error=None, seconds_error=None), questions=[],
    )  # fmt: skip


def waits(state: str) -> WaitingLine:
    return WaitingLine(
        kind="plan",
        id=2,
        project="shop",
        root="/shop",
        title="People can log in.",
        words="2 tickets to approve",
        since=0.0,
        holds_up=2,
        facts={"findings": "b is large"},
        offers=["approve_plan", "reject_plan"] if state == "ready" else ["retry_plan", "drop_plan"],
    )


def answers(state: str = "ready") -> dict[str, object]:
    approved = PlanApproved(
        plan="P2", state="approved", tickets={"a": 1}, proposed=[], dropped=[], message="Dispatched."
    )
    return {
        "plans": PlanList(plans=[line("approved", 1), line(state)]),
        "approve_plan": approved,
        "inbox": Inbox(questions=[], waiting=[waits(state)]),
        "plan_text": PlanText(plan="P2", version=1, text="key = 1\n"),
        **dict.fromkeys(("plan_page", "reject_plan", "drop_plan", "retry_plan", "save_plan", "plan"), page(state)),
    }
