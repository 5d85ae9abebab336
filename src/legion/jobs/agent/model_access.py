"""Chooses how an agent reaches its model: through the gateway by a provider, or with the person's own login.

Only names and places of keys are handled here; only the gateway reads a key.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from legion.config.files import providers, routes
from legion.config.files.providers import ProviderConfig
from legion.config.files.routes import RouteConfig
from legion.config.sections.machine import NetworkMode
from legion.domain.errors import LegionError
from legion.drivers import registry
from legion.gateway import lifecycle
from legion.gateway.access.provider import (
    NO_KEY,
    KeyFrom,
    KeySource,
    KeyStyle,
    Provider,
    ProviderDialect,
    write_providers,
)
from legion.gateway.access.routing import GatewayRouteTarget, Route, write_routes
from legion.gateway.files.address import own_variables
from legion.gateway.files.folder import GatewayFolder
from legion.jobs.board import Board
from legion.jobs.trees import Trees

_AUTH = {
    providers.ProviderAuth.API_KEY: KeyStyle.API_KEY,
    providers.ProviderAuth.BEARER: KeyStyle.BEARER,
    providers.ProviderAuth.OAUTH: KeyStyle.BEARER,
    providers.ProviderAuth.COPILOT: KeyStyle.EXCHANGED,
}
_ANTHROPIC = "https://api.anthropic.com"
_FROM_ENVIRONMENT = {
    "ANTHROPIC_API_KEY": providers.ProviderAuth.API_KEY,
    "ANTHROPIC_AUTH_TOKEN": providers.ProviderAuth.BEARER,
    "CLAUDE_CODE_OAUTH_TOKEN": providers.ProviderAuth.OAUTH,
}


OWN_LOGIN = "your own login"
"""The account of a run without a provider."""


class NoModelAccess(LegionError):
    """No model can be reached; the message says what to do."""


@dataclass(frozen=True, kw_only=True)
class GatewayAccess:
    """Through the gateway, by this provider."""

    provider: str
    auth: providers.ProviderAuth

    @property
    def label(self) -> str:
        """As the run's row stores it."""
        return self.provider


@dataclass(frozen=True, kw_only=True)
class OwnLogin:
    """With the person's own login, which the agent can then read."""

    credentials: Path
    label: ClassVar[str] = "your own Claude login, which the agent can read"


OWN_ACCOUNT = "an account of its own, which Legion does not see"
"""The access of a program outside the gateway, as the run's row stores it."""
Access = GatewayAccess | OwnLogin


def known(context: Board) -> Mapping[str, ProviderConfig]:
    """The person's providers; where there are none, what their environment offers."""
    return providers.load() or _offered()


def choose(context: Trees, wanted: str = "", *, takes_login: bool = True) -> Access:
    """The wanted provider, else the settings' choice, else the first one, else the login. Raises NoModelAccess."""
    there = known(context)
    name = wanted or context.user.claude.provider
    if name:
        if name not in there:
            listed = ", ".join(there) or "none yet"
            raise NoModelAccess(
                f"There is no provider {name} (there is {listed}): add it with `legion provider add {name}`."
            )
        return GatewayAccess(provider=name, auth=there[name].auth)
    for name, first in there.items():
        return GatewayAccess(provider=name, auth=first.auth)
    login = own_login()
    if login is None:
        login_too = ", or log in with `claude`" if takes_login else ""
        raise NoModelAccess(f"No model can be reached yet: run `legion provider add anthropic`{login_too}.")
    settings = context.user.sandbox
    if settings.network is NetworkMode.NONE and not settings.is_off and context.sandbox.works:
        raise NoModelAccess(
            'With `network = "none"` under [sandbox] only a provider can be reached: `legion provider add anthropic`.'
        )
    return OwnLogin(credentials=login)


def own_login() -> Path | None:
    """The person's interactive login, where there is one."""
    path = login_file()
    return path if path.is_file() else None


def login_file() -> Path:
    """Where the default driver's program keeps the person's interactive login."""
    path = registry.default().login_file()
    assert path is not None, "the default driver's program has a login"
    return path


def key_found(context: Board, one: ProviderConfig) -> bool | None:
    """Whether the key exists; None where only the keyring could tell. No key is read and no command is run.

    Variables are searched for where the key is used: in the running gateway, which may be older than this daemon.
    """
    if one.key_file:
        return Path(one.key_file).expanduser().is_file()
    if one.key_env:
        gateway = lifecycle.address(GatewayFolder(context.data.gateway))
        return one.key_env in (own_variables() if gateway is None else gateway.variables)
    if one.key_command:
        return shutil.which(next(iter(one.key_argv), "")) is not None
    return None if one.key_keyring else True


