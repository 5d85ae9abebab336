"""The gateway's own answers, in the words that the caller's dialect has for errors."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from aiohttp import web

from legion.gateway.accounting.ledger import RequestError
from legion.gateway.dialects import errors
from legion.gateway.dialects.registry import Dialect
from legion.gateway.json_text import Json, dumps


class ErrorKind(Enum):
    """Anthropic's words. Agent programs repeat a request after some of them, and never after the first."""

    INVALID = "invalid_request_error"
    AUTHENTICATION = "authentication_error"
    PERMISSION = "permission_error"
    NOT_FOUND = "not_found_error"
    TOO_LARGE = "request_too_large"
    API = "api_error"
    TIMEOUT = "timeout_error"


_NO_USE = {"x-should-retry": "false"}


class Refused(Exception):
    """The request ends here, with this status and one sentence."""

    def __init__(self, status: int, kind: ErrorKind, sentence: str, error: RequestError | None = None) -> None:
        super().__init__(sentence)
        self.status = status
        self.kind = kind
        self.sentence = sentence
        self.error = error or (RequestError.BAD_REQUEST if status < 500 else None)
        """None where the provider has its own word for it."""

    def answer(self, dialect: Dialect = Dialect.ANTHROPIC) -> web.Response:
        error = {"type": self.kind.value, "message": f"legion: {self.sentence}"}
        if dialect is Dialect.ANTHROPIC:
            return json_answer(self.status, {"type": "error", "error": error}, self._headers)
        return json_answer(self.status, errors.openai(errors.read(error)), self._headers)

    @property
    def _headers(self) -> Mapping[str, str]:
        """Programs ask again after some refusals, unless they are told that it is no use."""
        return _NO_USE if self.status == 403 else {}


def json_answer(status: int, facts: Json, headers: Mapping[str, str] | None = None) -> web.Response:
    return web.Response(status=status, body=dumps(facts), content_type="application/json", headers=headers)


def healthy(release: str) -> web.Response:
    return json_answer(200, {"status": "healthy", "release": release})
