"""The inbox: all that waits for a person, with what it takes to decide it; and the effects of an answer."""

from __future__ import annotations

from collections.abc import Iterable

from legion.config.files import permission_rules
from legion.domain.agents.agent import ROOT
from legion.domain.errors import BadInput, StateConflict
from legion.domain.failure_causes import reason
from legion.domain.plans.answer import OTHER
from legion.domain.plans.plan import GoalPlan, PlanState, may
from legion.domain.questions import (
    ALWAYS,
    APPROVE,
    BACK,
    BIND,
    FIX,
    LAND,
    LEAVE,
    MORE,
    NEVER,
    NO,
    ONCE,
    PROJECT,
    RELEASE,
    RETRY,
    TRUST,
    YES,
    OpenTickets,
    Question,
    QuestionKind,
    SettledBy,
    Waiting,
    WaitingKind,
    chosen,
    in_order,
)
from legion.domain.text import count
from legion.domain.tickets import offers
from legion.domain.tickets.ladder import has_attempts, tries_of
from legion.domain.tickets.ticket import State, Ticket
from legion.jobs.board import Board
from legion.jobs.checks import red_checks
from legion.jobs.plan import facts
from legion.jobs.supervise import usage
from legion.jobs.supervise.questions import grant, permit, settle, settle_overdue
from legion.jobs.trees import Trees
from legion.service.agents import hire, mail, plan_approval
from legion.service.agents.mail import GO_ON
from legion.service.projects import trials
from legion.service.projects.collect import ahead
from legion.service.projects.trust import unreadable_settings
from legion.service.shared.fragments import lasting, shaped
from legion.service.tickets import actions, session_rebase
from legion.store.board import goals, projects, questions, tickets
from legion.store.database.transactions import ReadTransaction, Transaction
from legion.store.staff import agents
from legion.wire.agents import PlanVerdict
from legion.wire.mail import Answered, AnswerQuestion, Inbox, QuestionLine, WaitingLine

_GONE = "its agent had ended"
_MOST_FAILED = 50
_OUTPUT_LINES = 8
_FOR_ALL = (QuestionKind.CHECKS, QuestionKind.BRANCH, QuestionKind.BUDGET)


def inbox(context: Trees) -> Inbox:
    settle_overdue(context)
    with context.store.read() as tx:
        return _Inbox(context, tx).page()


