"""Routes about tickets."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from legion.api.asking import BIGGEST, Asked, Number, TicketId, storable
from legion.api.late import LateRouter
from legion.wire.projects import Done
from legion.wire.recording import Cassette, SetRecording
from legion.wire.tickets import Acted, Action, Diff, Dispatch, Dispatched, LogText, TicketPage

router = LateRouter(prefix="/v1/tickets", tag="tickets")


@router.post("", status_code=201, summary="Create tickets, all or none")
def dispatch(wanted: Dispatch, service: Asked) -> Dispatched:
    return service.dispatch(storable(wanted))


@router.get("/{id}", summary="Everything about one ticket")
def ticket(id: TicketId, service: Asked) -> TicketPage:
    return service.ticket(id)


@router.get("/{id}/log", summary="What its agent printed, from an offset on")
def log(
    id: TicketId, service: Asked, run: Annotated[int | None, Query(ge=1, le=BIGGEST)] = None, offset: Number = 0
) -> LogText:
    return service.log(id, run, offset)


@router.get("/{id}/diff", summary="Its change, also while the agent is at it")
def diff(id: TicketId, service: Asked) -> Diff:
    return service.diff(id)


@router.get("/{id}/cassette", summary="What its model said in recorded runs, as scripts to play")
def cassette(id: TicketId, service: Asked, name: str = "") -> Cassette:
    return service.cassette(id, name)


@router.post("/recording", summary="Record new runs, or end that")
def switch_recording(wanted: SetRecording, service: Asked) -> Done:
    return service.switch_recording(wanted)


@router.post("/{id}/stop", summary="Stop it; what was done is kept")
def stop(id: TicketId, service: Asked, action: Action | None = None) -> Acted:
    return service.stop(id, storable(action or Action()))


@router.post("/{id}/retry", summary="Try it again with a fresh count of attempts")
def retry(id: TicketId, service: Asked, action: Action | None = None) -> Acted:
    return service.retry(id, storable(action or Action()))


@router.post("/{id}/review", summary="Have its change read by an independent reviewer")
def review(id: TicketId, service: Asked) -> Acted:
    return service.review(id)


@router.post("/{id}/bounce", summary="Send its change back to its agent, with words")
def bounce(id: TicketId, service: Asked, action: Action | None = None) -> Acted:
    return service.bounce(id, storable(action or Action()))


@router.post("/{id}/drop", summary="Take it off the board")
def drop(id: TicketId, service: Asked) -> Acted:
    return service.drop(id)


@router.post("/{id}/pause", summary="Park it until it is resumed")
def pause(id: TicketId, service: Asked) -> Acted:
    return service.pause_ticket(id)


@router.post("/{id}/resume", summary="Let it go on")
def resume(id: TicketId, service: Asked) -> Acted:
    return service.resume_ticket(id)
