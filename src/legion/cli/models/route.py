"""`legion route` and `legion models`: which model is asked where, and which there are."""

from __future__ import annotations

from collections.abc import Iterator

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.output import Cell, Colour, Screen, harmless
from legion.cli.base.progress import progress
from legion.cli.base.texts import checked
from legion.cli.models.provider import names
from legion.wire.projects import Done
from legion.wire.providers import Models, RemoveRoute, RouteLine, Routes, SetRoute

_SET = """\
legion route set 'claude-haiku-*' ollama/qwen3-coder
legion route set 'claude-*' anthropic openrouter/anthropic/claude-sonnet-4.5
legion route set '*' ollama/qwen3-coder --role qa
legion route set 'claude-*' anthropic openrouter/z-ai/glm-4.6 --most-usd 5"""


@click.group(
    "route",
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="\b\nExample:\n  legion route set 'claude-haiku-*' ollama/qwen3-coder\n  legion route list",
)
@click.pass_context
def route(ctx: click.Context) -> None:
    """Which model is asked where: set, list, remove.

    Without a route every model is asked for at the provider of the run.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@command("set", example=_SET)
@click.argument("model", metavar="MODEL")
@click.argument("to", metavar="PROVIDER[/MODEL]...", nargs=-1, required=True)
@click.option("--provider", default="", metavar="NAME", shell_complete=names, help="Only for runs with this provider.")
@click.option("--agent", default="", metavar="NAME", help="Only for runs of this agent, by its conversation.")
@click.option("--role", default="", metavar="NAME", help="Only for agents in this role, such as engineer or qa.")
@click.option("--team", default="", metavar="NAME", help="Only for agents of this team.")
@click.option(
    "--most-usd", type=float, default=None, metavar="USD", help="Pass over who costs more per million tokens written."
)
def set_route(call: CommandCall, model: str, to: tuple[str, ...], most_usd: float | None, **labels: str) -> None:
    """Ask for a model at these providers.

    `*` in MODEL and in names stands for any letters. The next provider is asked where one is at its limit, overloaded
    or does not answer, and a conversation stays where it was answered. The first route that fits counts; a new one
    goes before all others.
    """
    wanted = SetRoute(
        model=checked(model, "MODEL"),
        to=[checked(one, "PROVIDER") for one in to],
        most_usd=most_usd,
        **{label: checked(name, f"--{label}") for label, name in labels.items()},
    )
    _tell(call, call.legion().set_route(wanted))


@command("list", example="legion route list")
def listed(call: CommandCall) -> None:
    """All routes; the first that fits counts."""
    found = call.legion().routes()
    call.answer(found, lambda: _table(found, call.screen))


def _table(found: Routes, screen: Screen) -> Iterator[str]:
    if not found.routes:
        yield "No route: every model is asked for at the provider of the run."
        return
    rows = [
        [
            Cell(harmless(line.model), Colour.BOLD),
            Cell(harmless(", then ".join(line.to))),
            Cell(harmless(_limits(line)), Colour.DIM),
        ]
        for line in found.routes
    ]
    yield from screen.table(rows, indent=0)
    yield screen.line(Cell(f"in {harmless(found.file)}", Colour.DIM))


def _limits(line: RouteLine) -> str:
    """Which runs it is for, and up to which price."""
    words = {"provider": line.provider, "agent": line.agent, "role": line.role, "team": line.team}
    said = [f"{name} {word}" for name, word in words.items() if word]
    price = [] if line.most_usd is None else [f"up to ${line.most_usd:g}"]
    return ", ".join([*said, *price])


@command("remove", example="legion route remove 'claude-haiku-*'")
@click.argument("model", metavar="MODEL")
@click.option("--provider", default="", metavar="NAME", shell_complete=names, help="That for runs with this provider.")
@click.option("--agent", default="", metavar="NAME", help="That for this agent.")
@click.option("--role", default="", metavar="NAME", help="That for this role.")
@click.option("--team", default="", metavar="NAME", help="That for this team.")
def remove(call: CommandCall, model: str, **labels: str) -> None:
    """Remove a route."""
    told = {label: checked(name, f"--{label}") for label, name in labels.items()}
    wanted = RemoveRoute(model=checked(model, "MODEL"), **told)
    _tell(call, call.legion().remove_route(wanted))


@command("models", example="legion models\nlegion models ollama")
@click.argument("name", metavar="[PROVIDER]", required=False, default="", shell_complete=names)
def models(call: CommandCall, name: str) -> None:
    """The models that your providers have.

    They are asked now, through the gateway.
    """
    with progress("Asking for models"):
        found = call.legion().models(checked(name, "PROVIDER"))
    call.answer(found, lambda: _models(found, call.screen))


def _models(found: Models, screen: Screen) -> Iterator[str]:
    if not found.providers:
        yield "No provider yet: `legion provider add anthropic` adds one."
    for one in found.providers:
        yield screen.line(Cell(harmless(one.provider), Colour.BOLD))
        if one.trouble:
            yield screen.line(Cell(f"  {harmless(one.trouble)}", Colour.RED))
        for name in one.models:
            yield f"  {harmless(name)}"


def _tell(call: CommandCall, done: Done) -> None:
    call.answer(done, lambda: [harmless(done.message)])


for _one in (set_route, listed, remove):
    route.add_command(_one)
