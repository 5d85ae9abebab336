"""Chooses the reviewers of a change and their models: those of its team, and the one that the project's policy adds."""

from __future__ import annotations

from legion.domain.agents.teams import REVIEWER, TeamStage
from legion.domain.review.policy import ChangeScope, risks
from legion.domain.review.protected_files import stopped_by
from legion.domain.tickets.evidence import unproven
from legion.domain.tickets.spec import ReviewPolicy
from legion.domain.tickets.ticket import AskReview, Change, Prove, Ticket
from legion.jobs.agent import teams
from legion.jobs.attempts import escalation
from legion.jobs.board import Board
from legion.jobs.checks import approvals
from legion.jobs.trees import ProjectContext


def stage(context: Board, project: ProjectContext, ticket: Ticket, key: str) -> TeamStage:
    """The reviewer with that key: of the ticket's team, else the default one."""
    found = teams.of_ticket(context, ticket).stage(key)
    return found if found is not None else teams.reviewer(context, project)


def rounds(context: Board, project: ProjectContext, ticket: Ticket) -> int:
    """How often reviewers may send it back before a person is asked."""
    own = teams.of_ticket(context, ticket)
    return own.rounds if own.readers else project.config.review.rounds


def model(context: Board, ticket: Ticket, reader: TeamStage) -> str:
    """The reviewer's own, else the person's choice, else the strongest that did not write the change."""
    chosen = reader.role.model or context.user.reviewer.model
    if chosen:
        return chosen
    wrote = escalation.model(context, ticket).casefold()
    others = [name for name in context.user.models.escalation if not wrote or name.casefold() not in wrote]
    return others[-1] if others else ""


def next_step(context: Board, project: ProjectContext, ticket: Ticket, change: Change) -> Prove | AskReview:
    """The next step of a change whose proofs are green."""
    if ticket.spec.undoes is not None:
        # A revert of a landed change is exactly what a person asked for.
        return Prove()
    own = tuple(one.key for one in teams.of_ticket(context, ticket).readers)
    why = _why(project, ticket, change)
    added = (REVIEWER,) if why and REVIEWER not in own else ()
    reasons = "; ".join(filter(None, ("its team reads every change" if own else "", why)))
    if own or (added and project.config.review.required):
        return AskReview((*own, *added), reasons)
    return Prove(added, reasons)


def change_scope(project: ProjectContext, ticket: Ticket, change: Change) -> ChangeScope:
    """The facts of the change that the review policy uses."""
    files = project.hub.changed_files(change.base, change.commit)
    checks = [check.command for check in project.config.checks]
    return ChangeScope(
        paths=tuple(file.path for file in files),
        lines=sum((file.additions or 0) + (file.deletions or 0) for file in files),
        protected=stopped_by(
            [approvals.touched(file) for file in files], project.config.protected.paths, (), checks, ticket.spec.proofs
        ),
        weakened=tuple(dict.fromkeys(one.path for one in approvals.find_weakenings(project, ticket, change))),
        unproven=unproven(ticket.spec.criteria, ticket.spec.bound),
        attempts=ticket.attempt - ticket.spared,
        unread=tuple(file.path for file in files if file.additions is None),
    )


def _why(project: ProjectContext, ticket: Ticket, change: Change) -> str:
    """Why the policy adds the default reviewer; empty if it does not."""
    policy = ticket.spec.review or project.config.review.policy
    if policy is ReviewPolicy.OFF:
        return ""
    if policy is ReviewPolicy.ALWAYS:
        return "every change is read" if ticket.spec.review is None else "the ticket asks for it"
    return "; ".join(risks(change_scope(project, ticket, change), project.config.review.paths))
