"""Turns every error into an answer: a Problem with one sentence."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Mapping, Sequence

from fastapi import FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException

from legion.api.routes import CALLER
from legion.domain.text import to_json
from legion.service.entry.callers import CallerRegistry
from legion.service.operations import Caller
from legion.wire.errors import HTTP_STATUS, BadInput, LegionError, NotAllowed, NotFound, problem_of


class GuardRefusal(Exception):
    """A request is answered before it reaches its route."""

    def __init__(self, status: int, error: LegionError, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
        super().__init__(error.message)
        self.status = status
        self.error = error
        self.headers = headers


def problem_body(error: LegionError) -> bytes:
    return to_json(vars(problem_of(error))).encode()


def answer(error: LegionError, status: int | None = None) -> Response:
    if status is None:
        status = next(HTTP_STATUS[kind] for kind in type(error).__mro__ if kind in HTTP_STATUS)
    return Response(problem_body(error), status, media_type="application/json")


def install(app: FastAPI) -> None:
    app.add_exception_handler(LegionError, _on_legion_error)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http)
    app.add_exception_handler(OSError, _on_system_error)
    # Starlette raises the error again after this answer, so it also reaches the daemon's log.
    app.add_exception_handler(Exception, _on_mistake)


async def _on_legion_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, LegionError)
    # A tool's refusal is recorded under the tool's name.
    if isinstance(error, NotAllowed) and not request.url.path.startswith("/v1/tools/"):
        await run_in_threadpool(note_refusal, request, error)
    return answer(error)


def note_refusal(request: Request, error: NotAllowed) -> None:
    """Record that an agent tried something that it may not do."""
    caller = request.scope.get(CALLER)
    if isinstance(caller, Caller) and not caller.is_person:
        callers: CallerRegistry = request.app.state.callers
        callers.refused(caller, f"{request.method} {request.url.path}"[:200], error.message)


async def _on_invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return answer(BadInput(sentence(error.errors())))


async def _on_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    asked = f"{request.method} {request.url.path}"[:200]
    if error.status_code == 404:
        return answer(NotFound(f"There is no {asked}; /v1/openapi.json lists what there is."))
    if error.status_code == 405:
        return answer(BadInput(f"{asked} is not possible; /v1/openapi.json lists what is."), 405)
    return answer(BadInput(f"{asked} makes no sense: {error.detail}."), error.status_code)


async def _on_system_error(_: Request, error: Exception) -> Response:
    """A path of the request that no system can open is the caller's mistake; any other error is Legion's."""
    assert isinstance(error, OSError)
    if isinstance(error, PermissionError):
        return answer(BadInput(f"Legion may not read {error.filename or 'a path of the request'}; send another path."))
    if error.errno not in (errno.ENAMETOOLONG, errno.ELOOP):
        raise error
    return answer(BadInput("The request names a path that is too long or leads in a circle; send another path."))


async def _on_mistake(_: Request, error: Exception) -> Response:
    kind = type(error).__name__
    return answer(LegionError(f"Legion itself failed ({kind}); daemon.log in the data directory says where."))


def sentence(errors: Sequence[dict[str, object]]) -> str:
    """One sentence about the first error in a request."""
    first = errors[0]
    place = _place(first.get("loc"))
    kind = str(first.get("type"))
    more = f" ({len(errors) - 1} more like it)" if len(errors) > 1 else ""
    if kind == "json_invalid":
        return "The body is not valid JSON; send one JSON object."
    if place == "body" and isinstance(first.get("input"), str | bytes):
        return "The body is not marked as JSON; send it with Content-Type: application/json."
    if kind == "missing":
        return f"`{place}` is missing{more}; send it."
    if kind in ("extra_forbidden", "unexpected_keyword_argument"):
        return f"`{place}` is not a field of this request{more}; /v1/openapi.json lists its fields."
    return f"`{place}` {_expected(kind, first)}{more}."


_EXPECTED = {
    "dataclass": "must be a JSON object",
    "dict": "must be a JSON object",
    "mapping": "must be a JSON object",
    "model": "must be a JSON object",
    "list": "must be a list",
    "tuple": "must be a list",
    "string": "must be text",
    "int": "must be a whole number",
    "float": "must be a number",
    "finite": "must be a number with an end",
    "bool": "must be true or false",
    "none": "must be null",
}
"""By the first word of the kind of error, in the order of pydantic's list."""
_WITHIN = {
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "too_short": "must have at least {min_length} entries",
    "too_long": "must have at most {max_length} entries",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "enum": "must be one of {expected}",
    "literal_error": "must be one of {expected}",
    "string_unicode": "must be valid Unicode",
    "int_parsing_size": "is too large a number",
}


def _expected(kind: str, error: Mapping[str, object]) -> str:
    """What the field must be, without the name of the program that reads it."""
    limits = error.get("ctx")
    if kind in _WITHIN:
        return _WITHIN[kind].format(**(limits if isinstance(limits, dict) else {}))
    if kind == "value_error":
        message = str(error.get("msg", "")).removeprefix("Value error, ")
        return f"is not acceptable: {message[:1].lower()}{message[1:]}"
    return _EXPECTED.get(kind.partition("_")[0], "is not acceptable")


def _place(loc: object) -> str:
    """("body", "tickets", 0, "title") as tickets[0].title."""
    parts = list(loc) if isinstance(loc, tuple | list) else []
    text = ""
    for part in parts[1:] or parts:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text
