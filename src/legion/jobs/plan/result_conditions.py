"""Submits draft tickets whose condition on a result holds, and stops those that are not needed.

A decision is one transaction: the ticket moves, and its condition is removed. Killed before it, the next look decides
the same again.
"""

from __future__ import annotations

from legion.domain.agents.teams import RolePart
from legion.domain.plans.conditions import SeenResult, StepResult, holds, reported
from legion.domain.rules import Rule
from legion.domain.tickets.ticket import State, Stop, Submit
from legion.jobs.agent.final_message import final_message
from legion.jobs.board import Board
from legion.runner.spec import UnreadableSpec
from legion.store.board import conditions, tickets
from legion.store.board.conditions import WaitingTicket
from legion.store.database.transactions import Transaction
from legion.store.work import runs


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
