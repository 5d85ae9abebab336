"""The gateway's own answers, in the shape of Anthropic's errors, so that agent programs understand them."""

from __future__ import annotations

from enum import Enum

import orjson
from aiohttp import web

from legion.gateway.ledger import Trouble


class ErrorKind(Enum):
    """Anthropic's words. Agent programs repeat a request after some of them, and never after the first."""

    INVALID = "invalid_request_error"
    AUTHENTICATION = "authentication_error"
    PERMISSION = "permission_error"
    NOT_FOUND = "not_found_error"
    TOO_LARGE = "request_too_large"
    API = "api_error"
    TIMEOUT = "timeout_error"


class Refused(Exception):
    """The request ends here, with this status and one sentence."""

    def __init__(self, status: int, kind: ErrorKind, sentence: str, trouble: Trouble | None = None) -> None:
        super().__init__(sentence)
        self.status = status
        self.kind = kind
        self.sentence = sentence
        self.trouble = trouble

    def answer(self) -> web.Response:
        error = {"type": self.kind.value, "message": f"legion: {self.sentence}"}
        return web.Response(
            status=self.status,
            body=orjson.dumps({"type": "error", "error": error}),
            content_type="application/json",
        )


def healthy(release: str) -> web.Response:
    return web.Response(body=orjson.dumps({"status": "healthy", "release": release}), content_type="application/json")
