"""Tools about tickets."""

from __future__ import annotations

import secrets
import time
import uuid
from dataclasses import asdict

from legion.domain.agents.agent import ROOT
from legion.domain.errors import BadInput, Retryable, StateConflict
from legion.domain.events import EventKind
from legion.domain.questions import MOST_OPEN, Question, QuestionKind, SettledBy
from legion.domain.text import count
from legion.jobs.agent.mail_prompt import quoted
from legion.jobs.supervise.questions import settle_overdue
from legion.service.entry.agent_rights import LimitedService
from legion.service.entry.tools.call import Data, NotYet, ToolRequest
from legion.service.shared.repeats import refuse_other_operation
from legion.service.views import output
from legion.store import events
from legion.store.board import questions, tickets
from legion.store.database.transactions import Transaction
from legion.store.staff import agents
from legion.store.work import idempotency, runs
from legion.wire.agents import ClaimTicket, InterruptAgent, SubmitTicket
from legion.wire.dispatch import Dispatch, NewTicket
from legion.wire.mail import AnswerQuestion, NewMessage, QuestionLine
from legion.wire.projects import Where
from legion.wire.text import names_a_ticket
from legion.wire.ticket_pages import TicketPage
from legion.wire.tickets import Action, TicketLine

_LONGEST = 2000
_LOG_LINES = 20
_LISTED = 60
MARKS = {
    "draft": "??",
    "queued": "??",
    "working": "..",
    "checking": "..",
    "reviewing": "..",
    "landing": "..",
    "parked": "||",
    "done": "OK",
    "failed": "!!",
    "stopped": "--",
}
"""The mark of each state in the one-line board."""


def dispatch(call: ToolRequest) -> Data:
    # The tool's parameters are named like the fields, and their types were checked.
    new = NewTicket(**{**call.arguments, "budget": call.amount("budget")})
    made = call.service.dispatch(Dispatch(cwd=call.cwd, tickets=[new], request=call.request))
    return {"ticket": made.ids[0], **({"notes": made.notes} if made.notes else {})}


def check(call: ToolRequest) -> Data:
    number = call.number("ticket") or call.caller.ticket
    if number is not None:
        return _page(call.service.ticket(number))
    seen = call.service.status(call.cwd, False)
    listed = seen.tickets[-_LISTED:]
    more = len(seen.tickets) - len(listed) + seen.omitted
    return {"counts": seen.counts, "tickets": [_line(one) for one in listed], **({"not_listed": more} if more else {})}


def status(call: ToolRequest) -> Data:
    seen = call.service.status(call.cwd, False)
    board = " ".join(f"#{one.id}[{MARKS.get(one.state, '??')}]" for one in seen.tickets[-_LISTED:])
    found: Data = {"board": board or "no tickets", "counts": seen.counts}
    if seen.seat is None:
        return found
    mail = [{"from": one.sender_name, "kind": one.kind} for one in seen.seat.mail]
    reports = [{"name": one.name, "id": one.id, "doing": one.doing} for one in seen.seat.reports]
    return {"you": seen.seat.you, "name": seen.seat.name, "unread": mail, "reports": reports, **found}


def stop(call: ToolRequest) -> Data:
    what = call.text("what").strip()
    if what == "all":
        return _stop_all(call)
    if not names_a_ticket(what):
        sent = call.service.interrupt_agent(InterruptAgent(id=what, request=call.request))
        return {"stopped": sent.to, "message": sent.message}
    number = int(what.removeprefix("#"))
    if call.service.ticket(number).ticket.state == "stopped":
        # A repeated call finds its work done.
        return {"stopped": [number], "message": f"Ticket {number} is stopped."}
    return {"stopped": [number], "message": call.service.stop(number, Action()).message}


