"""`legion plan template` and `legion plan routine`: templates of plans, and tickets that start by time or event."""

from __future__ import annotations

from collections.abc import Iterable

import click

from legion.cli.base.command import CommandCall, command, group
from legion.cli.base.output import sanitize_lines
from legion.cli.base.row_command import described_by, filled, row_command
from legion.client.text.plans import page_rows
from legion.client.text.rows import BLANK, Column, Columns, Row, head, listing, note, row
from legion.client.text.terminal import Cell, Colour, clock, count, sanitize
from legion.wire.errors import BadInput
from legion.wire.plans import PlanTicketLine
from legion.wire.templates import (
    ExpandedTemplate,
    RoutineLine,
    Routines,
    RunTemplate,
    TemplateLine,
    TemplateList,
    TemplatePage,
    TemplateRows,
    TemplateText,
    VariableLine,
)

_SHOW = "legion plan template show bug\nlegion plan template show bug --text > .legion/templates/bug.toml"
_CHECK = "legion plan template check bug\nlegion plan template check bug --var bug='It crashes'"
_RUN = "legion plan template run bug --var bug='The cart loses items' --dry-run"
_FROM = "legion plan template from P3 > .legion/templates/shop.toml"


def _needed(one: TemplateLine) -> list[str]:
    return [variable.name for variable in one.variables if variable.default is None]


def _default(one: VariableLine) -> str:
    return "needed" if one.default is None else f"= {one.default}" if one.default else ""


def _order(one: PlanTicketLine) -> str:
    parts = [f"after {', '.join(one.after)}"] if one.after else []
    return ", ".join([*parts, *([f"only if {one.when}"] if one.when else [])])


_TEMPLATE: Columns[TemplateLine] = (
    Column("name", lambda one: one.name, Colour.BOLD, keeps=True),
    Column("origin", lambda one: one.origin, Colour.DIM, keeps=True),
    Column("needs", lambda one: ", ".join(_needed(one))),
    Column(
        "about",
        lambda one: "cannot be used, see below" if one.fault else one.about,
        lambda one: Colour.RED if one.fault else Colour.DIM,
    ),
)
_VARIABLE: Columns[VariableLine] = (
    Column("name", lambda one: one.name, Colour.BOLD, keeps=True),
    Column("type", lambda one: one.type, keeps=True),
    Column("default", _default),
    Column("help", lambda one: one.help, Colour.DIM),
)
_TICKET: Columns[PlanTicketLine] = (
    Column("key", lambda one: one.key, Colour.BOLD, keeps=True),
    Column("title", lambda one: one.title),
    Column("order", _order),
)


def _coloured(texts: Iterable[str], colour: Colour, indent: str = "") -> list[Row]:
    return [row(indent, Cell(sanitize(text), colour)) for text in texts]


def _rows(found: TemplateList, width: int) -> list[Row]:
    untrusted = [f"{file} is not trusted: read it and run `legion trust`." for file in found.untrusted]
    return [
        *listing(_TEMPLATE, found.templates, width),
        *_coloured((one.fault for one in found.templates if one.fault), Colour.RED),
        *_coloured(untrusted, Colour.YELLOW),
    ]


def _page(page: TemplatePage, width: int) -> list[Row]:
    one = page.template
    return [
        row(Cell(sanitize(one.name), Colour.BOLD), f"  {sanitize(one.about)}"),
        note(one.file, indent=2),
        *_coloured([one.fault] if one.fault else [], Colour.RED),
        *listing(_VARIABLE, one.variables, width, indent=2),
        BLANK,
        *(row(line) for line in sanitize_lines(page.text)),
    ]


def _expanded(made: ExpandedTemplate, width: int) -> list[Row]:
    if made.plan is not None:
        return page_rows(made.plan, width, questions=True)
    found = [f"{one.ticket}: {one.text}" if one.ticket else one.text for one in made.findings]
    title = head(f"{sanitize(made.goal)}  ({count(len(made.tickets), 'ticket')})")
    return [title, *listing(_TICKET, made.tickets, width, indent=2), *_coloured(found, Colour.RED, "  ")]


