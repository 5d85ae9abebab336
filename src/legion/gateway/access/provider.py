"""Model providers as the person defined them, and where the gateway finds their keys. Never a key itself."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from legion.domain.errors import BadInput
from legion.gateway.files.folder import VERSION, Damaged, GatewayFolder, parse
from legion.system import files

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")


class ProviderDialect(Enum):
    """The dialect that a provider speaks."""

    ANTHROPIC = "anthropic"
    """Anthropic's Messages API."""
    OPENAI_CHAT = "openai_chat"
    """OpenAI's Chat Completions API."""
    OPENAI_RESPONSES = "openai_responses"
    """OpenAI's Responses API."""


class KeyStyle(Enum):
    """How the provider wants to see its key."""

    API_KEY = "x-api-key"
    BEARER = "bearer"
    EXCHANGED = "exchanged"
    """As a bearer for which it was exchanged, good for minutes."""


class KeyFrom(Enum):
    FILE = "file"
    """A file of the person's that nobody else can read."""
    ENV = "env"
    """A variable in the gateway's own environment."""
    COMMAND = "command"
    """What a program prints."""
    KEYRING = "keyring"
    """The system's keyring, service `legion`, user: the provider's name."""
    NONE = "none"
    """The provider asks for no key."""


@dataclass(frozen=True, kw_only=True)
class KeySource:
    """Where the gateway looks up a key."""

    origin: KeyFrom
    where: str = ""
    """The file's path or the variable's name."""
    argv: tuple[str, ...] = ()
    """The words of the command; no shell sees them."""

    def __post_init__(self) -> None:
        wanted = {KeyFrom.FILE: self.where, KeyFrom.ENV: self.where, KeyFrom.COMMAND: self.argv}
        if not wanted.get(self.origin, True):
            raise BadInput(f'A key from "{self.origin.value}" needs to say where: name the file, variable or command.')


NO_KEY = KeySource(origin=KeyFrom.NONE)


@dataclass(frozen=True, kw_only=True)
class Provider:
    name: str
    url: str
    key: KeySource
    kind: ProviderDialect = ProviderDialect.ANTHROPIC
    auth: KeyStyle = KeyStyle.API_KEY
    models: Mapping[str, str] = field(default_factory=dict)
    """Its own names for models that agents ask for; `*` stands for any letters. Others are passed on as they are."""
    longest: int | None = None
    """Tokens that an answer of it may have, where that is translated; None: as many as the caller names."""
    at_once: int | None = None
    """Requests that may be open at a time; None: any number."""
    per_minute: int | None = None
    """Requests that may begin within a minute; None: any number."""
    token_url: str = ""
    """Where the key is exchanged, with Auth.EXCHANGED."""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise BadInput(
                f"{self.name!r} is no name for a provider: use small letters, digits, - and _, a letter or digit first."
            )
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise BadInput(
                f"The URL of provider {self.name} must look like https://api.example.com, with nothing after."
            )
        if parts.username is not None or parts.password is not None:
            raise BadInput(f"The URL of provider {self.name} holds a login: take it out and name a key instead.")

    def model_for(self, asked: str) -> str:
        """The name under which it knows the model."""
        if asked in self.models:
            return self.models[asked]
        fitting = [pattern for pattern in self.models if "*" in pattern and fnmatchcase(asked, pattern)]
        return self.models[max(fitting, key=len)] if fitting else asked

    def place(self, path: str) -> str:
        """The address of a path of its API. OpenAI's kind have the version in their address, and may leave out `v1`."""
        url = self.url.rstrip("/")
        if self.kind is ProviderDialect.ANTHROPIC:
            return url + path
        plain = not urlsplit(url).path and self.auth is not KeyStyle.EXCHANGED
        return url + (path if plain else path.removeprefix("/v1"))


def write_providers(folder: GatewayFolder, providers: Iterable[Provider]) -> None:
    """Replace what the gateway knows. A running gateway sees it with its next request."""
    facts = {provider.name: _to_json(provider) for provider in providers}
    files.write_whole(folder.providers, json.dumps({"version": VERSION, "providers": facts}, indent=1))


def parse_providers(content: bytes, path: Path) -> dict[str, Provider]:
    facts = parse(content, path)
    try:
        return {name: _from_json(name, one) for name, one in facts["providers"].items()}
    except (AttributeError, KeyError, TypeError, ValueError):
        raise Damaged(f"{path} is damaged: have the daemon write it again.") from None


def _to_json(provider: Provider) -> dict[str, Any]:
    key = provider.key
    where = list(key.argv) if key.origin is KeyFrom.COMMAND else key.where
    return {
        "kind": provider.kind.value,
        "url": provider.url,
        "key": {"from": key.origin.value, "where": where},
        "auth": provider.auth.value,
        "models": dict(provider.models),
        "longest": provider.longest,
        "at_once": provider.at_once,
        "per_minute": provider.per_minute,
        "token_url": provider.token_url,
    }


def _from_json(name: str, facts: dict[str, Any]) -> Provider:
    origin, where = KeyFrom(facts["key"]["from"]), facts["key"]["where"]
    if origin is KeyFrom.COMMAND:
        key = KeySource(origin=origin, argv=tuple(str(word) for word in where))
    else:
        key = KeySource(origin=origin, where=str(where))
    return Provider(
        name=name,
        url=facts["url"],
        key=key,
        kind=ProviderDialect(facts["kind"]),
        auth=KeyStyle(facts["auth"]),
        models=dict(facts["models"]),
        longest=facts.get("longest"),
        at_once=facts.get("at_once"),
        per_minute=facts.get("per_minute"),
        token_url=facts.get("token_url", ""),
    )
