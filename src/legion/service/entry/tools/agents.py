"""Tools about agents and mail."""

from __future__ import annotations

from legion.domain.agents.agent import ROOT
from legion.domain.errors import BadInput
from legion.jobs.agent.mail_prompt import quoted
from legion.service.entry.tools.call import Data, ToolRequest
from legion.store.staff import agents as store
from legion.wire.agents import FireAgent, HireAgent, InterruptAgent, Plan, PlanVerdict
from legion.wire.mail import Broadcast, NewMessage, ReadMail

PARENT = "parent"
_LISTED = 200
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


def agents(call: ToolRequest) -> Data:
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
        for one in seen.agents[:_LISTED]
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
        return store.get(tx, call.caller.id).parent or ROOT
