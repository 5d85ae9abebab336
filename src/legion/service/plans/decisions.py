"""A person's decisions about a plan: approve tickets of it, send it back, edit it, retry it, drop it."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from legion.domain.agents.agent import Agent
from legion.domain.errors import BadInput, StateConflict
from legion.domain.plans import plan as plans
from legion.domain.plans import toml_text
from legion.domain.plans.checks import IMPOSSIBLE, findings
from legion.domain.plans.draft import keep_approved
from legion.domain.plans.plan import GoalPlan, PlanAuthor, PlanSource, PlanState
from legion.domain.plans.specification import fault, last_of
from legion.domain.questions import SettledBy
from legion.domain.runs import Run
from legion.domain.text import count
from legion.domain.tickets import board
from legion.domain.tickets.ticket import State, Stop
from legion.jobs.board import Board
from legion.jobs.context import Context
from legion.jobs.landing import target
from legion.jobs.plan import facts
from legion.jobs.supervise.usage import catch_up
from legion.jobs.trees import Trees
from legion.runner import launch
from legion.service.plans import conversion, pages
from legion.service.tickets.actions import end_runs
from legion.service.tickets.dispatch import create
from legion.service.tickets.prepare import prepare, recalled
from legion.store.board import conditions, goals, questions, tickets
from legion.store.database.transactions import ReadTransaction, Transaction
from legion.store.work import runs, usage
from legion.wire.dispatch import Dispatch, Dispatched, NewTicket
from legion.wire.plans import ApprovePlan, PlanApproved, PlanPage, PlanText, RejectPlan, SavePlan

_STOP_GRACE = 1.0
_HEAD = """\
{name}: {goal}
Edit the tickets and save; an empty file changes nothing. {approved}
Fields: key, title, text, context, plan, criteria, files, new_files, after, checkpoint, labels, lines, priority."""


@dataclass(frozen=True, kw_only=True)
class Approval:
    """The tickets that an approval dispatches. The caller may still narrow them."""

    plan: GoalPlan
    wanted: ApprovePlan
    first: Dispatched | None = None
    """The answer that the same request had before."""
    keys: Sequence[str] = ()
    approved: Mapping[str, int] = field(default_factory=dict)
    """What was approved before, by key."""
    tickets: list[NewTicket] = field(default_factory=list)


def approve(context: Trees, plan_id: int, wanted: ApprovePlan) -> PlanApproved:
    """Dispatch tickets of the plan, all or none, in the transaction that records them; or plan from what is written."""
    return _agree(context, plan_id, wanted) or carry_out(context, approval_of(context, plan_id, wanted))


def _agree(context: Board, plan_id: int, wanted: ApprovePlan) -> PlanApproved | None:
    """Yes to a specification; None for a plan that has none waiting."""
    with context.store.write() as tx:
        plan = goals.get(tx, plan_id)
        if plan.state is not PlanState.WRITTEN:
            return None
        if wanted.tickets:
            raise BadInput(
                f"{plan.name} has no tickets yet: `legion approve {plan.name}` plans from its specification."
            )
        moved = plan if wanted.dry_run else goals.save(tx, plan, plans.agreed(plan))
    message = f"{plan.name} {'would be' if wanted.dry_run else 'is'} planned from its specification."
    return PlanApproved(plan=plan.name, state=moved.state.value, tickets={}, proposed=[], dropped=[], message=message)


def approval_of(context: Trees, plan_id: int, wanted: ApprovePlan) -> Approval:
    """Raises StateConflict for a plan that cannot be approved like that."""
    with context.store.read() as tx:
        plan, approved = goals.get(tx, plan_id), goals.dispatched(tx, plan_id)
        first = recalled(tx, plan.project, wanted.request)
        inherited = _inherited(tx, plan)
    if first is not None:
        return Approval(plan=plan, wanted=wanted, first=first)
    keys = plans.approval(plan, wanted.tickets, approved)
    _refuse_findings(plan, keys, anyway=wanted.anyway)
    new = conversion.new_tickets(context.project(plan.project), plan, keys, approved, inherited)
    return Approval(plan=plan, wanted=wanted, keys=keys, approved=approved, tickets=new)


def carry_out(context: Trees, approval: Approval, by: Agent | None = None) -> PlanApproved:
    """`by`: the leader that approves."""
    plan, wanted, approved = approval.plan, approval.wanted, approval.approved
    if approval.first is not None:
        return _approved(context, plan, approval.first)
    if wanted.dry_run:
        message = f"Approval would dispatch {', '.join(approval.keys)}."
        state, new = plan.state.value, approval.tickets
        return PlanApproved(plan=plan.name, state=state, tickets={}, proposed=new, dropped=[], message=message)
    project = context.project(plan.project)
    request = Dispatch(cwd=project.record.worktrees, tickets=approval.tickets, request=wanted.request)
    prepared = prepare(context, request, by)
    ended: list[Run] = []
    dropped: list[int] = []
    with context.store.write() as tx:
        made = create(tx, prepared, conversion.drafts(plan, approval.keys))
        if made.new:
            current = goals.get(tx, plan.id)
            if current.version != plan.version:
                raise StateConflict(f"{plan.name} changed meanwhile. See `legion plan show {plan.name}`.")
            numbers = {**approved, **made.answer.keys}
            goals.dispatch(tx, plan.id, made.answer.keys, facts.estimated(project, tx, plan))
            for waiting in conversion.waiting(plan, made.answer.keys, numbers):
                conditions.add(tx, waiting)
            more = plans.approved_more(current, tuple(numbers), read_at_end=project.config.plans.read_at_end)
            moved = goals.save(tx, current, more)
            if moved.state is PlanState.APPROVED:
                dropped = _removable(tx, plan)
                for number in dropped:
                    _replace(tx, plan, number, numbers, ended)
    end_runs(context, ended)
    return replace(_approved(context, plan, made.answer), proposed=approval.tickets, dropped=dropped)


def _approved(context: Board, plan: GoalPlan, made: Dispatched) -> PlanApproved:
    with context.store.read() as tx:
        now = goals.get(tx, plan.id).state
    rest = "" if now is PlanState.APPROVED else f"; `legion approve {plan.name}` approves the rest"
    many = count(len(made.keys), "ticket is", "tickets are")
    return PlanApproved(
        plan=plan.name,
        state=now.value,
        tickets=made.keys,
        proposed=[],
        dropped=[],
        message=f"{many} dispatched{rest}.",
        notes=made.notes,
    )


def _inherited(tx: ReadTransaction, plan: GoalPlan) -> tuple[int, ...]:
    """What a split ticket comes after: the first of those in its place come after it, too."""
    if plan.source is not PlanSource.SPLIT or plan.about is None:
        return ()
    after = tickets.get(tx, plan.about).spec.after
    known = tickets.states_of(tx, after)
    return tuple(number for number in after if number in known)


def reject(context: Trees, plan_id: int, wanted: RejectPlan) -> PlanPage:
    """Back to the planner with the person's words; what was approved stays."""
    why = wanted.why.strip()
    if not why:
        raise BadInput("A rejection needs a reason, so that the next plan is better: add it.")
    with context.store.write() as tx:
        plan = goals.get(tx, plan_id)
        if plan.source is PlanSource.TEMPLATE and not plans.may("reject_plan", plan):
            raise StateConflict(f"No planner made {plan.name}. Run `legion plan edit {plan.name}`.")
        moved = goals.save(tx, plan, plans.rejected(plan, why, str(uuid.uuid4())))
        if plan.state is PlanState.WRITTEN:
            goals.criticise_again(tx, plan_id)
        goals.record_round(tx, moved, PlanAuthor.PERSON, usable=False, message=why)
    return pages.page(context, plan_id)


