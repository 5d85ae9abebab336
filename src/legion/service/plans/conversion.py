"""Makes requests for tickets of a plan's proposals. A plan gives no right that its person did not see."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from legion.domain.plans.draft import PlanTicket
from legion.domain.plans.plan import GoalPlan, PlanSource
from legion.domain.review.path_patterns import matches, meet
from legion.domain.review.protected_files import PROTECTED, TouchedFile, deciding, stopped_by
from legion.domain.tickets.evidence import SEPARATOR
from legion.jobs.plan import facts
from legion.jobs.trees import ProjectContext
from legion.store.board.conditions import WaitingTicket
from legion.wire.dispatch import NewTicket


def new_tickets(
    project: ProjectContext,
    plan: GoalPlan,
    keys: Collection[str],
    approved: Mapping[str, int],
    inherited: Sequence[int] = (),
) -> list[NewTicket]:
    """Those of the keys, as `legion dispatch` takes them; what was approved earlier is named by its number.

    `inherited`: tickets of the board that those without `after` come after.
    """
    assert plan.draft is not None, "only a plan with a draft has tickets"
    chosen = [one for one in plan.draft.tickets if one.key in keys]
    made = [_new(project, plan, one, approved) for one in chosen]
    return [one if one.after or one.after_keys else replace(one, after=list(inherited)) for one in made]


def protected(project: ProjectContext, ticket: PlanTicket) -> tuple[str, ...]:
    """Expected files that are protected. Naming them in a plan does not open them: the change still needs a yes."""
    config = project.config
    guarded = (*PROTECTED, *config.protected.paths, *deciding(check.command for check in config.checks))
    folded = [glob.casefold() for glob in guarded]
    there = facts.all_files(project.hub.path, project.target)

    def covers_some(path: str) -> bool:
        """A pattern or a folder covers what is below it; any other path is one file."""
        folder = f"{path.removesuffix('/')}/"
        if any(letter in path for letter in "*?") or any(file.startswith(folder) for file in there):
            return meet((path.casefold(),), folded)
        return matches(path, guarded, any_case=True)

    return tuple(path for path in ticket.touches if covers_some(path))


def asks_for(project: ProjectContext, ticket: PlanTicket) -> tuple[str, ...]:
    """Expected files that need a person's yes, if tests lose something. A new test lands without one."""
    config = project.config
    new = [TouchedFile(path=path, only_adds=True, new=True) for path in ticket.new_files]
    stopped = stopped_by(new, config.protected.paths, (), [check.command for check in config.checks])
    return tuple(path for path in protected(project, ticket) if path not in ticket.new_files or path in stopped)


def replaced(plan: GoalPlan) -> tuple[int, ...]:
    """Tickets of the board that the plan takes the place of, once all of it is approved."""
    if plan.source is PlanSource.SPLIT and plan.about is not None:
        return (plan.about,)
    return plan.draft.drops if plan.source is PlanSource.EPIC and plan.draft is not None else ()


def drafts(plan: GoalPlan, keys: Collection[str]) -> dict[str, str]:
    """By key: why a ticket stays a draft at first."""
    chosen = [one for one in plan.draft.tickets if one.key in keys] if plan.draft else []
    return {one.key: f"it starts only if {one.when}" for one in chosen if one.when is not None}


def waiting(plan: GoalPlan, made: Collection[str], numbers: Mapping[str, int]) -> list[WaitingTicket]:
    """The drafts among the new tickets. `numbers`: of all tickets of the plan, by key."""
    chosen = [one for one in plan.draft.tickets if one.key in made] if plan.draft else []
    return [
        WaitingTicket(
            ticket=numbers[one.key],
            about=tuple(numbers[key] for key in one.when.steps),
            result=one.when.result,
            word=one.when.word,
            negated=one.when.negated,
        )
        for one in chosen
        if one.when is not None
    ]


def ticket_text(plan: GoalPlan, ticket: PlanTicket) -> str:
    """Its text, and the words that its agent can report, where another ticket waits for one."""
    others = plan.draft.tickets if plan.draft else ()
    asked = [one.when for one in others if one.when and one.when.word and ticket.key in one.when.steps]
    if not asked:
        return ticket.text
    words = ", ".join(dict.fromkeys(one.word for one in asked))
    ask = f"End your last message with a line `RESULT: ` and one word. These words decide what follows: {words}."
    return f"{ticket.text}\n\n{ask}".strip()


def _new(project: ProjectContext, plan: GoalPlan, ticket: PlanTicket, approved: Mapping[str, int]) -> NewTicket:
    closed = protected(project, ticket)
    return NewTicket(
        key=ticket.key,
        title=ticket.title,
        text=ticket_text(plan, ticket),
        context=ticket.context,
        plan=ticket.plan,
        criteria="\n".join(f"- {one.text}" for one in ticket.criteria),
        # By number: the text of a criterion may occur twice.
        prove=[f"{n}{SEPARATOR}{one.proof}" for n, one in enumerate(ticket.criteria, 1) if one.proof],
        after=[*ticket.after_tickets, *(approved[key] for key in ticket.after if key in approved)],
        after_keys=[key for key in ticket.after if key not in approved],
        files=[path for path in ticket.touches if path not in closed],
        checkpoint=ticket.checkpoint,
        epic=plan.epic or plan.name,
        priority=ticket.priority,
        team="" if ticket.checkpoint else plan.team,
        labels=list(ticket.labels),
    )
