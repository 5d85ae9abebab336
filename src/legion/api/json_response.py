"""The answer of a route that is no operation: JSON that every reader takes."""

from __future__ import annotations

from starlette.responses import Response

from legion.domain.text import to_json


class JSONResponse(Response):
    media_type = "application/json"

    def render(self, content: object) -> bytes:
        return to_json(content, separators=(",", ":")).encode()