def key_advice(name: str, one: ProviderConfig) -> str:
    """What to do where a key is missing."""
    if one.key_env:
        shell = "set it, then `legion down` and `legion up` in that shell"
        return f"{one.key_env} is not set where the daemon was started: {shell}."
    return f"The key of {name} is not there: `legion provider add {name}` gives it a key."


def write_gateway_files(context: Board) -> GatewayFolder:
    """Write the current providers and routes for the gateway."""
    folder = GatewayFolder(context.data.gateway)
    folder.prepare()
    write_providers(folder, [_provider(name, one) for name, one in known(context).items()])
    write_routes(folder, known_routes())
    return folder


def known_routes() -> tuple[Route, ...]:
    """The person's routes in the gateway's form, and the rotation between logins of one provider. Raises BadInput where
    a file cannot be parsed.
    """
    groups = account_groups(providers.load())
    named = tuple(_with_accounts(_route(one), groups) for one in routes.load())
    rotation = (Route(provider=name, to=(GatewayRouteTarget(provider=name),)) for name in groups)
    return (*named, *(_with_accounts(one, groups) for one in rotation))


def account_groups(there: Mapping[str, ProviderConfig]) -> dict[str, tuple[str, ...]]:
    """By name of a provider with several logins: all of them in the order of the file, that one first."""
    members: dict[str, list[str]] = {}
    for name, one in there.items():
        members.setdefault(one.account_of or name, []).append(name)
    several = [group for group in members.values() if len(group) > 1]
    return {name: (name, *(other for other in group if other != name)) for group in several for name in group}


def _with_accounts(route: Route, groups: Mapping[str, tuple[str, ...]]) -> Route:
    """Each target followed by the other logins of its provider."""
    to = [
        replace(target, provider=name)
        for target in route.to
        for name in groups.get(target.provider, (target.provider,))
    ]
    return replace(route, to=tuple(dict.fromkeys(to)))


def refresh_gateway_variables(context: Board, changed: str = "") -> None:
    """Replace a running gateway that lacks a key's variable that we have, or has an old value of the changed one.

    A gateway outlives the daemon that started it, and keeps that daemon's environment.
    """
    folder = GatewayFolder(context.data.gateway)
    gateway, ours = lifecycle.address(folder), own_variables()
    if gateway is None:
        return
    wanted = {one.key_env for one in known(context).values()} & ours
    if not wanted <= gateway.variables or changed in ours:
        write_gateway_files(context)
        lifecycle.replace(folder, context.user.daemon.gateway_port)


def _offered() -> Mapping[str, ProviderConfig]:
    for variable, auth in _FROM_ENVIRONMENT.items():
        if os.environ.get(variable):
            url = os.environ.get("ANTHROPIC_BASE_URL") or _ANTHROPIC
            return {"anthropic": ProviderConfig(url=url, auth=auth, key_env=variable)}
    return {}


def _provider(name: str, one: ProviderConfig) -> Provider:
    return Provider(
        name=name,
        url=one.url.rstrip("/"),
        key=_key(one),
        auth=_AUTH[one.auth],
        token_url=one.token_url,
        kind=ProviderDialect(one.kind.value),
        models={"*": one.model} if one.model else {},
        longest=one.longest or None,
        at_once=one.at_once or None,
        per_minute=one.per_minute or None,
    )


def _route(one: RouteConfig) -> Route:
    to = tuple(GatewayRouteTarget(provider=target.provider, model=target.model) for target in one.to)
    return Route(
        model=one.model,
        provider=one.provider,
        agent=one.agent or "*",
        role=one.role or "*",
        team=one.team or "*",
        most_usd=one.most_usd,
        to=to,
    )


def _key(one: ProviderConfig) -> KeySource:
    if one.key_file:
        return KeySource(origin=KeyFrom.FILE, where=str(Path(one.key_file).expanduser()))
    if one.key_env:
        return KeySource(origin=KeyFrom.ENV, where=one.key_env)
    if one.key_command:
        return KeySource(origin=KeyFrom.COMMAND, argv=one.key_argv)
    return KeySource(origin=KeyFrom.KEYRING) if one.key_keyring else NO_KEY