def _stop_all(call: ToolRequest) -> Data:
    """Everything that is the caller's: its tickets, and the turns of those below it."""
    if isinstance(call.service, LimitedService):
        stopped = call.service.own_tickets()
        for number in stopped:
            call.service.stop(number, Action())
    else:
        stopped = call.service.stop_all(Where(cwd=call.cwd)).tickets
    below = [one for one in call.service.agents().agents if one.working]
    turns = [one.id for one in below if one.id != call.caller.id and _commands(call, one.id)]
    for id in turns:
        call.service.interrupt_agent(InterruptAgent(id=id, request=f"{call.request}:{id}"))
    message = f"{count(len(stopped), 'ticket')} and {count(len(turns), 'turn')} are stopped."
    return {"stopped": [*stopped, *turns], "message": message}


def _commands(call: ToolRequest, id: str) -> bool:
    with call.context.store.read() as tx:
        parents = agents.parents(tx)
    while id in parents and id != call.caller.id:
        id = parents[id]
    return id == call.caller.id


def report(call: ToolRequest) -> Data:
    status, summary = call.text("status"), call.text("summary")
    caller = call.caller
    if caller.is_person:
        raise BadInput("You are the person, and agents report to you: write to an agent with legion-tell.")
    if caller.ticket is None:
        with call.context.store.read() as tx:
            parent = agents.get(tx, caller.id).parent
        text = f"Report ({status}): {summary}"
        sent = call.service.tell_agent(NewMessage(to=parent, text=text, request=call.request))
        return {"reported_to": "the person" if parent == ROOT else parent, "message": sent.message}
    with call.context.store.write() as tx:
        if call.request and (first := idempotency.recall(tx, caller.id, call.request)) is not None:
            refuse_other_operation(first, "reported")
            return {"reported": status}
        ticket = tickets.get(tx, caller.ticket)
        data = {"status": status, "summary": summary[:_LONGEST], "run": caller.run}
        tx.record(EventKind.TICKET_REPORTED, project=ticket.project, ticket=ticket.id, data=data)
        if call.request:
            idempotency.remember(tx, caller.id, call.request, {"reported": status})
    return {"reported": status, "next": "Your word is a claim: the change is judged when you end."}


def claim(call: ToolRequest) -> Data:
    submit, let_go = call.flag("submit"), call.flag("let_go")
    if submit and let_go:
        raise BadInput("Submit the ticket or release it, not both.")
    if submit or let_go:
        wanted = SubmitTicket(let_go=let_go, why=call.text("why"), request=call.request)
        held = call.service.submit(wanted)
    else:
        held = call.service.claim(ClaimTicket(ticket=call.number("ticket") or 0, request=call.request))
    return {"ticket": held.ticket, **({"title": held.title} if held.title else {}), "next": held.message}


def deps(call: ToolRequest) -> Data:
    number = call.number("ticket") or call.caller.ticket
    if number is None:
        raise BadInput("legion-deps needs 'ticket': say whose dependencies you want.")
    page = call.service.ticket(number)
    return {"ticket": number, "after": [_dependency(call, other) for other in page.ticket.after]}


def _dependency(call: ToolRequest, number: int) -> Data:
    page = call.service.ticket(number)
    with call.context.store.read() as tx:
        reports = [
            event.data["summary"] for event in events.of_ticket(tx, number) if event.kind is EventKind.TICKET_REPORTED
        ]
    return {
        **_line(page.ticket),
        "landed": page.landed,
        "changed_files": page.changed_files,
        "summary": reports[-1] if reports else page.ticket.reason,
        "log": output.end_of_log(call.context, number, _LOG_LINES),
    }


def _line(one: TicketLine) -> Data:
    facts = asdict(one)
    return {name: facts[name] for name in ("id", "title", "state", "after", "doing", "reason") if facts[name]}


def _page(page: TicketPage) -> Data:
    found: Data = {
        **_line(page.ticket),
        "attempt": f"{page.ticket.attempt} of {page.ticket.max_attempts}",
        "feedback": page.feedback[-_LONGEST:],
        "landed": page.landed,
        "changed_files": page.changed_files[:_LISTED],
        "failed_checks": [one.name for one in page.receipts if one.verdict == "red"][-5:],
        "question": page.ticket.question,
    }
    return {name: value for name, value in found.items() if value}


# The tool with which an agent asks a person, and waits for the answer.

