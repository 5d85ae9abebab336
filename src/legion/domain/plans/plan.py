"""A plan: proposed tickets, the rounds that led to them, and its legal moves. It acts only by a person's approval.

    planning -> ready | faulty | failed      the planner's last valid answer, checked; faulty: findings are left
    planning -> asking -> planning           questions to the person, at most one round
    planning -> written -> planning          its specification waits for the person, where that is wanted
    ready, faulty -> partly -> approved      a person approves some tickets, or all
    planning -> reached                      of a last reader: nothing of the goal is missing
    ready, faulty, partly, failed -> planning    a person sends it back, or retries
    every open state -> dropped

Its id is written P3, so that no ticket's number can be mistaken for it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from statistics import median

from legion.domain.errors import BadInput, StateConflict
from legion.domain.plans.answer import GoalPoint, PlanQuestion, said_of
from legion.domain.plans.checks import IMPOSSIBLE, OF_THE_PERSON, PlanFinding, ProofTrial
from legion.domain.plans.draft import PlanDraft, keep_approved
from legion.domain.text import count
from legion.domain.tickets import board
from legion.domain.tickets.ticket import Ticket

ROUNDS = 3
"""How often a planner gets its findings back by itself."""


class PlanState(Enum):
    PLANNING = "planning"
    """A planner works on it, or waits for a slot."""
    ASKING = "asking"
    """The planner asked the person."""
    WRITTEN = "written"
    """Its specification waits for the person: nothing is planned before a yes."""
    READY = "ready"
    """It passed all checks and waits for the person."""
    FAULTY = "faulty"
    """The rounds are over and findings are left; the person decides."""
    PARTLY = "partly"
    """Some of its tickets are approved."""
    APPROVED = "approved"
    REACHED = "reached"
    """Its last reader found that nothing of the goal is missing."""
    FAILED = "failed"
    """There is no usable plan."""
    DROPPED = "dropped"


class PlanSource(Enum):
    """What a plan was made from."""

    GOAL = "goal"
    SPLIT = "split"
    """A ticket that is too large; `about` names it."""
    EPIC = "epic"
    """An epic after something landed or failed."""
    TEMPLATE = "template"
    READ = "read"
    """An epic whose last ticket has ended: a reader holds its goal against what landed."""


class PlanAuthor(Enum):
    PLANNER = "planner"
    PERSON = "person"
    TEMPLATE = "template"


DECIDABLE = frozenset({PlanState.READY, PlanState.FAULTY, PlanState.PARTLY})
"""A person can approve tickets of it."""
_UNDECIDED = DECIDABLE | {PlanState.WRITTEN}
OPEN = _UNDECIDED | {PlanState.PLANNING, PlanState.ASKING}
OFFERS: dict[str, frozenset[PlanState]] = {
    "approve_plan": _UNDECIDED,
    "reject_plan": _UNDECIDED | {PlanState.FAILED},
    "plan_text": frozenset(PlanState),
    "save_plan": _UNDECIDED | {PlanState.FAILED},
    "retry_plan": frozenset({PlanState.FAILED}),
    "drop_plan": OPEN | {PlanState.FAILED},
}
"""The operations on a plan, by their names, and the states that allow each. `may` knows the rest."""


@dataclass(frozen=True, kw_only=True)
class GoalPlan:
    id: int
    project: int
    version: int = 1
    state: PlanState = PlanState.PLANNING
    source: PlanSource = PlanSource.GOAL
    goal: str
    epic: str = ""
    """The epic of its tickets."""
    team: str = ""
    model: str = ""
    budget: float | None = None
    """Dollars that all runs of its planner may cost."""
    may_ask: bool = False
    """Whether the planner may ask the person; false once it has asked."""
    about: int | None = None
    """The ticket that is split."""
    rounds: int = 0
    """Rounds that were recorded, of any author."""
    tries: int = 0
    """The planner's rounds since a person last asked for one."""
    draft: PlanDraft | None = None
    """The last valid one."""
    trials: Mapping[str, ProofTrial] = field(default_factory=dict)
    """By command: what its proofs said on the target."""
    points: tuple[GoalPoint, ...] = ()
    """What its reader found, point by point."""
    reads: bool = False
    """Its goal is held against what landed, once all its tickets have ended."""
    findings: tuple[PlanFinding, ...] = ()
    asked: tuple[str, ...] = ()
    """Keys of the questions that it waits for, or has asked."""
    guidance: str = ""
    """The person's words for the next round."""
    reason: str = ""
    """Why it is where it is, for people."""
    held_until: float | None = None
    """When a planner that a limit stopped may start again."""
    conversation: str = ""
    dispatcher: str = ""
    """The leader that asked for it; empty: the person."""
    spec: bool = False
    """The planner writes a specification first."""
    short: bool = False
    """That has two documents, not four."""
    depth: str = ""
    """Why a rule chose that, or no specification at all; empty: the person did."""
    stops: bool = False
    """It waits for the person when the specification is written."""
    keep_docs: bool = False
    """Its documents land in the repository with the first ticket."""
    created_at: float = 0.0
    moved_at: float = 0.0

    @property
    def name(self) -> str:
        return plan_name(self.id)

    @property
    def open(self) -> bool:
        return self.state in OPEN


