"""What the routes share: how they reach the service, and which values no store can hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Annotated, TypeVar, cast

from fastapi import Depends, Path, Query, Request
from pydantic import AfterValidator

from legion.api.allowed import CALLER
from legion.api.ports import CallerPort, ServicePort
from legion.wire.callers import Caller
from legion.wire.errors import BadInput

BIGGEST = 2**63 - 1

Body = TypeVar("Body")


async def the_caller(request: Request) -> Caller:
    """Who calls, as the guard has found out."""
    return cast(Caller, request.scope[CALLER])


async def the_service(request: Request) -> ServicePort:
    """With no more rights than the caller's."""
    desk: CallerPort = request.app.state.desk
    return desk.acting(await the_caller(request))


def _without_nul(text: str) -> str:
    if "\0" in text:
        raise ValueError("it holds a NUL character")
    return text


Who = Annotated[Caller, Depends(the_caller)]
Asked = Annotated[ServicePort, Depends(the_service)]
Text = Annotated[str, AfterValidator(_without_nul)]
QuestionId = Annotated[int, Path(ge=1, le=BIGGEST)]
TicketId = Annotated[int, Path(ge=1, le=BIGGEST)]
Folder = Annotated[Text, Query(min_length=1, description="any folder inside the project")]
MaybeFolder = Annotated[Text | None, Query(min_length=1, description="any folder inside the project")]
Number = Annotated[int, Query(ge=0, le=BIGGEST)]


def storable(body: Body) -> Body:
    """The body as it came, or BadInput: no database keeps NUL, half characters or endless numbers."""
    _look_at(body, "")
    return body


def _look_at(value: object, place: str) -> None:
    if isinstance(value, str):
        if "\0" in value:
            raise BadInput(f"`{place}` holds a NUL character; take it out.")
        try:
            value.encode()
        except UnicodeEncodeError:
            raise BadInput(f"`{place}` is not valid Unicode; send UTF-8.") from None
    elif isinstance(value, int):
        if abs(value) > BIGGEST:
            raise BadInput(f"`{place}` is too large a number; stay within 64 bits.")
    elif isinstance(value, list):
        for position, item in enumerate(value):
            _look_at(item, f"{place}[{position}]")
    elif isinstance(value, Mapping):
        for key, item in value.items():
            _look_at(item, f"{place}.{key}")
    elif is_dataclass(value):
        for each in fields(value):
            _look_at(getattr(value, each.name), f"{place}.{each.name}" if place else each.name)
