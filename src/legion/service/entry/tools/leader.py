"""Tools of leaders: notes, and plans of goals."""

from __future__ import annotations

from dataclasses import asdict

from legion.domain.errors import BadInput
from legion.service.entry.tools.call import Data, ToolRequest
from legion.wire.notes import AddNote, CloseNote, NoteLine
from legion.wire.plans import ApprovePlan, NewPlan, PlanPage, RejectPlan
from legion.wire.text import plan_number

_LISTED = 8
_LONGEST = 600


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
            cwd=cwd,
            kind=call.text("kind") or "decision",
            text=text,
            ticket=call.number("ticket"),
            request=call.request,
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
    shown = [
        {
            "key": one.key,
            "title": one.title,
            **({"after": one.after} if one.after else {}),
            "files": [*one.files, *one.new_files][:_LISTED],
            "criteria": [each.text for each in one.criteria][:_LISTED],
            **({"ticket": one.ticket, "state": one.state} if one.ticket is not None else {}),
        }
        for one in page.tickets
    ]
    return {
        "plan": page.plan.id,
        "state": page.plan.state,
        "goal": page.plan.goal[:_LONGEST],
        "summary": page.summary[:_LONGEST],
        "tickets": shown,
        **({"findings": [one.text for one in page.findings][:_LISTED]} if page.findings else {}),
    }
