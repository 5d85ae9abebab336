"""Tools of leaders: notes."""

from __future__ import annotations

from dataclasses import asdict

from legion.domain.errors import BadInput
from legion.service.entry.tools.call import Data, ToolRequest
from legion.wire.notes import AddNote, CloseNote, NoteLine


def note(call: ToolRequest) -> Data:
    number, text = call.number("close"), call.text("text").strip()
    cwd = call.cwd if call.caller.is_person else ""
    if number is not None and text:
        raise BadInput("Record a note or close one, not both in one call.")
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
    return {"notes": [_shown(one) for one in call.service.notes(cwd, False).notes]}


def _shown(one: NoteLine) -> Data:
    facts = asdict(one)
    return {name: facts[name] for name in ("id", "kind", "text", "ticket", "author") if facts[name]}