def may(name: str, plan: GoalPlan) -> bool:
    """Whether an operation may be called for the plan now."""
    if plan.state not in OFFERS[name]:
        return False
    match name:
        case "approve_plan":
            return not any(one.kind in IMPOSSIBLE for one in plan.findings)
        case "reject_plan":
            return plan.source is not PlanSource.TEMPLATE
        case "plan_text":
            return plan.draft is not None or plan.state is PlanState.WRITTEN
        case _:
            return True


def offered(plan: GoalPlan) -> list[str]:
    return [name for name in OFFERS if may(name, plan)]


def split_of(ticket: Ticket, *, model: str = "", budget: float | None = None) -> GoalPlan:
    """A plan for several tickets in place of this one."""
    return GoalPlan(
        id=0,
        project=ticket.project,
        source=PlanSource.SPLIT,
        about=ticket.id,
        goal=f"{ticket.spec.title}\n\n{ticket.spec.text}".strip(),
        epic=ticket.spec.epic,
        team=ticket.spec.team,
        model=model,
        budget=budget,
    )


def plan_name(id: int) -> str:
    return f"P{id}"


def answered(
    plan: GoalPlan, draft: PlanDraft, findings: tuple[PlanFinding, ...], approved: Collection[str]
) -> GoalPlan:
    """The planner gave a valid draft: it is ready, goes back with its findings, or goes to the person."""
    _refuse(plan, (PlanState.PLANNING,), "is not being planned")
    kept = keep_approved(approved, plan.draft, draft)
    moved = replace(plan, draft=kept, findings=findings, rounds=plan.rounds + 1, tries=plan.tries + 1, held_until=None)
    if not findings:
        return settled(moved, approved, "")
    if moved.tries < ROUNDS and any(one.kind not in OF_THE_PERSON for one in findings):
        return replace(moved, reason=f"{count(len(findings), 'finding')}: it goes back to the planner")
    return settled(moved, approved, f"{count(len(findings), 'finding')} after {count(moved.tries, 'round')}")


def was_read(
    plan: GoalPlan,
    points: tuple[GoalPoint, ...],
    draft: PlanDraft | None,
    findings: tuple[PlanFinding, ...],
    approved: Collection[str],
) -> GoalPlan:
    """A reader held the goal against what landed; `draft` brings what is missing."""
    found = replace(plan, points=points)
    if draft is not None:
        moved = answered(found, draft, findings, approved)
        return moved if moved.state is PlanState.PLANNING else replace(moved, reason=said_of(points))
    _refuse(plan, (PlanState.PLANNING,), "is not being read")
    moved = replace(found, findings=findings, rounds=plan.rounds + 1, tries=plan.tries + 1, held_until=None)
    if findings and moved.tries < ROUNDS:
        return replace(moved, reason=f"{count(len(findings), 'finding')}: it goes back to the reader")
    return replace(moved, state=PlanState.FAILED if findings else PlanState.REACHED, reason=said_of(points))


def unusable(plan: GoalPlan, why: str, approved: Collection[str]) -> GoalPlan:
    """The planner's answer has no valid draft. The last valid one is kept."""
    _refuse(plan, (PlanState.PLANNING,), "is not being planned")
    moved = replace(plan, rounds=plan.rounds + 1, tries=plan.tries + 1, reason=why, held_until=None)
    if moved.tries < ROUNDS:
        return moved
    if plan.draft is None:
        return replace(moved, state=PlanState.FAILED)
    return settled(moved, approved, why)


def documented(plan: GoalPlan, conversation: str, reason: str, *, last: bool = False) -> GoalPlan:
    """A document of its specification was written; the next stage is a conversation of its own."""
    _refuse(plan, (PlanState.PLANNING,), "is not being planned")
    state = PlanState.WRITTEN if last and plan.stops else plan.state
    return replace(plan, state=state, tries=0, reason=reason, held_until=None, conversation=conversation)


