"""Routes about standing agents and mail. Who calls is who acts."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import Path, Request

from legion.api.asking import Asked, Who, storable
from legion.api.late import LateRouter
from legion.api.waiting import Waiters
from legion.wire.agents import (
    AgentList,
    AgentPage,
    Claimed,
    ClaimTicket,
    FireAgent,
    Fired,
    HireAgent,
    Hired,
    InterruptAgent,
    Plan,
    PlanVerdict,
    SubmitTicket,
)
from legion.wire.mail import Broadcast, Mail, NewMessage, ReadMail, Sent

router = LateRouter(prefix="/v1", tag="agents")

AgentWord = Annotated[str, Path(min_length=1, max_length=80, description="an id, the beginning of one, or a name")]


@router.get("/agents", summary="Who stands, and what each is doing")
def agents(who: Who, service: Asked, all: bool = False) -> AgentList:
    return service.agents(who.id, all)


@router.get("/agents/{id}", summary="Everything about one agent")
def agent(id: AgentWord, who: Who, service: Asked) -> AgentPage:
    return service.agent(who.id, id)


@router.post("/agents", status_code=201, summary="Hire an agent under the caller")
def hire(wanted: HireAgent, who: Who, service: Asked) -> Hired:
    return service.hire(who.id, storable(wanted))


@router.post("/agents/fire", summary="Fire an agent: its work is saved, its open mail goes back")
def fire(wanted: FireAgent, who: Who, service: Asked) -> Fired:
    return service.fire(who.id, storable(wanted))


@router.post("/agents/interrupt", summary="Interrupt an agent; with words it goes on with them")
async def interrupt(request: Request, wanted: InterruptAgent, who: Who, service: Asked) -> Sent:
    waiters: Waiters = request.app.state.waiters
    return await waiters.run(partial(service.interrupt_agent, who.id, storable(wanted)))


@router.post("/agents/tell", summary="A message to an agent or to the person")
async def tell(request: Request, letter: NewMessage, who: Who, service: Asked) -> Sent:
    waiters: Waiters = request.app.state.waiters
    return await waiters.run(partial(service.tell_agent, who.id, storable(letter)))


@router.post("/agents/broadcast", summary="A message to everybody below the caller")
def broadcast(wanted: Broadcast, who: Who, service: Asked) -> Sent:
    return service.broadcast(who.id, storable(wanted))


@router.post("/agents/claim", summary="A standing agent takes a ticket from the board")
def claim(wanted: ClaimTicket, who: Who, service: Asked) -> Claimed:
    return service.claim(who.id, storable(wanted))


@router.post("/agents/submit", summary="The ticket that it holds is whole, or goes back to the board")
def submit(wanted: SubmitTicket, who: Who, service: Asked) -> Claimed:
    return service.submit(who.id, storable(wanted))


@router.post("/agents/plan", summary="Propose a plan to the one above")
def propose(wanted: Plan, who: Who, service: Asked) -> Sent:
    return service.propose_plan(who.id, storable(wanted))


@router.post("/agents/verdict", summary="Approve or reject the plan of an agent below the caller")
def verdict(wanted: PlanVerdict, who: Who, service: Asked) -> Sent:
    return service.decide_plan(who.id, storable(wanted))


@router.post("/mail", summary="Mail; what the person reads of their own is read")
def mail(wanted: ReadMail, who: Who, service: Asked) -> Mail:
    return service.mail(who.id, storable(wanted))
