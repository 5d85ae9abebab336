"""Providers known by name: their API, address, and how they take a key. Data only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from legion.config.files.providers import ProviderApi, ProviderAuth


@dataclass(frozen=True, kw_only=True)
class ProviderTemplate:
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
