"""Routes about model providers. A key comes in by one of them and goes out by none."""

from __future__ import annotations

from functools import partial

from fastapi import Request

from legion.api.asking import Asked, storable
from legion.api.late import LateRouter
from legion.api.waiting import Waiters
from legion.wire.projects import Done
from legion.wire.providers import (
    AddProvider,
    BeginLogin,
    FinishLogin,
    LoginBegun,
    LoginState,
    Models,
    ProviderAnswer,
    Providers,
    RemoveProvider,
    RemoveRoute,
    Routes,
    SetRoute,
    TryProvider,
)

router = LateRouter(prefix="/v1/providers", tag="providers")


@router.get("", summary="All providers, where their keys come from, and their limits")
def providers(service: Asked) -> Providers:
    return service.providers()


@router.post("", summary="Add a provider, or change one")
def add(wanted: AddProvider, service: Asked) -> Done:
    return service.add_provider(storable(wanted))


@router.post("/remove", summary="Remove a provider and the key that was kept for it")
def remove(wanted: RemoveProvider, service: Asked) -> Done:
    return service.remove_provider(storable(wanted))


@router.post("/login", summary="Begin a login that a person confirms in a browser")
async def begin_login(request: Request, wanted: BeginLogin, service: Asked) -> LoginBegun:
    waiters: Waiters = request.app.state.waiters
    return await waiters.run(partial(service.begin_login, storable(wanted)))


@router.post("/login/finish", summary="Whether it was confirmed; waits a while for that")
async def finish_login(request: Request, wanted: FinishLogin, service: Asked) -> LoginState:
    waiters: Waiters = request.app.state.waiters
    return await waiters.run(partial(service.finish_login, storable(wanted)))


@router.get("/routes", summary="Which models are asked elsewhere than at the provider of a run")
def routes(service: Asked) -> Routes:
    return service.routes()


@router.post("/routes", summary="Set a route")
def set_route(wanted: SetRoute, service: Asked) -> Done:
    return service.set_route(storable(wanted))


@router.post("/routes/remove", summary="Remove a route")
def remove_route(wanted: RemoveRoute, service: Asked) -> Done:
    return service.remove_route(storable(wanted))


@router.get("/models", summary="The models that the providers have, asked now")
async def models(request: Request, service: Asked, name: str = "") -> Models:
    waiters: Waiters = request.app.state.waiters
    return await waiters.run(partial(service.models, name))


@router.post("/test", summary="One small request to a provider")
async def test(request: Request, wanted: TryProvider, service: Asked) -> ProviderAnswer:
    waiters: Waiters = request.app.state.waiters
    return await waiters.run(partial(service.try_provider, storable(wanted)))
