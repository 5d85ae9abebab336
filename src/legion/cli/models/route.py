"""`legion provider route` and `legion provider models`: routes from models to providers, and the models that exist."""

from __future__ import annotations

import click

from legion.cli.base.command import group
from legion.cli.base.parameters import COMPLETIONS
from legion.cli.base.row_command import row_command
from legion.client.text.providers import model_rows, route_rows
from legion.wire.providers import ProviderRows

_SET = """\
legion provider route set 'claude-haiku-*' ollama/qwen3-coder
legion provider route set 'claude-*' anthropic openrouter/anthropic/claude-sonnet-4.5
legion provider route set '*' ollama/qwen3-coder --role qa
legion provider route set 'claude-*' anthropic openrouter/z-ai/glm-4.6 --most-usd 5"""


route = group(
    "route",
    """Routes from models to providers: set, list, remove.

Without a route every request goes to the provider of the run.
""",
    "legion provider route set 'claude-haiku-*' ollama/qwen3-coder\nlegion provider route list",
    row_command("set", ProviderRows.set_route, _SET),
    row_command("list", ProviderRows.routes, "legion provider route list", shows=route_rows),
    row_command("remove", ProviderRows.remove_route, "legion provider route remove 'claude-haiku-*'"),
)
_PROVIDER = click.Argument(["name"], metavar="[PROVIDER]", default="", shell_complete=COMPLETIONS["providers"])
models = row_command(
    "models",
    ProviderRows.models,
    "legion provider models\nlegion provider models ollama",
    _PROVIDER,
    shows=model_rows,
    waiting="Asking for models",
)