def agreed(plan: GoalPlan) -> GoalPlan:
    """The person said yes to its specification."""
    _refuse(plan, (PlanState.WRITTEN,), "has no specification that waits")
    return replace(plan, state=PlanState.PLANNING, guidance="", reason="")


def asking(plan: GoalPlan, questions: tuple[PlanQuestion, ...]) -> GoalPlan:
    """The planner asks before it plans. It can do that once."""
    _refuse(plan, (PlanState.PLANNING,), "is not being planned")
    keys = tuple(f"plan:{plan.id}:{n}" for n, _ in enumerate(questions, 1))
    return replace(plan, state=PlanState.ASKING, asked=keys, may_ask=False, reason="the planner has questions")


def resumed(plan: GoalPlan) -> GoalPlan:
    """All questions are settled."""
    _refuse(plan, (PlanState.ASKING,), "has no open questions")
    return replace(plan, state=PlanState.PLANNING, reason="")


def failed(plan: GoalPlan, why: str) -> GoalPlan:
    _refuse(plan, (PlanState.PLANNING, PlanState.ASKING), "is not being planned")
    return replace(plan, state=PlanState.FAILED, reason=why, held_until=None)


def held(plan: GoalPlan, until: float, why: str) -> GoalPlan:
    """A provider's limit is no failure: the same round starts again later."""
    _refuse(plan, (PlanState.PLANNING,), "is not being planned")
    return replace(plan, held_until=until, reason=why)


def edited(plan: GoalPlan, draft: PlanDraft, findings: tuple[PlanFinding, ...], approved: Collection[str]) -> GoalPlan:
    """The person's own draft replaces the last one; also that of a failed plan."""
    _refuse(plan, DECIDABLE | {PlanState.FAILED}, "cannot be edited now")
    kept = keep_approved(approved, plan.draft, draft)
    moved = replace(plan, draft=kept, findings=findings, rounds=plan.rounds + 1)
    return settled(moved, approved, count(len(findings), "finding") if findings else "")


def rejected(plan: GoalPlan, why: str, conversation: str) -> GoalPlan:
    """Back to the planner with the person's words. What was approved stays. A specification gets another critic."""
    _refuse(plan, OFFERS["reject_plan"], "cannot be sent back now")
    moved = replace(plan, conversation=conversation) if plan.state is PlanState.WRITTEN else plan
    return replace(
        moved, state=PlanState.PLANNING, guidance=why, rounds=plan.rounds + 1, tries=0, findings=(), reason=""
    )


def retried(plan: GoalPlan, spent: float = 0.0) -> GoalPlan:
    """`spent`: dollars of its planner so far. A spent budget is given once more."""
    _refuse(plan, OFFERS["retry_plan"], "has not failed")
    budget = plan.budget
    if budget is not None and spent >= budget:
        budget += spent
    return replace(plan, state=PlanState.PLANNING, tries=0, reason="", held_until=None, budget=budget)


def dropped(plan: GoalPlan) -> GoalPlan:
    _refuse(plan, OFFERS["drop_plan"], "has ended")
    return replace(plan, state=PlanState.DROPPED, held_until=None)


def approval(plan: GoalPlan, keys: Collection[str], approved: Collection[str]) -> tuple[str, ...]:
    """The keys to dispatch now, in the draft's order; without `keys` all that are left.

    Raises StateConflict or BadInput where the plan or the choice does not allow it.
    """
    _refuse(plan, DECIDABLE, "has nothing to approve")
    assert plan.draft is not None, "a plan that can be approved has a draft"
    for key in keys:
        if key not in plan.draft.keys:
            raise BadInput(f"{plan.name} has no ticket {key[:40]!r}. Its keys: {', '.join(plan.draft.keys)}.")
        if key in approved:
            raise StateConflict(f"Ticket {key} of {plan.name} is approved already. See `legion plan show {plan.name}`.")
    wanted = tuple(key for key in plan.draft.keys if key not in approved and (not keys or key in keys))
    if not wanted:
        raise StateConflict(f"Every ticket of {plan.name} is approved already.")
    for key in wanted:
        ticket = plan.draft.ticket(key)
        missing = [one for one in ticket.before if one not in wanted and one not in approved] if ticket else []
        if missing:
            raise BadInput(
                f"Ticket {key} comes after {missing[0]}, which is not approved. "
                f"Run `legion approve {plan.name} {missing[0]} {key}`."
            )
    return wanted


_READ_AT_END = (PlanSource.GOAL, PlanSource.EPIC, PlanSource.READ)


