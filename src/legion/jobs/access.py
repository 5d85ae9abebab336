"""How an agent reaches its model: through the gateway with a provider of the person's, or with the person's own login.

Only names and places of keys pass through here; the gateway alone reads a key.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from legion.config import providers as config
from legion.config import routes
from legion.config.providers import ProviderConfig
from legion.config.routes import RouteConfig
from legion.config.user import Network, SandboxMode
from legion.domain.errors import LegionError
from legion.gateway.folder import GatewayFolder
from legion.gateway.provider import NO_KEY, Auth, KeyFrom, KeySource, Kind, Provider, write_providers
from legion.gateway.routing import Route, Target, write_routes
from legion.jobs.world import World

_ANTHROPIC = "https://api.anthropic.com"
_FROM_ENVIRONMENT = {
    "ANTHROPIC_API_KEY": config.Auth.API_KEY,
    "ANTHROPIC_AUTH_TOKEN": config.Auth.BEARER,
    "CLAUDE_CODE_OAUTH_TOKEN": config.Auth.OAUTH,
}


class NoAccess(LegionError):
    """There is no way to a model; the message says what to do."""


@dataclass(frozen=True, kw_only=True)
class Served:
    """Through the gateway, by this provider."""

    provider: str
    auth: config.Auth

    @property
    def words(self) -> str:
        return self.provider


@dataclass(frozen=True, kw_only=True)
class OwnLogin:
    """With the person's own login, which the agent can then read."""

    credentials: Path

    @property
    def words(self) -> str:
        return "your own Claude login, which the agent can read"


Access = Served | OwnLogin


def known(world: World) -> Mapping[str, ProviderConfig]:
    """The person's providers; where there are none, what their environment offers."""
    return config.load() or _offered()


def choose(world: World, wanted: str = "") -> Access:
    """The provider that is wanted, else the settings' choice, else the only one, else the login. Raises NoAccess."""
    _refuse_cut_off(world)
    there = known(world)
    name = wanted or world.user.claude.provider
    if name:
        if name not in there:
            listed = ", ".join(there) or "none yet"
            raise NoAccess(
                f"There is no provider {name} (there is {listed}): add it with `legion provider add {name}`."
            )
        return Served(provider=name, auth=there[name].auth)
    if len(there) == 1:
        ((name, only),) = there.items()
        return Served(provider=name, auth=only.auth)
    if there:
        raise NoAccess(f"Which provider: {', '.join(there)}? Name one as `provider` under [claude] in your settings.")
    login = own_login()
    if login is None:
        raise NoAccess("There is no way to a model yet: run `legion provider add anthropic`, or log in with `claude`.")
    return OwnLogin(credentials=login)


def own_login() -> Path | None:
    """The person's interactive login, as Claude Code keeps it."""
    folder = Path(os.environ.get("CLAUDE_CONFIG_DIR") or Path.home() / ".claude")
    path = folder / ".credentials.json"
    return path if path.is_file() else None


def tell_gateway(world: World) -> GatewayFolder:
    """Let the gateway know the providers and routes as they are now."""
    folder = GatewayFolder(world.data.gateway)
    folder.prepare()
    write_providers(folder, [_provider(name, one) for name, one in known(world).items()])
    write_routes(folder, [_route(one) for one in routes.load()])
    return folder


def _offered() -> Mapping[str, ProviderConfig]:
    for variable, auth in _FROM_ENVIRONMENT.items():
        if os.environ.get(variable):
            url = os.environ.get("ANTHROPIC_BASE_URL") or _ANTHROPIC
            return {"anthropic": ProviderConfig(url=url, auth=auth, key_env=variable)}
    return {}


def _refuse_cut_off(world: World) -> None:
    walls = world.user.sandbox
    if walls.network is Network.NONE and walls.mode is not SandboxMode.OFF and world.sandbox.works:
        raise NoAccess('With `network = "none"` Claude Code cannot reach its model: set it to "open" under [sandbox].')


def _provider(name: str, one: ProviderConfig) -> Provider:
    return Provider(
        name=name,
        url=one.url.rstrip("/"),
        key=_key(one),
        auth=Auth.API_KEY if one.auth is config.Auth.API_KEY else Auth.BEARER,
        kind=Kind(one.kind.value),
        models={"*": one.model} if one.model else {},
        longest=one.longest or None,
        at_once=one.at_once or None,
        per_minute=one.per_minute or None,
    )


def _route(one: RouteConfig) -> Route:
    to = tuple(Target(provider=target.provider, model=target.model) for target in one.to)
    return Route(model=one.model, provider=one.provider, to=to)


def _key(one: ProviderConfig) -> KeySource:
    if one.key_file:
        return KeySource(origin=KeyFrom.FILE, where=str(Path(one.key_file).expanduser()))
    if one.key_env:
        return KeySource(origin=KeyFrom.ENV, where=one.key_env)
    if one.key_command:
        return KeySource(origin=KeyFrom.COMMAND, argv=one.key_argv)
    return KeySource(origin=KeyFrom.KEYRING) if one.key_keyring else NO_KEY