def retry(context: Trees, plan_id: int) -> PlanPage:
    catch_up(context)
    with context.store.write() as tx:
        plan = goals.get(tx, plan_id)
        goals.save(tx, plan, plans.retried(plan, usage.of_plan(tx, plan_id).usd))
    return pages.page(context, plan_id)


def drop(context: Trees, plan_id: int) -> PlanPage:
    """End a plan. Its approved tickets stay; a planner at work is stopped."""
    with context.store.write() as tx:
        plan = goals.get(tx, plan_id)
        goals.save(tx, plan, plans.dropped(plan))
        for question in questions.open_ones(tx):
            if question.key in plan.asked:
                questions.settle(tx, question.id, question.fallback, "the plan was dropped", by=SettledBy.END)
        active = [run for run in runs.active(tx) if run.plan == plan_id]
    for run in active:
        launch.stop(context.data.runs / run.name, grace=_STOP_GRACE)
    return pages.page(context, plan_id)


def text(context: Board, plan_id: int) -> PlanText:
    """The draft as TOML; a specification that waits as it is."""
    with context.store.read() as tx:
        plan, approved = goals.get(tx, plan_id), goals.dispatched(tx, plan_id)
        written = goals.documents_of(tx, plan_id)
    if plan.state is PlanState.WRITTEN:
        return PlanText(plan=plan.name, version=plan.version, text=f"{written[last_of(written)]}\n")
    if plan.draft is None or not plans.may("plan_text", plan):
        raise StateConflict(f"{plan.name} has no draft yet: it is {plan.state.value}.")
    kept = f"Approved tickets stay as they are: {', '.join(approved)}." if approved else ""
    head = _HEAD.format(name=plan.name, goal=" ".join(plan.goal.split())[:100], approved=kept)
    return PlanText(plan=plan.name, version=plan.version, text=toml_text.write(plan.draft, head))


