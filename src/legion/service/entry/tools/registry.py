"""All tools by name: which caller sees which, and the call of one with JSON arguments."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from dataclasses import asdict

from legion.config.sections.claude import Answers
from legion.domain.agents import tools
from legion.domain.agents.agent import ROOT, ExtraRight
from legion.domain.agents.tools import Tool
from legion.domain.errors import BadInput, NotAllowed, NotFound
from legion.domain.text import to_json
from legion.jobs.agent import plan_approval, tool_access
from legion.jobs.agent.mail_prompt import quoted
from legion.jobs.board import Board
from legion.service.entry.tools import tickets
from legion.service.entry.tools.call import Data, NotYet, ToolRequest, checked
from legion.service.operations import Caller, Service
from legion.service.shared.commit_signal import CommitSignal
from legion.store.staff import agents
from legion.wire.agents import (
    FireAgent,
    HireAgent,
    InterruptAgent,
    Plan,
    PlanVerdict,
    ToolAnswer,
    ToolCall,
    ToolLine,
    Tools,
)
from legion.wire.mail import Broadcast, NewMessage, ReadMail
from legion.wire.notes import AddNote, CloseNote, NoteLine
from legion.wire.plans import ApprovePlan, NewPlan, PlanPage, PlanTicketLine, RejectPlan
from legion.wire.text import plan_number

# Tools about agents and mail.

PARENT = "parent"
_LISTED_AGENTS = 200
_SHOWN = 30


def hire(call: ToolRequest) -> Data:
    tools = call.arguments.get("tools")
    wanted = HireAgent(
        task=call.text("task"),
        cwd=call.cwd if call.caller.is_person else "",
        model=call.text("model"),
        tools=None if tools is None else call.texts("tools"),
        role=call.text("role"),
        name=call.text("name"),
        budget=call.amount("budget"),
        headcount=call.number("headcount"),
        depth=call.number("depth"),
        plan=call.flag("plan"),
        delegate=call.flag("delegate"),
        driver=call.text("driver"),
        request=call.request,
    )
    hired = call.service.hire(wanted)
    return {
        "hired": hired.id,
        "name": hired.name,
        **({"budget": hired.budget} if hired.budget is not None else {}),
        **({"notes": hired.notes} if hired.notes else {}),
        "next": "Its results come to you as mail: end your turn when you have nothing else to do.",
    }


def tell(call: ToolRequest) -> Data:
    letter = NewMessage(
        to=_named(call, call.text("to")), text=call.text("message"), now=call.flag("now"), request=call.request
    )
    return {"message": call.service.tell_agent(letter).message}


def broadcast(call: ToolRequest) -> Data:
    wanted = Broadcast(text=call.text("message"), subtree=call.text("subtree"), request=call.request)
    return {"message": call.service.broadcast(wanted).message}


def interrupt(call: ToolRequest) -> Data:
    wanted = InterruptAgent(id=call.text("agent"), text=call.text("message"), request=call.request)
    return {"message": call.service.interrupt_agent(wanted).message}


def fire(call: ToolRequest) -> Data:
    wanted = FireAgent(id=call.text("agent"), subtree=call.flag("subtree"), ask=call.flag("ask"), request=call.request)
    return {"message": call.service.fire(wanted).message}


def agents_seen(call: ToolRequest) -> Data:
    seen = call.service.agents()
    listed = [
        {
            "name": one.name,
            "id": one.id,
            "parent": one.parent,
            "doing": one.doing,
            **({"role": one.role[:80]} if one.role else {}),
            **({"unread": one.waiting} if one.waiting else {}),
            **({"left": round(one.left, 4)} if one.left is not None else {}),
        }
        for one in seen.agents[:_LISTED_AGENTS]
    ]
    return {"you": seen.you, "agents": listed}


def mail(call: ToolRequest) -> Data:
    found = call.service.mail(ReadMail(dead=call.flag("dead"), all=True)).messages
    listed = [
        {
            "from": one.sender_name,
            "to": one.recipient_name,
            "kind": one.kind,
            "delivery": one.delivery,
            "text": quoted(one.text, source=one.sender_name, id=one.id) if one.sender != call.caller.id else one.text,
        }
        for one in found[-_SHOWN:]
    ]
    return {"messages": listed}


def plan(call: ToolRequest) -> Data:
    text, agent = call.text("text"), call.text("agent")
    if bool(text.strip()) == bool(agent.strip()):
        raise BadInput("Give text to propose your own plan, or agent and approve to decide about another's.")
    if text.strip():
        if call.caller.is_person:
            raise BadInput("A person needs no approval: hire with a plan, and decide about that.")
        return {"next": call.service.propose_plan(Plan(text=text, request=call.request)).message}
    if "approve" not in call.arguments:
        raise BadInput("legion-plan needs 'approve' together with 'agent': true or false.")
    verdict = PlanVerdict(agent=agent, approve=call.flag("approve"), why=call.text("why"), request=call.request)
    return {"message": call.service.decide_plan(verdict).message}


def _named(call: ToolRequest, word: str) -> str:
    if word != PARENT:
        return word
    if call.caller.is_person:
        raise BadInput("You have no parent: name an agent that legion-agents shows.")
    with call.context.store.read() as tx:
        return agents.get(tx, call.caller.id).parent or ROOT


# Tools of leaders: notes, and plans of goals.

_LISTED = 8
_LONGEST = 600
_PLAN = 12_000
"""Characters of all texts of a plan's tickets; those of each have room for `_LEAST`."""
_LEAST = 240