class _Inbox:
    def __init__(self, context: Trees, tx: ReadTransaction) -> None:
        self._context = context
        self._tx = tx
        self._projects = {one.id: one for one in projects.all(tx)}
        self._asked = {one.id: one for one in questions.open_ones(tx)}
        self._plans = {one.id: one for one in goals.undecided(tx, failed=True) if one.project in self._projects}
        asking = {one.ticket for one in self._asked.values()}
        failed = tickets.recent(tx, None, limit=_MOST_FAILED, state=State.FAILED)
        self._failed = {one.id: one for one in failed if one.id not in asking}
        self._ahead = {one.id: ahead(context, one) for one in self._projects.values()}

    def page(self) -> Inbox:
        live, now = tickets.live(self._tx), self._context.clock()
        open_ones = OpenTickets(
            projects={one.id: one.project for one in live}, after={one.id: one.spec.after for one in live}
        )
        found = [
            *map(_of_question, self._asked.values()),
            *map(_of_plan, self._plans.values()),
            *(
                Waiting(kind=WaitingKind.FAILED, id=id, project=one.project, ticket=id, since=one.moved_at)
                for id, one in self._failed.items()
            ),
            *(
                Waiting(kind=WaitingKind.COLLECT, id=id, project=id, since=now)
                for id, many in self._ahead.items()
                if many
            ),
        ]
        shown = question_lines(self._tx, self._asked.values())
        titles = {one.id: one.title for one in shown}
        ordered = in_order(found, open_ones, now)
        return Inbox(questions=shown, waiting=[self._line(one, many, titles) for one, many in ordered])

    def _line(self, one: Waiting, holds_up: int, titles: dict[int, str]) -> WaitingLine:
        project = self._projects.get(one.project)
        title, words, known, able = self._described(one, titles)
        return WaitingLine(
            kind=one.kind.value,
            id=0 if one.kind is WaitingKind.COLLECT else one.id,
            project=project.name if project else "",
            root=project.root if project else "",
            ticket=one.ticket,
            title=title,
            words=words,
            since=one.since,
            holds_up=holds_up,
            facts=known,
            offers=able,
        )

    def _described(self, one: Waiting, titles: dict[int, str]) -> tuple[str, str, dict[str, str], list[str]]:
        match one.kind:
            case WaitingKind.QUESTION:
                return titles[one.id], self._asked[one.id].words, {}, []
            case WaitingKind.PLAN:
                return self._plan(self._plans[one.id])
            case WaitingKind.FAILED:
                ticket = self._failed[one.id]
                able = [name for name in ("retry", "drop") if offers.may(name, ticket)]
                return ticket.spec.title, ticket.reason, self._failure(ticket), able
            case WaitingKind.COLLECT:
                branch = self._projects[one.id].branch
                words = f"{count(self._ahead[one.id], 'landed commit')} to bring into {branch}"
                return branch, words, {}, ["collect"]

    def _plan(self, plan: GoalPlan) -> tuple[str, str, dict[str, str], list[str]]:
        able = [name for name in ("approve_plan", "retry_plan", "reject_plan", "drop_plan") if may(name, plan)]
        if plan.state is PlanState.FAILED:
            return plan.goal, plan.reason, {}, able
        if plan.state is PlanState.WRITTEN or plan.draft is None:
            return plan.goal, "its specification waits for you", {}, able
        known = {}
        record = self._projects[plan.project]
        if not unreadable_settings(record):
            price = facts.estimated(self._context.project_of(record), self._tx, plan)
            known["price"] = "not known" if price.usd is None else f"about ${price.usd:.2f}"
            known["time"] = "not known" if price.seconds is None else f"about {lasting(price.seconds)}"
        known["tickets"] = "; ".join(one.title for one in plan.draft.tickets)
        if plan.findings:
            known["findings"] = "; ".join(one.text for one in plan.findings)
        return plan.goal, f"{count(len(plan.draft.tickets), 'ticket')} to approve", known, able

    def _failure(self, ticket: Ticket) -> dict[str, str]:
        """What was tried, and the end of what its last red check said."""
        known = {"tried": tries_of(ticket)}
        last = red_checks.last_of(self._tx, ticket.id)
        if last is not None:
            known["failed"] = f"{last.label}: {reason(last.tail, last.exit_code)}"
            if not last.held_out:
                known["output"] = "\n".join(last.tail.strip().splitlines()[-_OUTPUT_LINES:])
        return known


def _of_question(one: Question) -> Waiting:
    return Waiting(
        kind=WaitingKind.QUESTION,
        id=one.id,
        project=one.project,
        ticket=one.ticket,
        is_for_all=one.ticket is None and not one.agent and one.kind in _FOR_ALL,
        since=one.asked_at,
        deadline=one.deadline,
    )


def _of_plan(one: GoalPlan) -> Waiting:
    brings = len(one.draft.tickets) if one.draft else 1
    return Waiting(kind=WaitingKind.PLAN, id=one.id, project=one.project, brings=brings, since=one.moved_at)


def question_lines(tx: ReadTransaction, waiting: Iterable[Question]) -> list[QuestionLine]:
    shown = tuple(waiting)
    on_board = tickets.states_of(tx, {one.ticket for one in shown if one.ticket is not None})
    titles = {ticket.id: ticket.spec.title for ticket in tickets.get_many(tx, on_board)}
    names = {project.id: project.name for project in projects.all(tx)}
    people = agents.names(tx) if any(one.agent for one in shown) else {}
    return [
        shaped(
            QuestionLine,
            one,
            project=names.get(one.project, ""),
            title=titles.get(one.ticket or 0, ""),
            name=people.get(one.agent, ""),
            default=one.fallback,
        )
        for one in shown
    ]


