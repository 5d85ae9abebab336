"""`legion provider route` and `legion provider models`: routes from models to providers, and the models that exist."""

from __future__ import annotations

import click

from legion.cli.base.command import CommandCall, command, group
from legion.cli.base.progress import progress
from legion.cli.models.provider import names
from legion.client.text.providers import model_rows, route_rows
from legion.wire.providers import RemoveRoute, SetRoute

_SET = """\
legion provider route set 'claude-haiku-*' ollama/qwen3-coder
legion provider route set 'claude-*' anthropic openrouter/anthropic/claude-sonnet-4.5
legion provider route set '*' ollama/qwen3-coder --role qa
legion provider route set 'claude-*' anthropic openrouter/z-ai/glm-4.6 --most-usd 5"""


@command("set", example=_SET)
@click.argument("model", metavar="MODEL")
@click.argument("to", metavar="PROVIDER[/MODEL]...", nargs=-1, required=True)
@click.option("--provider", default="", metavar="NAME", shell_complete=names, help="Only for runs with this provider.")
@click.option("--agent", default="", metavar="NAME", help="Only for this standing agent, or a ticket's conversation.")
@click.option("--role", default="", metavar="NAME", help="Only for agents in this role, such as engineer or qa.")
@click.option("--team", default="", metavar="NAME", help="Only for agents of this team.")
@click.option(
    "--most-usd",
    type=float,
    default=None,
    metavar="USD",
    help="Skip providers that cost more per million output tokens.",
)
def set_route(call: CommandCall, model: str, to: tuple[str, ...], most_usd: float | None, **labels: str) -> None:
    """Send requests for a model to these providers.

    `*` in MODEL and in names matches any letters. If a provider is at its limit, overloaded or does not answer, the
    next one is used, and a conversation stays with the provider that answered it. The first route that matches counts;
    a new one goes before all others, but behind those that are for fewer runs.
    """
    wanted = SetRoute(
        model=model,
        to=list(to),
        most_usd=most_usd,
        **labels,
    )
    call.report(call.legion().set_route(wanted))


@command("list", example="legion provider route list")
def listed(call: CommandCall) -> None:
    """List all routes; the first that matches counts."""
    found = call.legion().routes()
    call.show(found, route_rows)


@command("remove", example="legion provider route remove 'claude-haiku-*'")
@click.argument("model", metavar="MODEL")
@click.option(
    "--provider", default="", metavar="NAME", shell_complete=names, help="The route for runs with this provider."
)
@click.option("--agent", default="", metavar="NAME", help="The route for this agent.")
@click.option("--role", default="", metavar="NAME", help="The route for this role.")
@click.option("--team", default="", metavar="NAME", help="The route for this team.")
def remove(call: CommandCall, model: str, **labels: str) -> None:
    """Remove a route."""
    wanted = RemoveRoute(model=model, **labels)
    call.report(call.legion().remove_route(wanted))


@command("models", example="legion provider models\nlegion provider models ollama")
@click.argument("name", metavar="[PROVIDER]", required=False, default="", shell_complete=names)
def models(call: CommandCall, name: str) -> None:
    """List the models of your providers.

    The gateway asks the providers for them now.
    """
    with progress("Asking for models"):
        found = call.legion().models(name)
    call.show(found, model_rows)


route = group(
    "route",
    """Routes from models to providers: set, list, remove.

Without a route every request goes to the provider of the run.
""",
    "legion provider route set 'claude-haiku-*' ollama/qwen3-coder\nlegion provider route list",
    set_route,
    listed,
    remove,
)