_PATIENCE = 20.0
"""Seconds of one wait; then the caller asks again, and finds the same question."""
_LONGEST_MINUTES = 60.0
_MOST_CHOICES = 9
_LONGEST_CHOICE = 100
_LONGEST_QUESTION = 10_000
_DECIDE = "No answer came in time: decide yourself, and say in your report what you decided."


def ask(call: ToolRequest) -> Data:
    if call.caller.is_person:
        raise BadInput("You are the person, and agents ask you: see `legion inbox`.")
    with call.context.store.write() as tx:
        question = _asked(tx, call)
    deadline = time.monotonic() + _PATIENCE
    while question.settled_at is None:
        left = deadline - time.monotonic()
        if call.news.is_closed:
            raise Retryable("Legion stops now: ask the same again when it runs.")
        if left <= 0:
            raise NotYet
        with call.context.store.read() as tx:
            seen = events.last(tx)
            question = questions.get(tx, question.id)
        if question.settled_at is None:
            overdue = question.deadline - call.context.clock()
            if not call.news.wait(seen, max(0.0, min(left, overdue))) and overdue <= 0:
                settle_overdue(call.context)
    return _result(question)


def answer(call: ToolRequest) -> Data:
    number = call.number("question")
    if number is None:
        waiting = call.service.inbox().questions
        return {"questions": [_shown(one) for one in waiting]} if waiting else {"questions": [], "next": "None waits."}
    settled = call.service.answer(number, AnswerQuestion(choice=call.text("choice"), why=call.text("text")))
    return {"question": number, "choice": settled.choice, "message": settled.message}


def _shown(one: QuestionLine) -> Data:
    asker = one.name or f"ticket-{one.ticket}"
    return {
        "question": one.id,
        "kind": one.kind,
        "from": asker,
        "words": quoted(one.words, source=asker, id=secrets.token_hex(8), about="question"),
        "facts": one.facts,
        "choices": one.choices or "any words",
        "without_an_answer": one.default,
    }


def _asked(tx: Transaction, call: ToolRequest) -> Question:
    """The same text from the same agent is the same question, however often it is sent."""
    caller, words = call.caller, call.text("question").strip()
    choices, default = tuple(dict.fromkeys(call.texts("choices"))), call.text("default")
    _refuse_unfit(words, choices, default)
    agent = "" if caller.ticket is not None else caller.id
    known = questions.latest_of(tx, words, agent=agent, ticket=caller.ticket)
    if known is not None and known.settled_by in (None, SettledBy.PERSON):
        return known
    assert caller.run is not None, "an agent's token is of a run"
    if len(waiting := questions.open_ones(tx, run=caller.run)) >= MOST_OPEN:
        raise StateConflict(
            f"{count(len(waiting), 'question')} of yours wait for the person: wait for an answer, or decide."
        )
    minutes = min(call.amount("minutes") or _LONGEST_MINUTES, _LONGEST_MINUTES)
    return questions.ask(
        tx,
        key=f"{caller.id}:{call.request or uuid.uuid4()}",
        kind=QuestionKind.ASK,
        project=runs.get(tx, caller.run).project,
        agent=agent,
        ticket=caller.ticket,
        run=caller.run,
        words=words,
        choices=choices,
        fallback=default,
        deadline=tx.now + max(minutes, 0.0) * 60,
    )


def _refuse_unfit(words: str, choices: tuple[str, ...], default: str) -> None:
    if len(words) > _LONGEST_QUESTION:
        raise BadInput(f"A question has at most {_LONGEST_QUESTION:,} letters: say only what is needed to answer.")
    if len(choices) > _MOST_CHOICES or any(not one.strip() or len(one) > _LONGEST_CHOICE for one in choices):
        raise BadInput(f"Give at most {_MOST_CHOICES} choices of at most {_LONGEST_CHOICE} letters each.")
    if choices and default and default not in choices:
        raise BadInput(f"The default {default[:40]!r} is none of the choices: take one of them, or leave it out.")


def _result(question: Question) -> Data:
    if question.settled_by is not SettledBy.PERSON:
        return {"answered": False, **({"answer": question.choice} if question.choice else {}), "next": _DECIDE}
    return {"answered": True, "answer": question.choice, **({"words": question.why} if question.why else {})}