def note(call: ToolRequest) -> Data:
    number, text = call.number("close"), call.text("text").strip()
    cwd = call.cwd if call.caller.is_person else ""
    lesson = call.number("accept")
    if [number is not None, bool(text), lesson is not None].count(True) > 1:
        raise BadInput("Record a note, close one or accept a lesson, not two of them in one call.")
    if lesson is not None:
        accepted = call.service.accept_lesson(lesson, CloseNote(cwd=cwd))
        return {"accepted": [one.id for one in accepted.lessons]}
    if number is not None:
        wanted = CloseNote(cwd=cwd, outcome=call.text("outcome"), request=call.request)
        return {"closed": [one.id for one in call.service.close_note(number, wanted).notes]}
    if text:
        new = AddNote(
            cwd=cwd, kind=call.text("kind") or "decision", text=text, ticket=call.number("ticket"), request=call.request
        )
        return {"note": call.service.add_note(new).notes[0].id}
    proposed = [{"lesson": one.id, "text": one.text} for one in call.service.lessons(cwd).lessons if one.proposed]
    return {
        "notes": [_shown(one) for one in call.service.notes(cwd, False).notes],
        **({"proposed_lessons": proposed[-_LISTED:]} if proposed else {}),
    }


def _shown(one: NoteLine) -> Data:
    facts = asdict(one)
    return {name: facts[name] for name in ("id", "kind", "text", "ticket", "author") if facts[name]}


def goal(call: ToolRequest) -> Data:
    wanted, name = call.text("goal").strip(), call.text("plan").strip()
    if bool(wanted) == bool(name):
        raise BadInput("Give goal to have it planned, or plan (P3) to show it or decide about it.")
    if wanted:
        new = NewPlan(
            cwd=call.cwd, goal=wanted, budget=call.amount("budget"), epic=call.text("epic"), request=call.request
        )
        made = call.service.plan(new)
        return {"plan": made.plan.id, "next": "You get a notice when it is ready: end your turn."}
    number = plan_number(name)
    if number is None:
        raise BadInput("A plan is named like P3: legion-goal shows it.")
    if "approve" not in call.arguments:
        return _plan(call.service.plan_page(number))
    if not call.flag("approve"):
        sent_back = call.service.reject_plan(number, RejectPlan(why=call.text("why")))
        return {"plan": sent_back.plan.id, "state": sent_back.plan.state}
    approved = call.service.approve_plan(number, ApprovePlan(tickets=call.texts("tickets"), request=call.request))
    return {"plan": approved.plan, "state": approved.state, "tickets": approved.tickets, "message": approved.message}


