"""The routes of legion_cc, for its own tools and programs that use them. They need a token like every route."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from fastapi import Request

from legion.api.json_response import JSONResponse
from legion.api.problems import note_refusal
from legion.api.routes import caller_of
from legion.service.entry.callers import CallerRegistry
from legion.wire.errors import HTTP_STATUS, LegionError, NotAllowed, NotFound
from legion.wire.orchestrate import OldProviders
from legion.wire.table import Operation


def perform(request: Request, row: Operation, arguments: Mapping[str, Any]) -> object:
    """Its clients read `error` where something went wrong."""
    callers: CallerRegistry = request.app.state.callers
    try:
        answer = callers.orchestrate(caller_of(request)).call(row, arguments)
        return JSONResponse([asdict(one) for one in answer.providers]) if isinstance(answer, OldProviders) else answer
    except LegionError as error:
        if isinstance(error, NotAllowed):
            note_refusal(request, error)
        status = HTTP_STATUS[type(error)] if isinstance(error, NotAllowed | NotFound) else 400
        return JSONResponse({"error": error.message}, status)
