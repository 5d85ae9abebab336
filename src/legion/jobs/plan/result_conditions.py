"""Starts drafts whose condition on a result holds, and last readers of goals, when the tickets before have ended.

A decision is one transaction: the ticket moves, and its condition is removed. Killed before it, the next look decides
the same again.
"""

from __future__ import annotations

from legion.domain.agents.teams import RolePart
from legion.domain.plans.conditions import SeenResult, StepResult, holds, reported
from legion.domain.plans.plan import GoalPlan, PlanSource, PlanState
from legion.domain.rules import Rule
from legion.domain.tickets.ticket import State, Stop, Submit
from legion.jobs.agent.resume_prompt import final_message
from legion.jobs.board import Board
from legion.jobs.trees import Trees
from legion.runner.spec import UnreadableSpec
from legion.store.board import conditions, goals, projects, tickets
from legion.store.board.conditions import WaitingTicket
from legion.store.database.transactions import ReadTransaction, Transaction
from legion.store.work import runs
from legion.system import crash
from legion.system.crash import Point


class ResultConditions:
    def __init__(self, context: Board) -> None:
        self._context = context

    def look(self) -> None:
        """One look at all drafts with a condition. Costs one query where there are none."""
        with self._context.store.read() as tx:
            waiting = conditions.all(tx)
        for one in waiting:
            decided = holds(one.result, one.word, one.negated, self._seen(one))
            if decided is not None:
                with self._context.store.write() as tx:
                    _settle(tx, one, decided)

    def _seen(self, waiting: WaitingTicket) -> list[SeenResult]:
        with self._context.store.read() as tx:
            states = tickets.states_of(tx, waiting.about)
        words = waiting.result is StepResult.WORD
        return [
            SeenResult(
                state=states.get(number), word=self._word(number) if words and states.get(number) is State.DONE else ""
            )
            for number in waiting.about
        ]

    def _word(self, ticket: int) -> str:
        """What the agent of a landed ticket reported last."""
        with self._context.store.read() as tx:
            mine = [run for run in runs.of_ticket(tx, ticket) if run.part is RolePart.BUILD]
        try:
            return reported(final_message(self._context.data.runs / mine[-1].name)) if mine else ""
        except UnreadableSpec:
            return ""


def _settle(tx: Transaction, waiting: WaitingTicket, decided: bool) -> None:
    number = waiting.ticket
    if waiting not in conditions.all(tx):
        return
    conditions.remove(tx, number)
    if tickets.states_of(tx, [number]).get(number) is not State.DRAFT:
        # A person stopped or dropped it meanwhile.
        return
    if decided:
        tickets.move(tx, number, Submit(), rule=Rule.RESULT_DECIDES)
        return
    # What comes after it comes after what it came after.
    after = tickets.get(tx, number).spec.after
    for later in tickets.dependants(tx, number):
        tickets.replace_after(tx, later, number, list(after))
    tickets.move(tx, number, Stop(f"not needed: {_shown(waiting)} does not hold"), rule=Rule.RESULT_DECIDES)


def _shown(waiting: WaitingTicket) -> str:
    about = ", ".join(map(str, waiting.about))
    what = f"reported {waiting.word!r}" if waiting.result is StepResult.WORD else waiting.result.value
    return f"{'not ' if waiting.negated else ''}{what} (ticket {about})"


_IS_OVER = frozenset({State.DONE, State.STOPPED})
"""A person decides about a ticket that failed."""


def read_what_is_over(context: Trees) -> None:
    """One look at all goals that are to be read. Costs one query where there are none."""
    with context.store.read() as tx:
        over = _over(tx)
    for project, plans in over.items():
        wanted = context.project(project).config.plans.read_at_end
        crash.reach(Point.READER_BEFORE_STORE)
        with context.store.write() as tx:
            # A person may have sent a ticket back meanwhile.
            if _over(tx).get(project) != plans:
                continue
            goals.was_taken_up(tx, plans)
            if wanted and (new := _reading(tx, project, plans[0])) is not None:
                goals.create(tx, new)
        crash.reach(Point.READER_AFTER_STORE)


def _over(tx: ReadTransaction) -> dict[int, list[GoalPlan]]:
    """By the project whose target has what landed: the goals of one epic that has ended there."""
    of_epics: dict[tuple[int, str], list[GoalPlan]] = {}
    for plan in goals.unread(tx):
        of_epics.setdefault((plan.project, plan.epic or plan.name), []).append(plan)
    found: dict[int, list[GoalPlan]] = {}
    for (home, epic), plans in of_epics.items():
        states = tickets.states_of(tx, [one for plan in plans for one in goals.dispatched(tx, plan.id).values()])
        if not states or not _IS_OVER.issuperset(states.values()):
            continue
        branch = tickets.get(tx, max(states)).project
        whole = [one.state for one in tickets.of_epic(tx, branch, epic)]
        if _IS_OVER.issuperset(whole) and State.DONE in whole:
            found.setdefault(home if projects.get(tx, branch).removed_at is not None else branch, plans)
    return found


def _reading(tx: ReadTransaction, project: int, plan: GoalPlan) -> GoalPlan | None:
    """None for an epic that has no goal."""
    asked = [one for one in goals.of_epic(tx, plan.project, plan.epic or plan.name) if one.source is PlanSource.GOAL]
    approved = [one for one in asked if one.state in (PlanState.APPROVED, PlanState.PARTLY)]
    if not approved:
        return None
    return GoalPlan(
        id=0,
        project=project,
        source=PlanSource.READ,
        goal="\n\n".join(one.goal.strip() for one in approved),
        epic=plan.epic or plan.name,
        team=approved[0].team,
        budget=approved[0].budget,
        dispatcher=approved[0].dispatcher,
    )
