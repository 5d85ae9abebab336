"""Makes tickets or a plan of issues that a person names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from legion.domain.errors import BadInput, LegionError, NotFound
from legion.domain.forge.connections import ClaimStage
from legion.domain.forge.issues import claim_branch, claim_prefix, in_order, ticket_text
from legion.git.hub import remote
from legion.jobs.forge import claims
from legion.jobs.forge.clients import Visit
from legion.jobs.forge.sync import visiting
from legion.jobs.trees import Trees
from legion.service.forge.actions import ForgeActions
from legion.service.forge.connections import connection_of
from legion.service.plans import create
from legion.wire.forge import Assigned, AssignedLine, AssignIssues, PlanIssues
from legion.wire.plans import PlanPage

_MOST = 50


def assign(context: Trees, wanted: AssignIssues) -> Assigned:
    if bool(wanted.milestone) == bool(wanted.issues) or len(wanted.issues) > _MOST:
        raise BadInput(f"Name 1 to {_MOST} issues by their numbers, or a milestone.")
    one = connection_of(context, wanted.cwd)
    with visiting(context, one.project, ForgeActions(context)) as visit:
        if wanted.milestone:
            return Assigned(issues=_assign_milestone(visit, wanted))
        return Assigned(issues=[_assign(visit, number, wanted) for number in dict.fromkeys(wanted.issues)])


def _assign_milestone(visit: Visit, wanted: AssignIssues) -> list[AssignedLine]:
    """Each issue comes after the tickets of those that its text names."""
    found = visit.forge.issues_of_milestone(wanted.milestone)
    if found is None:
        raise NotFound(f"{visit.connection.name} has no milestone {wanted.milestone[:80]!r}.")
    if len(found) > _MOST:
        raise BadInput(f"The milestone has {len(found)} open issues: assign at most {_MOST} at once, by their numbers.")
    as_epic = replace(wanted, epic=wanted.epic or wanted.milestone)
    made: dict[int, int] = {}
    lines = []
    for issue, before in in_order(found):
        after = [made[number] for number in before if number in made]
        lines.append(_assign(visit, issue.number, as_epic, after))
        if (ticket := lines[-1].ticket) is not None:
            made[issue.number] = ticket
    return lines


def _listed(issues: Sequence[int]) -> str:
    return ", ".join(f"#{number}" for number in dict.fromkeys(issues))


def plan(context: Trees, wanted: PlanIssues) -> PlanPage:
    """One plan for all of them. Their texts are material below the person's own words."""
    if not 0 < len(wanted.issues) <= _MOST:
        raise BadInput(f"Name 1 to {_MOST} issues by their numbers.")
    one = connection_of(context, wanted.cwd)
    parts = [wanted.goal.strip() or f"Do what these issues ask for: {_listed(wanted.issues)}."]
    with visiting(context, one.project, ForgeActions(context)) as visit:
        for number in dict.fromkeys(wanted.issues):
            issue = visit.forge.issue(number)
            if issue is None:
                raise NotFound(f"There is no issue {number} in {one.name}.")
            parts.append(ticket_text(issue))
    return create.plan(context, replace(wanted, goal="\n\n".join(parts)))


def _assign(visit: Visit, number: int, wanted: AssignIssues, after: Sequence[int] = ()) -> AssignedLine:
    issue = visit.forge.issue(number)
    if issue is None or not issue.open:
        return AssignedLine(issue=number, title="", ticket=None, branch="", message="it is closed or does not exist")
    branch = claim_branch(number, issue.title)
    line = AssignedLine(issue=number, title=issue.title, ticket=None, branch=branch, message="")
    if wanted.dry_run:
        pattern = f"{claim_prefix(number)}*"
        taken = remote.tips(visit.remote.url, visit.remote.settings, pattern)
        line.message = f"claimed already, by the branch {min(taken)}" if taken else "would become a ticket"
        return line
    options = {
        "model": wanted.model,
        "team": wanted.team,
        "context": wanted.briefing,
        "plan_first": wanted.plan_first,
        "ask": wanted.ask,
        "epic": wanted.epic,
        "after": list(after),
    }
    try:
        claimed = claims.claim(visit, issue, {name: value for name, value in options.items() if value})
    except LegionError as refused:
        line.message = refused.message
        return line
    line.ticket, line.branch = claimed.ticket, claimed.branch
    taken_elsewhere = claimed.stage is ClaimStage.TAKEN
    line.message = "another branch claims it" if taken_elsewhere else f"ticket {claimed.ticket}"
    return line