def _plan(page: PlanPage) -> Data:
    """All that the person sees: cut by size, never by kind."""
    each = max(_LEAST, _PLAN // max(1, len(page.tickets)))
    return {
        "plan": page.plan.id,
        "state": page.plan.state,
        "goal": page.plan.goal[:_LONGEST],
        "summary": page.summary[:_LONGEST],
        "risks": page.risks[:_LONGEST],
        "expected_usd": page.estimate.usd,
        "expected_seconds": page.estimate.seconds,
        "tickets": [_proposed(one, each) for one in page.tickets],
        **({"findings": [one.text for one in page.findings][:_LISTED]} if page.findings else {}),
    }


def _proposed(one: PlanTicketLine, room: int) -> Data:
    """Its texts stand between marks: a file of the repository may have put words there."""
    given = {name: text for name in ("text", "context", "plan") if (text := str(getattr(one, name)).strip())}
    part = room // max(1, len(given))
    facts = {
        "criteria": [
            {name: _cut(text, _LEAST) for name, text in asdict(each).items() if text} for each in one.criteria
        ],
        "after": one.after,
        "files": [*one.files, *one.new_files],
        "asks_person_for": one.asks_for,
        "only_if": one.when,
        "ticket": one.ticket,
        "state": one.state,
    }
    return {
        "key": one.key,
        "title": one.title,
        **{
            name: quoted(_cut(text, part), source="the planner", id=secrets.token_hex(6), about=name)
            for name, text in given.items()
        },
        **{name: fact for name, fact in facts.items() if fact},
    }


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]} [cut, of {len(text)}]"


_HANDLERS: Mapping[Tool, Callable[[ToolRequest], Data]] = {
    Tool.DISPATCH: tickets.dispatch,
    Tool.CHECK: tickets.check,
    Tool.STATUS: tickets.status,
    Tool.STOP: tickets.stop,
    Tool.REPORT: tickets.report,
    Tool.DEPS: tickets.deps,
    Tool.HIRE: hire,
    Tool.TELL: tell,
    Tool.BROADCAST: broadcast,
    Tool.INTERRUPT: interrupt,
    Tool.FIRE: fire,
    Tool.AGENTS: agents_seen,
    Tool.MAIL: mail,
    Tool.CLAIM: tickets.claim,
    Tool.PLAN: plan,
    Tool.ASK: tickets.ask,
    Tool.ANSWER: tickets.answer,
    Tool.NOTE: note,
    Tool.GOAL: goal,
}


class ToolRegistry:
    def __init__(self, context: Board, news: CommitSignal) -> None:
        self._context = context
        self._news = news

    def seen(self, caller: Caller) -> tuple[Tool, ...]:
        if caller.is_person:
            return tools.OF_THE_PERSON
        if caller.ticket is not None:
            return tools.OF_TICKETS
        with self._context.store.read() as tx:
            agent, opened = (
                plan_approval.reader(tx, agents.get(tx, caller.id)),
                tool_access.rights(self._context, tx, caller.id),
            )
        return tools.of_agent(agent, answers=self._context.user.claude.answers is Answers.LEADERS, opened=opened)

    def listed(self, caller: Caller) -> Tools:
        opened = self._opened(caller)
        texts = [(tool, tools.described(tool, opened)) for tool in self.seen(caller)]
        return Tools(
            tools=[ToolLine(name=tool.value, description=text.words, parameters=text.schema()) for tool, text in texts]
        )

    def call(self, service: Service, caller: Caller, name: str, wanted: ToolCall, cwd: str) -> ToolAnswer:
        tool = self._known(caller, name)
        arguments = checked(tool, tools.described(tool, self._opened(caller)).takes, wanted.arguments)
        call = ToolRequest(
            context=self._context,
            news=self._news,
            service=service,
            caller=caller,
            arguments=arguments,
            request=wanted.request,
            cwd=cwd,
        )
        try:
            data = _HANDLERS[tool](call)
        except NotYet:
            return ToolAnswer(again=True)
        return ToolAnswer(text=to_json(data, ensure_ascii=False, separators=(",", ":")), data=data)

    def _opened(self, caller: Caller) -> frozenset[ExtraRight]:
        """The person has no extra rights here, and dispatches with a driver by other means."""
        if caller.is_person or caller.ticket is not None:
            return frozenset()
        with self._context.store.read() as tx:
            return tool_access.rights(self._context, tx, caller.id)

    def _known(self, caller: Caller, name: str) -> Tool:
        seen = self.seen(caller)
        try:
            tool = Tool(name)
        except ValueError:
            listed = ", ".join(one.value for one in seen)
            raise NotFound(f"There is no tool {name[:40]!r}: use one of {listed}.") from None
        if tool not in seen:
            listed = ", ".join(one.value for one in seen)
            raise NotAllowed(f"You may not use {name}: you have {listed}.")
        return tool
