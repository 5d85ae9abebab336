"""Agents, providers and models as a table: what answers for each role and each standing agent, and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from legion.client.text.rows import BLANK, Row, clean, head, paragraph, table
from legion.client.text.terminal import Cell, Colour
from legion.wire.agents import AgentList
from legion.wire.providers import Models, Providers, RouteLine, Routes
from legion.wire.teams import Roles

ANY = "*"
"""The model of a route that decides for an agent, whatever model it names."""
AS_BEFORE = "-"
_EVERYONE = "every agent"


@dataclass(frozen=True, kw_only=True)
class ModelTable:
    """What the table is made of."""

    routes: Routes
    roles: Roles
    agents: AgentList
    providers: Providers


@dataclass(frozen=True, kw_only=True)
class ModelRow:
    """A row: every agent, those of a role, or one standing agent."""

    key: str
    name: str
    provider: str
    model: str
    origin: str
    agent: str = ""
    role: str = ""

    @property
    def target(self) -> str:
        """As a route names it."""
        return f"{self.provider}/{self.model}" if self.model else self.provider


def users(found: ModelTable) -> Iterator[ModelRow]:
    default = next((one for one in found.providers.providers if one.default), None)
    origin = "the default provider" if default else "no provider is set up"
    yield _user(found, "all", _EVERYONE, default.name if default else "none", "", origin)
    for role in found.roles.roles:
        origin = "its role" if role.provider or role.model else f"as {_EVERYONE}"
        yield _user(found, f"role {role.name}", role.name, role.provider, role.model, origin, role=role.name)
    for agent in found.agents.agents:
        if agent.fired_at is None:
            origin = "its hire" if agent.model else f"as {_EVERYONE}"
            yield _user(found, f"agent {agent.id}", agent.name, "", agent.model, origin, agent=agent.id)


def _user(
    found: ModelTable, key: str, name: str, provider: str, model: str, origin: str, *, agent: str = "", role: str = ""
) -> ModelRow:
    route = _decides(found.routes, agent, role)
    if route is not None:
        provider, _, model = route.to[0].partition("/")
        origin = "set here" if len(route.to) == 1 else f"set here, then {', then '.join(route.to[1:])}"
    return ModelRow(key=key, name=name, provider=provider, model=model, origin=origin, agent=agent, role=role)


def _decides(routes: Routes, agent: str, role: str) -> RouteLine | None:
    return next((one for one in routes.routes if _is_of_table(one) and (one.agent, one.role) == (agent, role)), None)


def _is_of_table(one: RouteLine) -> bool:
    return one.model == ANY and not (one.provider or one.team or (one.agent and one.role)) and bool(one.to)


def user_of(found: ModelTable, key: str) -> ModelRow | None:
    return next((one for one in users(found) if one.key == key), None)


def route_of(found: ModelTable, key: str) -> RouteLine | None:
    """The route behind a row of either table."""
    if key.startswith("route "):
        return found.routes.routes[int(key.removeprefix("route "))]
    user = user_of(found, key)
    return _decides(found.routes, user.agent, user.role) if user is not None else None


def targets(found: ModelTable, offered: Models | None, *, has_route: bool) -> list[tuple[str, str]]:
    """What can be chosen, as (value, text)."""
    made = [(AS_BEFORE, "no choice of your own: as its role, its hire or the default says")] if has_route else []
    known = {one.provider: one.models for one in offered.providers} if offered is not None else {}
    for provider in found.providers.providers:
        made.append((provider.name, f"{provider.name}, with the model that the agent names"))
        made += [(f"{provider.name}/{model}", f"{provider.name}/{model}") for model in known.get(provider.name, ())]
    return made


def rows(found: ModelTable, offered: Models | None, width: int) -> list[Row]:
    titles = [Cell(text, Colour.DIM) for text in ("agent", "provider", "model", "because")]
    lines = [
        (
            one.key,
            [
                Cell(clean(one.name), Colour.BOLD),
                Cell(clean(one.provider) or "the same", Colour.NONE if one.provider else Colour.DIM),
                Cell(clean(one.model) or "its own", Colour.CYAN if one.model else Colour.DIM),
                Cell(clean(one.origin), Colour.DIM),
            ],
        )
        for one in users(found)
    ]
    made = table([("", titles), *lines], width, keep=3)
    made += [BLANK, *paragraph("Enter changes a row; it counts for the next request.", width, colour=Colour.DIM)]
    others = [(n, one) for n, one in enumerate(found.routes.routes) if not _is_of_table(one)]
    if others:
        made += [BLANK, head("Other routes"), *table([_route(n, one) for n, one in others], width, indent=2, keep=1)]
    made += [BLANK, head("Models of your providers")]
    if offered is None:
        return [*made, *paragraph("Asking the providers.", width, indent=2, colour=Colour.DIM)]
    for one in offered.providers:
        text = one.trouble or ", ".join(one.models) or "it lists none"
        colour = Colour.YELLOW if one.trouble else Colour.NONE
        made += paragraph(f"{one.provider}: {text}", width, indent=2, colour=colour)
    return made


def _route(number: int, one: RouteLine) -> tuple[str, list[Cell]]:
    labels = (("agent", one.agent), ("role", one.role), ("team", one.team), ("provider", one.provider))
    only = ", ".join(f"{name} {clean(value)}" for name, value in labels if value)
    cells = [
        Cell(clean(one.model), Colour.BOLD),
        Cell(f"→ {clean(', '.join(one.to))}"),
        Cell(f"only {only}" if only else "", Colour.DIM),
    ]
    return f"route {number}", cells