def answer(context: Trees, question_id: int, given: AnswerQuestion) -> Answered:
    """Settle a question. The first of three counts: a person here, the run's own journal, or the deadline."""
    settle_overdue(context)
    with context.store.read() as tx:
        question = questions.get(tx, question_id)
    choice = chosen(question, _choice(given))
    why = given.why.strip()
    if question.settled_at is not None:
        raise StateConflict(_settled(question))
    if question.kind in (QuestionKind.PERMISSION, QuestionKind.CHANGE) and choice != NO and why:
        raise BadInput(
            f"Only a no takes a text: run `legion answer {question.id} {choice}`, and send the text with `legion tell`."
        )
    if question.kind in (QuestionKind.REVIEW, QuestionKind.GATE) and choice != BACK and why:
        raise BadInput(f"Only `{BACK}` takes a text: run `legion answer {question.id} {choice}`.")
    if question.kind is QuestionKind.GOAL and choice == OTHER and not why:
        raise BadInput(f"Say what instead: `legion answer {question.id} {OTHER} 'text'`.")
    if question.kind is QuestionKind.PERMISSION:
        return _answer_permission(context, question, choice, why)
    if question.kind is QuestionKind.PLAN:
        about = question.agent or str(question.ticket)
        verdict = PlanVerdict(agent=about, approve=choice == APPROVE, why=why)
        message = plan_approval.decide(context, ROOT, verdict).message
        return Answered(question=question_id, ticket=question.ticket, allowed=None, choice=choice, message=message)
    if question.kind is QuestionKind.BRANCH and choice != LEAVE:
        if choice == BIND and not why:
            raise BadInput(f"Say which branch: `legion answer {question.id} {BIND} BRANCH`.")
        message = session_rebase.answer_branch(context, question.project, choice, why)
        return Answered(question=question_id, ticket=None, allowed=None, choice=choice, message=message)
    fixed = trials.fix(context, question) if question.kind is QuestionKind.CHECKS and choice == FIX else ""
    if question.kind is QuestionKind.BUDGET:
        usage.catch_up(context)
    with context.store.write() as tx:
        settled = _settle(tx, question, choice, why)
        mail.allow_conversation(tx, settled)
        hire.give_more(context, tx, settled)
        name = agents.get(tx, settled.agent).name if settled.agent else ""
    if settled.kind is QuestionKind.NETWORK and settled.choice != NEVER:
        grant(context, settled)
    message = fixed or _consequence(context, settled, name)
    return Answered(question=question_id, ticket=question.ticket, allowed=None, choice=choice, message=message)


def _choice(given: AnswerQuestion) -> str:
    if given.allowed is None:
        return given.choice
    if given.choice:
        raise BadInput("Answer with `choice` or with `allowed`, not with both.")
    return YES if given.allowed else NO


def _answer_permission(context: Board, question: Question, choice: str, why: str) -> Answered:
    allowed = choice != NO
    rule = question.facts.get("rule", "") if choice == ALWAYS else ""
    if rule:
        permission_rules.add(rule)
    # The run's journal reports the answer after this transaction and finds it settled, so this reason is kept.
    with context.store.write() as tx:
        current = questions.get(tx, question.id)
        if current.settled_at is not None:
            raise StateConflict(_settled(current))
        reached = permit(context, question, allowed=allowed, why=why)
        allowed, why = (allowed, why) if reached else (False, _GONE)
        by = SettledBy.PERSON if reached else SettledBy.END
        questions.settle(tx, question.id, choice if reached else NO, why, by=by)
    asker = _asker(question)
    if not reached:
        message = f"{asker} has ended and cannot receive an answer: the question counts as a no."
    elif rule:
        message = f"{asker} continues, and {rule} is allowed from now on ({permission_rules.rules_file()})."
    elif allowed:
        message = f"{asker} continues."
    else:
        message = f"{asker} gets the no, and tries another way."
    return Answered(
        question=question.id, ticket=question.ticket, allowed=allowed, choice=choice if reached else NO, message=message
    )


