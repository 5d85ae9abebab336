"""Configures the server of the API. The library of its WebSockets is imported when the first client asks for one."""

from __future__ import annotations

import asyncio
import importlib
from typing import Any, cast

import uvicorn

from legion.api.guard import Guard
from legion.daemon.http_protocol import BoundedHttp

_MODULE, _CLASS = "uvicorn.protocols.websockets.websockets_sansio_impl", "WebSocketsSansIOProtocol"
MOST_BYTES = 1 << 20
"""Of one message that a client sends."""


def _protocol(**given: Any) -> asyncio.Protocol:
    made: asyncio.Protocol = getattr(importlib.import_module(_MODULE), _CLASS)(**given)
    return made


PROTOCOL = cast(type[asyncio.Protocol], _protocol)
"""For `uvicorn.Config(ws=...)`, which calls it once per connection."""


def config(app: Guard) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        lifespan="off",
        proxy_headers=False,
        timeout_graceful_shutdown=2,
        http=BoundedHttp,
        ws=PROTOCOL,
        ws_max_size=MOST_BYTES,
    )
