"""legion_cc's routes: for its own tools and whoever was written for them. The token is asked for as everywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, TypeVar

from fastapi import Query, Request
from fastapi.responses import JSONResponse

from legion.api.asking import BIGGEST, MaybeFolder, Who, storable
from legion.api.late import LateRouter
from legion.api.ports import CallerPort, LegionCcPort
from legion.api.problems import note_refusal
from legion.wire.errors import HTTP_STATUS, BadInput, LegionError, NotAllowed, NotFound
from legion.wire.orchestrate import (
    Dependencies,
    OldDispatch,
    OldDispatched,
    OldQueue,
    OldReport,
    OldSaid,
    OldStop,
    OldSubmit,
    OldSubmitted,
)

router = LateRouter(prefix="/legion/orchestrate", tag="orchestrate")

Shape = TypeVar("Shape")


def _answer(request: Request, who: Who, cwd: str | None, ask: Callable[[LegionCcPort], Shape]) -> Shape | JSONResponse:
    """Its clients look for `error` where something went wrong."""
    desk: CallerPort = request.app.state.desk
    try:
        return ask(desk.orchestrate(who, cwd or ""))
    except LegionError as error:
        if isinstance(error, NotAllowed):
            note_refusal(request, error)
        status = HTTP_STATUS[type(error)] if isinstance(error, NotAllowed | NotFound) else 400
        return JSONResponse({"error": error.message}, status)


@router.post("/submit", response_model=OldSubmitted)
def submit(request: Request, wanted: OldSubmit, who: Who, cwd: MaybeFolder = None) -> object:
    return _answer(request, who, cwd, lambda service: service.submit(storable(wanted)))


@router.post("/dispatch", response_model=OldDispatched)
def dispatch(request: Request, wanted: OldDispatch, who: Who, cwd: MaybeFolder = None) -> object:
    return _answer(request, who, cwd, lambda service: service.dispatch(storable(wanted)))


@router.get("/status", response_model=OldQueue)
def status(request: Request, who: Who, cwd: MaybeFolder = None) -> object:
    return _answer(request, who, cwd, lambda service: service.status())


@router.post("/report", response_model=OldSaid)
def report(request: Request, wanted: OldReport, who: Who, cwd: MaybeFolder = None) -> object:
    return _answer(request, who, cwd, lambda service: service.report(storable(wanted)))


@router.post("/stop", response_model=OldSaid)
def stop(request: Request, wanted: OldStop, who: Who, cwd: MaybeFolder = None) -> object:
    return _answer(request, who, cwd, lambda service: service.stop(storable(wanted)))


@router.post("/stop-all", response_model=OldSaid)
def stop_all(request: Request, who: Who, cwd: MaybeFolder = None) -> object:
    return _answer(request, who, cwd, lambda service: service.stop_all())


@router.get("/deps", response_model=Dependencies)
def deps(
    request: Request,
    who: Who,
    ticket_id: Annotated[int | None, Query(ge=1, le=BIGGEST)] = None,
    cwd: MaybeFolder = None,
) -> object:
    if ticket_id is None:
        return _answer(request, who, cwd, _no_ticket)
    return _answer(request, who, cwd, lambda service: service.deps(ticket_id))


def _no_ticket(_service: LegionCcPort) -> Dependencies:
    raise BadInput("Say whose dependencies you want: ticket_id.")
