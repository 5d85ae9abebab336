"""Model providers and the places of their keys: data that the daemon writes and the gateway reads. Holds no key."""

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
    """The dialect of a provider's API."""

    ANTHROPIC = "anthropic"
    """Anthropic's Messages API."""
    OPENAI_CHAT = "openai_chat"
    """OpenAI's Chat Completions API."""
    OPENAI_RESPONSES = "openai_responses"
    """OpenAI's Responses API."""


class KeyStyle(Enum):
    """How a provider expects its key."""

    API_KEY = "x-api-key"
    BEARER = "bearer"
    EXCHANGED = "exchanged"
    """Exchanged for a bearer token that is valid for minutes."""


class KeyFrom(Enum):
    FILE = "file"
    """A file that only the person can read."""
    ENV = "env"
    """A variable in the gateway's own environment."""
    COMMAND = "command"
    """The output of a program."""
    KEYRING = "keyring"
    """The system's keyring, service `legion`, user: the provider's name."""
    NONE = "none"
    """The provider needs no key."""


@dataclass(frozen=True, kw_only=True)
class KeySource:
    """The place where the gateway looks up a key."""

    origin: KeyFrom
    where: str = ""
    """The file's path or the variable's name."""
    argv: tuple[str, ...] = ()
    """The command; it is run without a shell."""

    def __post_init__(self) -> None:
        needed = {KeyFrom.FILE: self.where, KeyFrom.ENV: self.where, KeyFrom.COMMAND: self.argv}
        if not needed.get(self.origin, True):
            raise BadInput(f'A key from "{self.origin.value}" needs a place: name the file, variable or command.')


NO_KEY = KeySource(origin=KeyFrom.NONE)


@dataclass(frozen=True, kw_only=True)
class Provider:
    name: str
    url: str
    key: KeySource
    kind: ProviderDialect = ProviderDialect.ANTHROPIC
    auth: KeyStyle = KeyStyle.API_KEY
    models: Mapping[str, str] = field(default_factory=dict)
    """The provider's names for models that agents ask for; `*` stands for any characters. Others are sent unchanged."""
    longest: int | None = None
    """Maximal tokens of an answer that is translated; None: as many as the caller asks for."""
    at_once: int | None = None
    """Requests that may be open at the same time; None: any number."""
    per_minute: int | None = None
    """Requests that may start within a minute; None: any number."""
    token_url: str = ""
    """The URL that exchanges the key, for KeyStyle.EXCHANGED."""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise BadInput(
                f"{self.name!r} cannot name a provider: use a-z, 0-9, - and _, starting with a letter or digit."
            )
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise BadInput(
                f"The URL of provider {self.name} must look like https://api.example.com, without query or fragment."
            )
        if parts.username is not None or parts.password is not None:
            raise BadInput(f"The URL of provider {self.name} holds a login: remove it and name a key instead.")

    def model_for(self, asked: str) -> str:
        """The provider's name for the model."""
        if asked in self.models:
            return self.models[asked]
        fitting = [pattern for pattern in self.models if "*" in pattern and fnmatchcase(asked, pattern)]
        return self.models[max(fitting, key=len)] if fitting else asked

    def place(self, path: str) -> str:
        """The URL of a path of the API. For OpenAI's APIs the version may be part of the provider's URL already."""
        url = self.url.rstrip("/")
        if self.kind is ProviderDialect.ANTHROPIC:
            return url + path
        plain = not urlsplit(url).path and self.auth is not KeyStyle.EXCHANGED
        return url + (path if plain else path.removeprefix("/v1"))


def write_providers(folder: GatewayFolder, providers: Iterable[Provider]) -> None:
    """Replace the gateway's providers. A running gateway uses them from its next request on."""
    facts = {provider.name: _to_json(provider) for provider in providers}
    files.write_atomic(folder.providers, json.dumps({"version": VERSION, "providers": facts}, indent=1))


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
        key = KeySource(origin=origin, argv=tuple(str(one) for one in where))
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