@command("show", example=_SHOW)
@click.argument("name", metavar="NAME")
@click.option("--text", is_flag=True, help="Only its text, for a file of your own.")
def _template_show(call: CommandCall, name: str, text: bool) -> None:
    """A template with its variables and its text."""
    page = call.legion().template(call.cwd, name)
    if text:
        call.answer(page, lambda: sanitize_lines(page.text))
    else:
        call.show(page, _page)


@described_by(RunTemplate, "name", "values")
@command("check", example=_CHECK)
def _template_check(call: CommandCall, name: str, values: tuple[str, ...]) -> int:
    """Check a template: its form, what it extends, the order of its steps; with --var also what it expands to.

    Ends with 6 where something is wrong with what it expands to.
    """
    page = call.legion().template(call.cwd, name)
    if page.template.fault:
        raise BadInput(page.template.fault)
    if not values and _needed(page.template):
        call.answer(page, lambda: [f"{name} is a valid template. It needs {', '.join(_needed(page.template))}."])
        return 0
    given = {"name": name, "values": values}
    made = call.legion().run_template(filled(RunTemplate, given, call.cwd, dry_run=True))
    call.show(made, _expanded)
    return 6 if made.findings else 0


def _text(made: TemplateText, width: int) -> list[Row]:
    return [row(line) for line in sanitize_lines(made.text)]


template = group(
    "template",
    """Templates of plans: list, show, check, run, from.

A template is a plan with variables. It becomes a plan, which you approve like any other.
""",
    "legion plan template list\nlegion plan template run bug --var bug='The cart loses items'",
    row_command("list", TemplateRows.templates, "legion plan template list", shows=_rows),
    _template_show,
    _template_check,
    row_command("run", TemplateRows.run_template, _RUN, shows=_expanded),
    row_command("from", TemplateRows.template_from, _FROM, shows=_text),
)


_ADD = """\
legion plan routine add 'every weekday 07:00' 'Update the dependencies whose new version passes the tests.'
legion plan routine add 'on failed-twice' audit --var path=src --budget 2"""


def _next(one: RoutineLine) -> str:
    return f", next {clock(one.due_at)}" if one.due_at is not None else ""


def _last(one: RoutineLine) -> str:
    return f"{clock(one.last_at)}: {one.last_result}" if one.last_at is not None else one.last_result


_ROUTINE: Columns[RoutineLine] = (
    Column("id", lambda one: str(one.id), Colour.BOLD, keeps=True),
    Column("starts", lambda one: f"{one.starts}{_next(one)}", Colour.CYAN),
    Column("what", lambda one: one.template or one.text.splitlines()[0][:60]),
    Column("last", _last, Colour.DIM),
)


def _routine_rows(found: Routines, width: int) -> list[Row]:
    made = listing(_ROUTINE, found.routines, width)
    return made or [row("There is no routine: legion plan routine add WHEN TEMPLATE|TEXT")]


def _ids(found: Routines) -> list[str]:
    return [f"Routine ID: {one.id}{_next(one)}" for one in found.routines]


def _results(found: Routines) -> list[str]:
    return [one.last_result for one in found.routines]


routine = group(
    "routine",
    """Tickets that start by time or event: add, list, remove, run.

They have your rights and the budget that you give them, like tickets that you dispatch.
""",
    "legion plan routine add 'every weekday 07:00' 'Look for flaky tests and fix one.'\nlegion plan routine list",
    row_command("add", TemplateRows.add_routine, _ADD, says=_ids),
    row_command("list", TemplateRows.routines, "legion plan routine list", shows=_routine_rows),
    row_command("remove", TemplateRows.remove_routine, "legion plan routine remove 2"),
    row_command("run", TemplateRows.run_routine, "legion plan routine run 2", says=_results),
)
