"""The table of requests that agents on machines send to the head: the gateway's endpoints and Legion's tools.

The relay of a machine and the head both ask here, about the path as it was sent. Nothing is decoded and no dot is
resolved: another spelling of a path is another path, and what the table does not have is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from legion.domain.agents.tools import Tool
from legion.gateway.access.admission import route_of
from legion.gateway.access.answers import Refused


class RelayDoor(Enum):
    GATEWAY = "gateway"
    TOOLS = "tools"

    def opens(self, method: str, path: str) -> bool:
        """Whether a request with this method and raw path is passed on."""
        if self is RelayDoor.TOOLS:
            return (method, path) in _TOOLS
        try:
            return route_of(method, path).needs_pass
        except Refused:
            return False

    def headers(self, sent: Mapping[str, str]) -> dict[str, str]:
        """The headers that are passed on, by their names in lower case. A tool needs no others than these; a provider
        reads many of its program's own.
        """
        known = {name.lower(): value for name, value in sent.items()}
        if self is RelayDoor.TOOLS:
            return {name: value for name, value in known.items() if name in _OF_TOOLS}
        return {name: value for name, value in known.items() if name not in _NOT_PASSED}


TOKEN = "legion-machine"
"""The header with a machine's token. A relayed request carries the run's pass in the usual one."""
_TOOLS = frozenset(("POST", f"/v1/tools/{one.value}") for one in Tool)
_OF_TOOLS = frozenset(("authorization", "content-type"))
_NOT_PASSED = frozenset(
    ("connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "host", "content-length")
) | {TOKEN, "accept-encoding", "cookie", "set-cookie", "location", "expect"}


def passed_back(received: Mapping[str, str]) -> dict[str, str]:
    """The headers of an answer that the agent gets."""
    return {name: value for name, value in received.items() if name.lower() not in _NOT_PASSED}
