"""Routes about model providers. A key comes in by one of them and goes out by none."""

from __future__ import annotations

from functools import partial

from fastapi import APIRouter, Request

from legion.api.asking import Asked, storable
from legion.api.waiting import Waiters
from legion.wire.projects import Done
from legion.wire.providers import AddProvider, ProviderAnswer, Providers, RemoveProvider, TryProvider

router = APIRouter(prefix="/v1/providers", tags=["providers"])


@router.get("", summary="All providers, where their keys come from, and their limits")
def providers(service: Asked) -> Providers:
    return service.providers()


@router.post("", summary="Add a provider, or change one")
def add(wanted: AddProvider, service: Asked) -> Done:
    return service.add_provider(storable(wanted))


@router.post("/remove", summary="Remove a provider and the key that was kept for it")
def remove(wanted: RemoveProvider, service: Asked) -> Done:
    return service.remove_provider(storable(wanted))


@router.post("/test", summary="One small request to a provider")
async def test(request: Request, wanted: TryProvider, service: Asked) -> ProviderAnswer:
    waiters: Waiters = request.app.state.waiters
    return await waiters.run(partial(service.try_provider, storable(wanted)))
