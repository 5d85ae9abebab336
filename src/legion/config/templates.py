"""Providers that are known by name: what they speak, where they are, how they want to see a key. Data only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from legion.config.providers import Auth, Kind


@dataclass(frozen=True, kw_only=True)
class Template:
    url: str
    kind: Kind = Kind.OPENAI_CHAT
    auth: Auth = Auth.BEARER


COPILOT_CLIENT = "Iv1.b507a08c87ecfe98"
"""Under which GitHub knows who asks for Copilot."""
COPILOT_TOKEN = "https://api.github.com/copilot_internal/v2/token"

TEMPLATES: Mapping[str, Template] = {
    "anthropic": Template(url="https://api.anthropic.com", kind=Kind.ANTHROPIC, auth=Auth.API_KEY),
    "openai": Template(url="https://api.openai.com/v1", kind=Kind.OPENAI_RESPONSES),
    "openrouter": Template(url="https://openrouter.ai/api/v1"),
    "copilot": Template(url="https://api.githubcopilot.com", auth=Auth.COPILOT),
    "claude": Template(url="https://api.anthropic.com", kind=Kind.ANTHROPIC, auth=Auth.OAUTH),
    "minimax": Template(url="https://api.minimax.io/anthropic", kind=Kind.ANTHROPIC),
    "ollama": Template(url="http://127.0.0.1:11434/v1"),
    "vllm": Template(url="http://127.0.0.1:8000/v1"),
    "lmstudio": Template(url="http://127.0.0.1:1234/v1"),
}
