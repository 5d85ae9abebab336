"""WebSockets of the server: the library is imported when the first client asks for one, not at every start."""

from __future__ import annotations

import asyncio
import importlib
from typing import Any, cast

_MODULE, _CLASS = "uvicorn.protocols.websockets.websockets_sansio_impl", "WebSocketsSansIOProtocol"
MOST_BYTES = 1 << 20
"""Of one message that a client sends."""


def _protocol(**given: Any) -> asyncio.Protocol:  # noqa: ANN401 - uvicorn's
    made: asyncio.Protocol = getattr(importlib.import_module(_MODULE), _CLASS)(**given)
    return made


PROTOCOL = cast(type[asyncio.Protocol], _protocol)
"""For `uvicorn.Config(ws=...)`, which calls it once per connection."""
