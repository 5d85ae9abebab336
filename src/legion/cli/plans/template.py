"""`legion plan template`: list, show, check and run templates, and make one of an epic."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.output import Cell, Colour, Screen, count, sanitize, sanitize_lines
from legion.cli.base.parameters import completes, teams
from legion.cli.base.template_request import template_request
from legion.client.text.plans import page_rows
from legion.wire.errors import BadInput
from legion.wire.plans import PlanTicketLine
from legion.wire.templates import ExpandedTemplate, TemplateLine, TemplateList, TemplatePage

_names = completes(lambda legion: ((one.name, one.about) for one in legion.templates(str(Path.cwd())).templates))


@click.pass_context
def _help(ctx: click.Context) -> None:
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


template = click.Group(
    "template",
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="\b\nExample:\n  legion plan template list\n  legion plan template run bug --var bug='The cart loses items'",
    callback=_help,
)
template.help = """Templates of plans: list, show, check, run, from.

A template is a plan with variables. It becomes a plan, which you approve like any other.
"""

_VALUES = click.option(
    "--var", "values", metavar="K=V", multiple=True, help="A value for a variable; may be given again."
)


@command("list", example="legion plan template list")
def template_list(call: CommandCall) -> None:
    """All templates, and where each is defined."""
    found = call.legion().templates(call.cwd)
    call.answer(found, lambda: _list(found, call.screen))


@command(
    "show", example="legion plan template show bug\nlegion plan template show bug --text > .legion/templates/bug.toml"
)
@click.argument("name", metavar="NAME", shell_complete=_names)
@click.option("--text", is_flag=True, help="Only its text, for a file of your own.")
def template_show(call: CommandCall, name: str, text: bool) -> None:
    """A template with its variables and its text."""
    page = call.legion().template(call.cwd, name)
    call.answer(page, lambda: sanitize_lines(page.text) if text else _page(page, call.screen))


@command("check", example="legion plan template check bug\nlegion plan template check bug --var bug='It crashes'")
@click.argument("name", metavar="NAME", shell_complete=_names)
@_VALUES
def template_check(call: CommandCall, name: str, values: tuple[str, ...]) -> int:
    """Check a template: its form, what it extends, the order of its steps; with --var also what it expands to.

    Ends with 6 where something is wrong with what it expands to.
    """
    page = call.legion().template(call.cwd, name)
    if page.template.fault:
        raise BadInput(page.template.fault)
    needed = [one.name for one in page.template.variables if one.default is None]
    if not values and needed:
        call.answer(page, lambda: [f"{name} is a valid template. It needs {', '.join(needed)}."])
        return 0
    made = call.legion().run_template(template_request(call, name, values, dry_run=True))
    call.answer(made, lambda: _expanded(made, call.screen))
    return 6 if made.findings else 0


@command("run", example="legion plan template run bug --var bug='The cart loses items' --dry-run")
@click.argument("name", metavar="NAME", shell_complete=_names)
@_VALUES
@click.option("--team", metavar="NAME", default="", shell_complete=teams, help="The team of the tickets.")
@click.option("--epic", metavar="NAME", default="", help="The epic of the tickets; the plan's name if left out.")
@click.option("--dry-run", is_flag=True, help="Show the tickets; no plan is stored.")
def template_run(call: CommandCall, name: str, values: tuple[str, ...], team: str, epic: str, dry_run: bool) -> None:
    """Make a plan of a template. Nothing starts until you approve it: `legion approve P3`."""
    made = call.legion().run_template(template_request(call, name, values, team=team, epic=epic, dry_run=dry_run))
    call.answer(made, lambda: _expanded(made, call.screen))


@command("from", example="legion plan template from P3 > .legion/templates/shop.toml")
@click.argument("epic", metavar="EPIC")
def template_from(call: CommandCall, epic: str) -> None:
    """Print a template of what was done: the tickets of an epic as steps. Put variables into it by hand."""
    made = call.legion().template_from(call.cwd, epic)
    call.answer(made, lambda: sanitize_lines(made.text))


for _one in (template_list, template_show, template_check, template_run, template_from):
    template.add_command(_one)


def _list(found: TemplateList, screen: Screen) -> Iterator[str]:
    yield from screen.table([_row(one) for one in found.templates], indent=0)
    for one in found.templates:
        if one.fault:
            yield screen.line(Cell(sanitize(one.fault), Colour.RED))
    for file in found.untrusted:
        yield screen.line(Cell(f"{sanitize(file)} is not trusted: read it and run `legion trust`.", Colour.YELLOW))


def _row(one: TemplateLine) -> list[Cell]:
    needed = [variable.name for variable in one.variables if variable.default is None]
    about = Cell("cannot be used, see below", Colour.RED) if one.fault else Cell(sanitize(one.about), Colour.DIM)
    return [Cell(sanitize(one.name), Colour.BOLD), Cell(one.origin, Colour.DIM), Cell(", ".join(needed)), about]


def _page(page: TemplatePage, screen: Screen) -> Iterator[str]:
    one = page.template
    yield screen.line(Cell(sanitize(one.name), Colour.BOLD), Cell(f"  {sanitize(one.about)}"))
    yield from screen.aside(sanitize(one.file))
    if one.fault:
        yield screen.line(Cell(sanitize(one.fault), Colour.RED))
    rows = [
        [
            Cell(variable.name, Colour.BOLD),
            Cell(variable.type),
            Cell("needed" if variable.default is None else f"= {variable.default}" if variable.default else ""),
            Cell(sanitize(variable.help), Colour.DIM),
        ]
        for variable in one.variables
    ]
    yield from screen.table(rows)
    yield ""
    yield from sanitize_lines(page.text)


def _order(one: PlanTicketLine) -> str:
    parts = [f"after {', '.join(one.after)}"] if one.after else []
    return ", ".join([*parts, *([f"only if {one.when}"] if one.when else [])])


def _expanded(made: ExpandedTemplate, screen: Screen) -> Iterator[str]:
    if made.plan is not None:
        yield from screen.rows(page_rows(made.plan, screen.columns, questions=True))
        return
    yield screen.bold(f"{sanitize(made.goal)}  ({count(len(made.tickets), 'ticket')})")
    rows = [
        [
            Cell(one.key, Colour.BOLD),
            Cell(sanitize(one.title)),
            Cell(_order(one)),
        ]
        for one in made.tickets
    ]
    yield from screen.table(rows)
    for finding in made.findings:
        about = f"{finding.ticket}: " if finding.ticket else ""
        yield screen.line(Cell(sanitize(f"{about}{finding.text}"), Colour.RED), indent=2)
