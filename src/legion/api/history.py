"""Routes about what happened, and about taking it back."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from legion.api.asking import BIGGEST, Asked, Folder, MaybeFolder, Text, TicketId, storable
from legion.api.late import LateRouter
from legion.wire.history import Events
from legion.wire.stretch import WorkSummary
from legion.wire.tickets import Acted, RewindTo

router = LateRouter(prefix="/v1", tag="history")

_Id = Annotated[int | None, Query(ge=1, le=BIGGEST)]


@router.get("/history", summary="What happened, with the rules by which it was decided")
def history(
    service: Asked,
    cwd: MaybeFolder = None,
    ticket: _Id = None,
    run: _Id = None,
    after: Annotated[Text, Query(max_length=80)] = "",
    last: Annotated[int, Query(ge=0, le=100_000)] = 0,
) -> Events:
    return service.history(cwd, ticket, run, after, last)


@router.get("/stretch", summary="What came of the work since the person collected last")
def stretch(service: Asked, cwd: Folder, hours: Annotated[float | None, Query(gt=0, le=100_000)] = None) -> WorkSummary:
    return service.stretch(cwd, hours)


@router.post(
    "/tickets/{id}/rewind", summary="Take tree and conversation back to an earlier moment, and go on from there"
)
def rewind(id: TicketId, wanted: RewindTo, service: Asked) -> Acted:
    return service.rewind(id, storable(wanted))


@router.post("/tickets/{id}/undo", summary="Take a landed ticket back, by a new ticket")
def undo(id: TicketId, service: Asked) -> Acted:
    return service.undo(id)