def save(context: Context, plan_id: int, wanted: SavePlan) -> PlanPage:
    """The person's own draft replaces the last one, and is checked like it; or their own specification."""
    with context.store.read() as tx:
        plan = goals.get(tx, plan_id)
    if plan.state is PlanState.WRITTEN:
        return _rewrite(context, plan_id, wanted)
    draft = toml_text.read(wanted.text, plan.name)
    project = context.project(plan.project)
    target.fetch(context, project)
    check = facts.checker(context, project, plan, draft)
    with context.store.write() as tx:
        plan = _unchanged(tx, plan_id, wanted)
        known = check(tx, plan)
        whole = keep_approved(known.approved, plan.draft, draft)
        found = findings(whole, known)
        moved = goals.save(tx, plan, replace(plans.edited(plan, whole, found, known.approved), trials=known.trials))
        goals.record_round(tx, moved, PlanAuthor.PERSON, findings=found)
    return pages.page(context, plan_id)


def _unchanged(tx: ReadTransaction, plan_id: int, wanted: SavePlan) -> GoalPlan:
    plan = goals.get(tx, plan_id)
    if plan.version != wanted.version:
        raise StateConflict(f"{plan.name} changed while you edited it. Run `legion plan edit {plan.name}` again.")
    return plan


def _rewrite(context: Trees, plan_id: int, wanted: SavePlan) -> PlanPage:
    if wrong := fault(wanted.text):
        raise BadInput(f"The specification stays as it is: {wrong}.")
    with context.store.write() as tx:
        plan = _unchanged(tx, plan_id, wanted)
        moved = goals.save(tx, plan, replace(plan, rounds=plan.rounds + 1))
        goals.rewrite(tx, plan_id, wanted.text.strip())
        goals.record_round(tx, moved, PlanAuthor.PERSON, usable=False, message="the specification was edited")
    return pages.page(context, plan_id)


def _refuse_findings(plan: GoalPlan, keys: Collection[str], *, anyway: bool) -> None:
    impossible = [one for one in plan.findings if one.kind in IMPOSSIBLE]
    if impossible:
        raise StateConflict(f"{plan.name} cannot be dispatched: {impossible[0].text}. Edit it or send it back.")
    concerned = [one for one in plan.findings if one.ticket in (*keys, "")]
    if concerned and not anyway:
        many = count(len(concerned), "finding")
        raise StateConflict(
            f"{plan.name} has {many}, first: {concerned[0].text}. Edit it, send it back, or approve it with --anyway."
        )


def _removable(tx: Transaction, plan: GoalPlan) -> list[int]:
    """Of the tickets that it replaces, those that have not landed and belong to it. The last one first."""
    wanted = conversion.replaced(plan)
    mine = {plan.about} if plan.source is PlanSource.SPLIT else None
    found = tickets.get_many(tx, sorted(tickets.states_of(tx, wanted)))
    kept = [one for one in found if one.project == plan.project and one.state not in (State.DONE, State.LANDING)]
    chosen = {one.id for one in kept if (one.spec.epic == plan.epic if mine is None else one.id in mine)}
    order = board.topological({one.id: [other for other in one.spec.after if other in chosen] for one in kept})
    return [number for number in reversed(order) if number in chosen]


def _replace(tx: Transaction, plan: GoalPlan, number: int, made: Mapping[str, int], ended: list[Run]) -> None:
    """Remove a ticket; what came after it comes after the last tickets of the plan, where it was split."""
    ends: list[int] = []
    new = set(made.values())
    if plan.source is PlanSource.SPLIT and plan.draft is not None:
        before = {key for one in plan.draft.tickets for key in one.after}
        ends = [made[key] for key in plan.draft.keys if key not in before]
    for later in tickets.dependants(tx, number):
        # A new ticket that came after the one that it replaces would otherwise wait for itself.
        tickets.replace_after(tx, later, number, [] if later in new else ends)
    ticket = tickets.get(tx, number)
    if not ticket.ended:
        ended += runs.active_of(tx, number)
        tickets.move(tx, number, Stop())
    tickets.drop(tx, number)
