"""Tools about tickets."""

from __future__ import annotations

from dataclasses import asdict

from legion.domain.agents.agent import ROOT
from legion.domain.errors import BadInput
from legion.domain.events import EventKind
from legion.domain.text import count
from legion.service.entry.agent_rights import LimitedService
from legion.service.entry.tools.call import Data, ToolRequest
from legion.service.shared.repeats import refuse_other_operation
from legion.service.views import output
from legion.store import events
from legion.store.board import tickets
from legion.store.staff import agents
from legion.store.work import idempotency
from legion.wire.agents import ClaimTicket, InterruptAgent, SubmitTicket
from legion.wire.dispatch import Dispatch, NewTicket
from legion.wire.mail import NewMessage
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