def _settle(tx: Transaction, question: Question, choice: str, why: str) -> Question:
    current = questions.get(tx, question.id)
    if current.settled_at is not None:
        raise StateConflict(_settled(current))
    return settle(tx, question, choice, why)


def _consequence(context: Board, settled: Question, name: str) -> str:
    """The effect of the answer, in one sentence."""
    asker = name or _asker(settled)
    match settled.kind, settled.choice:
        case (QuestionKind.BUDGET, choice) if choice == MORE and settled.ticket is not None:
            return actions.resume(context, settled.ticket).message
        case (QuestionKind.BUDGET, choice) if choice == MORE and not settled.agent:
            return f"There is ${settled.facts.get('usd', 0)} more to spend, and waiting work resumes."
        case (QuestionKind.CONFLICT, choice) if choice == RETRY and settled.ticket is not None:
            return actions.retry(context, settled.ticket, settled.why).message
        case (QuestionKind.CHANGE, choice) if choice == YES:
            return f"Ticket {settled.ticket} continues with its change."
        case (QuestionKind.CHANGE, _) if settled.ticket is not None:
            return _refused(context, settled.ticket)
        case (QuestionKind.ATTEMPTS, choice):
            return f"Ticket {settled.ticket} {'is tried again' if choice == YES else 'has failed'}."
        case (QuestionKind.CONFLICT, _) if settled.agent and settled.choice != GO_ON:
            return f"{asker} gets this answer if it tries again."
        case (QuestionKind.REVIEW | QuestionKind.GATE, choice):
            effects = {LAND: "lands as it is", BACK: "goes back to its agent, with your text"}
            return f"Ticket {settled.ticket} {effects.get(choice, 'is stopped')}."
        case (QuestionKind.CHECKS, choice) if choice == TRUST:
            return "Changes land on these checks from now on, and every receipt says that you trust them."
        case (QuestionKind.CHECKS, _):
            return "Finished tickets wait; `legion doctor --try` tries the checks again, and asks again."
        case (QuestionKind.NETWORK, choice):
            who = f"This run of {asker[:1].lower()}{asker[1:]}" if choice == ONCE else "Agents of this project"
            what = {ONCE: "may", PROJECT: "may from now on"}.get(choice, "do not, and are not asked about again, do")
            return f"{who} {what} reach {settled.facts.get('host', 'it')}."
        case (QuestionKind.IDLE, choice) if choice == RELEASE:
            return f"Ticket {settled.ticket} is back on the board."
        case (_, choice) if choice == LEAVE:
            return "It stays as it is."
        case _:
            return f"{asker} gets this answer."


def _refused(context: Board, ticket: int) -> str:
    with context.store.read() as tx:
        may_try = has_attempts(tickets.get(tx, ticket))
    if may_try:
        return f"Ticket {ticket} goes back to its agent, with your answer."
    return f"Ticket {ticket} fails, since it has no attempt left: `legion retry {ticket}` gives it one."


def _asker(question: Question) -> str:
    if question.kind is QuestionKind.GOAL:
        return f"The planner of {question.facts.get('plan', 'the goal')}"
    return f"Agent {question.agent}" if question.agent else f"The agent of ticket {question.ticket}"


def _settled(question: Question) -> str:
    why = f", {question.why}" if question.why else ""
    where = f": see `legion ticket {question.ticket}`" if question.ticket is not None else ""
    return f"Question {question.id} is already settled ({question.choice or 'without an answer'}{why}){where}."
