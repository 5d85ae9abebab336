"""providers.toml next to the person's settings: the model providers, and where their keys come from. Never a key.

`legion provider` writes it; a person may too.
"""

from __future__ import annotations

import dataclasses
import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from legion.config.base import settings
from legion.config.base.settings import REQUIRED, choice, text, whole
from legion.config.base.source import read
from legion.domain.errors import BadInput, NotAllowed
from legion.system import files
from legion.system.paths import user_config_file

FILE = "providers.toml"
_HEADER = """\
# The providers of your models, and where their keys come from; never a key.
# `legion provider add` and `legion provider remove` rewrite this file: your comments do not stay.
"""


class ProviderApi(Enum):
    """Which API a provider speaks."""

    ANTHROPIC = "anthropic"
    OPENAI_CHAT = "openai_chat"
    OPENAI_RESPONSES = "openai_responses"


class ProviderAuth(Enum):
    """How a provider takes its key."""

    API_KEY = "x-api-key"
    BEARER = "bearer"
    OAUTH = "oauth"
    """A long-lived token of a Claude subscription."""
    COPILOT = "copilot"
    """The login of `legion provider login copilot`, exchanged for short-lived tokens."""


@dataclass(frozen=True, kw_only=True)
class ProviderConfig:
    url: str = text(
        REQUIRED,
        allowed="an http:// or https:// address",
        fits=lambda url: url.startswith(("https://", "http://")),
        help="Where it is reached.",
    )
    kind: ProviderApi = choice(ProviderApi.ANTHROPIC, help="Which API it speaks.")
    model: str = text(
        "",
        allowed="The model to request, whatever an agent names; empty: as requested.",
        help="The model that it is asked for, whatever an agent names; empty: that.",
    )
    longest: int = whole(
        0, 0, 10_000_000, help="Tokens that an answer may have, where agents request more; 0: any number."
    )
    at_once: int = whole(0, 0, 10_000, help="Requests that may be open at a time; 0: any number.")
    per_minute: int = whole(0, 0, 1_000_000, help="Requests that may start within a minute; 0: any number.")
    auth: ProviderAuth = choice(ProviderAuth.API_KEY, help="How it takes its key.")
    key_file: str = text("", allowed="a path", help="A file that holds the key, mode 0600.")
    key_env: str = text("", allowed="a name", help="An environment variable of the daemon that holds the key.")
    key_command: str = text("", allowed="a command line", help="A program that prints the key; no shell runs it.")
    key_keyring: str = text("", allowed='"yes" or empty', help="The key is in the system's keyring, under `legion`.")

    token_url: str = text(
        "",
        allowed="an http:// or https:// address, or empty",
        fits=lambda url: url.startswith(("https://", "http://")) or not url,
        help="Where a login is exchanged for a short-lived token.",
    )

    account_of: str = text(
        "",
        allowed="the name of another provider, or empty",
        help="Another login at that provider: a request that one of them refuses for its limit goes to the next.",
    )

    @property
    def key_argv(self) -> tuple[str, ...]:
        return tuple(shlex.split(self.key_command))


def providers_file() -> Path:
    return user_config_file().with_name(FILE)


def load(path: Path | None = None) -> Mapping[str, ProviderConfig]:
    """By name, in the order of the file; none where there is no file. Raises BadInput for the first fault."""
    path = path or providers_file()
    try:
        content = path.read_text("utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as fault:
        raise BadInput(f"{path} cannot be read ({fault}): fix or remove it.") from None
    return _parse(content, str(path))


def save(providers: Mapping[str, ProviderConfig], path: Path | None = None) -> None:
    """Write the file, in this order. Raises BadInput, and changes nothing, where a value could not be read again.

    Raises NotAllowed where the file cannot be written.
    """
    path = path or providers_file()
    content = _HEADER + "".join(_table(name, one) for name, one in providers.items())
    _parse(content, FILE)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        files.write_atomic(path, content)
    except OSError as fault:
        raise NotAllowed(f"{path} cannot be written ({fault.strerror}): make its folder writable.") from fault


def _parse(content: str, origin: str) -> Mapping[str, ProviderConfig]:
    source = read(content, origin)
    return {name: settings.read_section(ProviderConfig, source, [name]) for name in source.table}


def _table(name: str, one: ProviderConfig) -> str:
    defaults = {field.name: field.default for field in dataclasses.fields(ProviderConfig)}
    told = [(key, value) for key, value in settings.flatten("", one) if getattr(one, key) != defaults[key]]
    # A JSON string is a TOML string too, as long as no letter is escaped.
    lines = "".join(f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in told)
    return f"\n[{name}]\n{lines}"


@dataclass(frozen=True, kw_only=True)
class ProviderTemplate:
    """A provider known by name: its API, its address, and how it takes a key."""

    url: str
    kind: ProviderApi = ProviderApi.OPENAI_CHAT
    auth: ProviderAuth = ProviderAuth.BEARER


COPILOT_CLIENT = "Iv1.b507a08c87ecfe98"
"""The client id under which GitHub knows Copilot."""
COPILOT_TOKEN = "https://api.github.com/copilot_internal/v2/token"

TEMPLATES: Mapping[str, ProviderTemplate] = {
    "anthropic": ProviderTemplate(
        url="https://api.anthropic.com", kind=ProviderApi.ANTHROPIC, auth=ProviderAuth.API_KEY
    ),
    "openai": ProviderTemplate(url="https://api.openai.com/v1", kind=ProviderApi.OPENAI_RESPONSES),
    "openrouter": ProviderTemplate(url="https://openrouter.ai/api/v1"),
    "copilot": ProviderTemplate(url="https://api.githubcopilot.com", auth=ProviderAuth.COPILOT),
    "claude": ProviderTemplate(url="https://api.anthropic.com", kind=ProviderApi.ANTHROPIC, auth=ProviderAuth.OAUTH),
    "minimax": ProviderTemplate(url="https://api.minimax.io/anthropic", kind=ProviderApi.ANTHROPIC),
    "ollama": ProviderTemplate(url="http://127.0.0.1:11434/v1"),
    "vllm": ProviderTemplate(url="http://127.0.0.1:8000/v1"),
    "lmstudio": ProviderTemplate(url="http://127.0.0.1:1234/v1"),
}
