"""A desk in memory: two agents, one of them of a ticket, and whatever was refused."""

from __future__ import annotations

from legion.api.ports import LegionCcPort
from legion.wire.callers import Caller

from legion.domain.errors import NotAllowed, NotFound
from legion.wire.tools import ToolAnswer, ToolCall, Tools
from tests.api.standin import StandIn

AGENT = Caller(id="5f2c1d7e-agent", run=4)
OF_A_TICKET = Caller(id="ticket-12", ticket=12, run=5)
TOKENS = {"legion-agent-standing": AGENT, "legion-agent-ticket": OF_A_TICKET}


class StandInDesk:
    def __init__(self, service: StandIn) -> None:
        self._service = service

    def known(self, token: str, /) -> Caller:
        if token not in TOKENS:
            raise NotAllowed("The token is missing or wrong.")
        return TOKENS[token]

    def refused(self, caller: Caller, asked: str, why: str, /) -> None:
        self._service.refused.append((caller.id, asked))

    def tools(self, caller: Caller, /) -> Tools:
        return Tools(tools=[])

    def call_tool(self, caller: Caller, name: str, wanted: ToolCall, cwd: str, /) -> ToolAnswer:
        return ToolAnswer(text=f"{caller.id} used {name}", data=wanted.arguments)

    def orchestrate(self, caller: Caller, cwd: str, /) -> LegionCcPort:
        raise NotFound("There is no project here.")

    def acting(self, caller: Caller, /) -> StandIn:
        self._service.callers.append(caller.id)
        return self._service
