"""Routes about roles and teams. Names are in the query: what is no name gets a sentence, not a 404 of the router."""

from __future__ import annotations

from legion.api.asking import Asked, MaybeFolder, storable
from legion.api.late import LateRouter
from legion.wire.projects import Done
from legion.wire.teams import DefinitionText, RolePage, Roles, SaveDefinition, TeamPage, Teams

router = LateRouter(prefix="/v1", tag="teams")


@router.get("/teams", summary="All teams, and where each is defined")
def teams(service: Asked, cwd: MaybeFolder = None) -> Teams:
    return service.teams(cwd)


@router.get("/teams/page", summary="A team with its roles in order")
def team(service: Asked, name: str, cwd: MaybeFolder = None) -> TeamPage:
    return service.team(cwd, name)


@router.get("/teams/text", summary="A team as it is written, or something to fill in")
def team_text(service: Asked, name: str, cwd: MaybeFolder = None, new: bool = False, like: str = "") -> DefinitionText:
    return service.definition("team", cwd, name, new, like)


@router.post("/teams", summary="Write a team of the person's own; what makes no sense is refused")
def save_team(wanted: SaveDefinition, service: Asked) -> Done:
    return service.save_definition("team", storable(wanted))


@router.delete("/teams", summary="Remove a team of the person's own; its text is kept aside")
def remove_team(service: Asked, name: str, cwd: MaybeFolder = None) -> Done:
    return service.remove_definition("team", cwd, name)


@router.get("/roles", summary="All roles, and where each is defined")
def roles(service: Asked, cwd: MaybeFolder = None) -> Roles:
    return service.roles(cwd)


@router.get("/roles/page", summary="A role with its prompt")
def role(service: Asked, name: str, cwd: MaybeFolder = None) -> RolePage:
    return service.role(cwd, name)


@router.get("/roles/text", summary="A role as it is written, or something to fill in")
def role_text(service: Asked, name: str, cwd: MaybeFolder = None, new: bool = False, like: str = "") -> DefinitionText:
    return service.definition("role", cwd, name, new, like)


@router.post("/roles", summary="Write a role of the person's own; what makes no sense is refused")
def save_role(wanted: SaveDefinition, service: Asked) -> Done:
    return service.save_definition("role", storable(wanted))


@router.delete("/roles", summary="Remove a role of the person's own; its text is kept aside")
def remove_role(service: Asked, name: str, cwd: MaybeFolder = None) -> Done:
    return service.remove_definition("role", cwd, name)