def approved_more(plan: GoalPlan, approved: Collection[str], *, read_at_end: bool = False) -> GoalPlan:
    """Some or all tickets are dispatched; `approved` holds all of them, earlier ones too."""
    assert plan.draft is not None, "a plan that can be approved has a draft"
    whole = set(plan.draft.keys) <= set(approved)
    reads = whole and read_at_end and plan.source in _READ_AT_END
    return replace(plan, state=PlanState.APPROVED if whole else PlanState.PARTLY, reads=reads)


def settled(plan: GoalPlan, approved: Collection[str], reason: str) -> GoalPlan:
    """In the person's hands: with findings faulty, else ready, or partly approved where some tickets are."""
    assert plan.draft is not None, "only a plan with a draft goes to the person"
    if approved and not plan.findings:
        return replace(approved_more(plan, approved), reason=reason)
    return replace(plan, state=PlanState.FAULTY if plan.findings else PlanState.READY, reason=reason)


def _refuse(plan: GoalPlan, allowed: Collection[PlanState], why: str) -> None:
    if plan.state not in allowed:
        raise StateConflict(f"{plan.name} {why}: it is {plan.state.value}. See `legion plan show {plan.name}`.")


# Estimates cost and time of a draft from the landed tickets of its project; tells whether a ticket was too large.

LEAST = 3
"""Fewer landed tickets say nothing."""
LEAST_SHARE = 0.05
"""Dollars; with less a ticket may stop at its first answer."""
ROOM = 3
"""A ticket may take so many times what the usual one takes."""


@dataclass(frozen=True, kw_only=True)
class LandedTicket:
    """What one landed ticket took."""

    usd: float
    seconds: float
    """From its first start to its landing."""


@dataclass(frozen=True, kw_only=True)
class PastEstimate:
    """What was estimated for a ticket when it was approved, and what it took."""

    usd: float
    seconds: float
    took: LandedTicket


@dataclass(frozen=True, kw_only=True)
class PlanEstimate:
    """None: unknown, because too few tickets have landed."""

    usd: float | None = None
    seconds: float | None = None
    usd_each: float | None = None
    seconds_each: float | None = None
    usd_error: float | None = None
    """The median error of earlier estimates, as a share: 0.4 is 40 %."""
    seconds_error: float | None = None


def longest_chain(draft: PlanDraft) -> tuple[str, ...]:
    """Keys, first ticket first. Empty for a draft with a circle."""
    keys = draft.keys
    if _has_circle(draft):
        return ()
    cost = {n: 0.5 if one.checkpoint else 1.0 for n, one in enumerate(draft.tickets)}
    return tuple(keys[position] for position in board.critical_path(draft.edges, cost))


def estimate(
    draft: PlanDraft, landed: Sequence[LandedTicket], past: Sequence[PastEstimate], *, parallel: int
) -> PlanEstimate:
    """For the tickets that have an agent. The time is that of the longest chain, or of all tickets over `parallel`."""
    work = [one for one in draft.tickets if not one.checkpoint]
    if len(landed) < LEAST:
        return PlanEstimate()
    usd, seconds = median(one.usd for one in landed), median(one.seconds for one in landed)
    chain = [key for key in longest_chain(draft) if key in {one.key for one in work}]
    rows = max(len(chain), -(-len(work) // max(1, parallel)))
    return PlanEstimate(
        usd=usd * len(work),
        seconds=seconds * rows,
        usd_each=usd,
        seconds_each=seconds,
        usd_error=_error([(one.usd, one.took.usd) for one in past]),
        seconds_error=_error([(one.seconds, one.took.seconds) for one in past]),
    )


def budget_share(money: float, tickets: int, each: float | None) -> float:
    """What each of the tickets gets of a limited budget: room for a ticket that takes more than usual, and no more, so
    that something is left for planners and fixes. `each`: what one usually takes; None: unknown."""
    most = money / tickets / 2 if each is None else min(money / tickets, max(ROOM * each, LEAST_SHARE))
    return math.floor(100 * most) / 100


def _error(pairs: Sequence[tuple[float, float]]) -> float | None:
    shares = [abs(took - said) / said for said, took in pairs if said > 0]
    return median(shares) if shares else None


def _has_circle(draft: PlanDraft) -> bool:
    """Whether some tickets never become ready."""
    left = {position: set(before) for position, before in draft.edges.items()}
    while ready := [position for position, before in left.items() if not before]:
        for position in ready:
            del left[position]
        for before in left.values():
            before.difference_update(ready)
    return bool(left)
