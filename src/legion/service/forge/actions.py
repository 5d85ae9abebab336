"""The actions on the board that a forge may cause, by the use cases of tickets and plans, with the person's rights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from legion.domain.errors import NotFound, StateConflict
from legion.domain.forge.issues import CommentAnswer, ForgeIssue, ticket_title
from legion.domain.forge.texts import answered_question, choice_and_reason
from legion.domain.tickets.ticket import State, Stop
from legion.jobs.trees import Trees
from legion.service import questions
from legion.service.plans import create
from legion.service.tickets import actions, dispatch, epic_change, review
from legion.service.tickets.prepare import prepare
from legion.store.board import projects, tickets
from legion.store.board.questions import open_ones
from legion.store.database.transactions import Transaction
from legion.store.work import runs
from legion.wire.dispatch import TICKET_FIELDS, Dispatch, NewTicket
from legion.wire.mail import AnswerQuestion
from legion.wire.plans import NewPlan, SplitTicket

_OPTIONS = ("model", "team", "context", "plan_first", "ask", "epic", "after")
_LABELS = 20


class ForgeActions:
    def __init__(self, context: Trees) -> None:
        self._context = context

    def dispatch(
        self,
        project: int,
        issue: ForgeIssue,
        text: str,
        options: Mapping[str, object],
        *,
        request: str,
        also: Callable[[Transaction, int], None],
    ) -> int:
        labels = [name for name in issue.labels if TICKET_FIELDS["labels"].fault([name]) is None]
        given: dict[str, Any] = {name: options[name] for name in _OPTIONS if options.get(name)}
        new = NewTicket(title=ticket_title(issue), text=text, labels=labels[:_LABELS], **given)
        prepared = prepare(self._context, Dispatch(cwd=self._root(project), tickets=[new], request=request))
        with self._context.store.write() as tx:
            made = dispatch.create(tx, prepared)
            if made.new:
                also(tx, made.answer.ids[0])
        return made.answer.ids[0]

    def stop(self, ticket: int, why: str) -> None:
        with self._context.store.write() as tx:
            found = actions.get_ticket(tx, ticket)
            if found.ended:
                return
            actions.refuse_mid_landing(tx, found)
            tickets.move(tx, ticket, Stop(why))
            active = runs.active_of(tx, ticket)
        actions.end_runs(self._context, active)

    def retry(self, ticket: int, text: str) -> None:
        """Another attempt, wherever the ticket is: ended, or with a change that a person does not want as it is."""
        with self._context.store.read() as tx:
            state = actions.get_ticket(tx, ticket).state
        if state in (State.FAILED, State.STOPPED):
            actions.retry(self._context, ticket, text)
        elif state is State.DONE:
            raise StateConflict(f"Ticket {ticket} has landed: open another issue.")
        else:
            review.bounce(self._context, ticket, text)

    def split(self, ticket: int) -> None:
        create.split(self._context, ticket, SplitTicket())

    def answer(self, ticket: int, given: CommentAnswer) -> None:
        with self._context.store.read() as tx:
            found = answered_question(open_ones(tx, ticket=ticket), given)
        if found is None:
            raise NotFound(f"No open question of ticket {ticket} can be answered by this comment: give its number.")
        choice, why = choice_and_reason(found, given.text)
        questions.answer(self._context, found.id, AnswerQuestion(choice=choice, why=why))

    def land_epics(self, project: int) -> None:
        epic_change.land_ready(self._context, project)

    def plan(self, project: int, goal: str, *, request: str) -> None:
        create.plan(self._context, NewPlan(cwd=self._root(project), goal=goal[: create.LONGEST_GOAL], request=request))

    def _root(self, project: int) -> str:
        with self._context.store.read() as tx:
            return projects.get(tx, project).root
