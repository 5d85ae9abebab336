"""Routes about projects, the board and the daemon."""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import Query, Request

from legion.api.asking import BIGGEST, Asked, Folder, MaybeFolder, Number, storable
from legion.api.late import LateRouter
from legion.api.waiting import Waiters
from legion.wire.projects import (
    AddProject,
    CollectResult,
    Config,
    Doctor,
    Done,
    Graph,
    ProjectAdded,
    Status,
    Trust,
    Trustable,
    WaitState,
    Where,
    WorktreeList,
)
from legion.wire.tickets import Acted

LONGEST_WAIT = 25.0

router = LateRouter(prefix="/v1", tag="projects")


@router.get("/status", summary="The daemon, the project and its tickets")
def status(service: Asked, cwd: MaybeFolder = None, all: bool = False) -> Status:
    return service.status(cwd, all)


@router.get("/graph", summary="The board: tickets, edges, waves, critical path")
def graph(service: Asked, cwd: Folder) -> Graph:
    return service.graph(cwd)


@router.get("/wait", summary="Wait until something happened or all is settled, at most 25 s")
async def wait(
    request: Request,
    service: Asked,
    id: Annotated[list[Annotated[int, Query(ge=1, le=BIGGEST)]] | None, Query()] = None,
    cwd: MaybeFolder = None,
    after_event: Number = 0,
    seconds: Annotated[float, Query(alias="timeout", ge=0, le=LONGEST_WAIT)] = LONGEST_WAIT,
) -> WaitState:
    waiters: Waiters = request.app.state.waiters
    return await waiters.run(partial(service.wait, cwd, id or [], after_event, seconds))


@router.get("/worktrees", summary="Where agents work and worked")
def worktrees(service: Asked, cwd: Folder) -> WorktreeList:
    return service.worktrees(Where(cwd=cwd))


@router.get("/doctor", summary="What holds on this machine and what does not")
def doctor(service: Asked, cwd: MaybeFolder = None) -> Doctor:
    return service.doctor(cwd)


@router.get("/config", summary="Every setting in force and where it comes from")
def config(service: Asked, cwd: MaybeFolder = None) -> Config:
    return service.config(cwd)


@router.post("/projects", summary="A git repository becomes a project")
def add_project(wanted: AddProject, service: Asked) -> ProjectAdded:
    return service.add_project(storable(wanted))


@router.delete("/projects", summary="Legion forgets a project; the repository stays as it is")
def remove_project(service: Asked, cwd: Folder) -> Done:
    return service.remove_project(Where(cwd=cwd))


@router.get("/project/trustable", summary="The texts of legion.toml that can be trusted, whole")
def trustable(service: Asked, cwd: Folder) -> Trustable:
    return service.trustable(Where(cwd=cwd))


@router.post("/project/trust", summary="Allow the commands of the texts with these hashes")
def trust(wanted: Trust, service: Asked) -> Done:
    return service.trust(storable(wanted))


@router.post("/project/pause", summary="Start nothing new")
def pause(where: Where, service: Asked) -> Acted:
    return service.pause(storable(where))


@router.post("/project/resume", summary="Start again")
def resume(where: Where, service: Asked) -> Acted:
    return service.resume(storable(where))


@router.post("/project/stop", summary="Stop every ticket that has not ended")
def stop_all(where: Where, service: Asked) -> Acted:
    return service.stop_all(storable(where))


@router.post("/project/collect", summary="Bring landed changes into the person's branch")
def collect(where: Where, service: Asked) -> CollectResult:
    return service.collect(storable(where))


@router.post("/shutdown", summary="The daemon ends; agents at work go on")
def shutdown(service: Asked) -> Done:
    service.shutdown()
    return Done(message="Legion is going down.")
