"""Routes about what work costs."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query

from legion.api.asking import Asked, MaybeFolder, Text
from legion.api.late import LateRouter
from legion.wire.usage import UsageReport

router = LateRouter(prefix="/v1", tag="usage")


@router.get("/usage", summary="Tokens, money and time, by ticket, agent, model, day or epic")
def usage(service: Asked, cwd: MaybeFolder = None, by: Annotated[Text, Query()] = "ticket") -> UsageReport:
    return service.usage(cwd, by)
