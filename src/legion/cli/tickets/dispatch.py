"""`legion dispatch`: creates tickets from options or from a plan file."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import click

from legion.cli.base.command import CommandCall, command
from legion.cli.base.output import sanitize
from legion.cli.base.parameters import files
from legion.cli.base.row_command import option_of
from legion.cli.base.texts import file_text, named_values, read_text, short_title, valid_text
from legion.cli.tickets.plan_file import read_plan
from legion.wire.dispatch import TICKET_FIELDS, Dispatch, Dispatched, NewTicket
from legion.wire.errors import BadInput, NotFound
from legion.wire.plans import ApprovePlan
from legion.wire.templates import ExpandedTemplate, RunTemplate
from legion.wire.text import plan_number
from legion.wire.ticket_fields import FieldKind

_EXAMPLE = """\
legion dispatch -t 'Add /login' -c 'Sessions live in app/auth.py' -k 'make test passes' 'A page to log in.'
legion dispatch --from plan.toml
legion dispatch --from bug --var bug='The cart loses items'"""
_NAME = re.compile(r"[A-Za-z0-9_-]+")


@command("dispatch", example=_EXAMPLE)
@click.argument("arguments", nargs=-1, metavar="[WORKER] [TEXT]")
@click.option(
    "--from",
    "plan_file",
    metavar="FILE",
    shell_complete=files,
    help="A TOML file with many tickets, all or none; - is stdin. Or the name of a template.",
)
@click.option("--var", "values", metavar="K=V", multiple=True, help="A value for a variable of the template of --from.")
@click.option("--to", metavar="AGENT", default="", help="The standing agent that works on it, at once.")
@click.option("--dry-run", is_flag=True, help="Check everything and show what would be created.")
def dispatch(
    call: CommandCall,
    plan_file: str | None,
    values: tuple[str, ...],
    to: str,
    dry_run: bool,
    arguments: tuple[str, ...],
    **options: Any,
) -> None:
    """Create a ticket, or many from a plan file or a template.

    TEXT says what you want; - reads it from stdin. Prints one line `Ticket ID: N` per ticket.
    A text that starts with a dash goes behind --.

    --from with the name of a template dispatches its tickets at once, if what it expands to has no findings;
    `legion plan template run` shows you the plan first.

    WORKER is a number that legion_cc's callers pass first. It has no effect: the next free agent takes the ticket.
    """
    if plan_file is None and values:
        raise BadInput("--var is for a template: add --from NAME.")
    if plan_file is not None and _names_template(plan_file, values):
        if arguments or to or any(value for name, value in options.items() if name not in ("team", "epic")):
            raise BadInput("--from takes everything from the template; remove all but --team, --epic and --dry-run.")
        _dispatch_template(call, plan_file, values, team=options["team"], epic=options["epic"], dry_run=dry_run)
        return
    if plan_file is not None:
        if arguments or any(options.values()):
            raise BadInput("--from takes everything from the plan file; remove TEXT and the other options.")
        tickets = read_plan(
            file_text(plan_file, kind="plan file", name="The plan"), "The plan" if plan_file == "-" else plan_file
        )
    else:
        tickets = [one_ticket(arguments, options)]
    wanted = Dispatch(cwd=call.cwd, tickets=tickets, request=os.urandom(16).hex(), to=to, dry_run=dry_run)
    # A script or a timer may have few variables; what the person's terminal has is what they work with.
    if sys.stdin.isatty() and not dry_run:
        call.use_shell(call.cwd)
    made = call.legion().dispatch(wanted)
    if dry_run:
        call.answer(made, lambda: [*map(sanitize, made.planned), "Nothing was created."])
        call.notes(made.notes)
        return
    report(call, made, tip=plan_file is None and not (options["context"] or options["criteria"]))


dispatch.params[1:1] = [option_of(field) for field in TICKET_FIELDS.values() if field.options]


def report(call: CommandCall, made: Dispatched, *, tip: bool) -> None:
    """Print the numbers of the new tickets and the daemon's notes; a tip is only for a terminal."""
    call.answer(made, lambda: [f"Ticket ID: {id}" for id in made.ids])
    call.notes(made.notes)
    if tip and call.screen.tty and not call.json:
        call.say("Tip: -c says what the agent should know, -k when it is done; both make a good change likelier.")


def one_ticket(arguments: tuple[str, ...], options: dict[str, Any]) -> NewTicket:
    """The ticket that the arguments and options describe, as click has converted them."""
    worker, text = _arguments(arguments)
    fields = {name: _field_value(TICKET_FIELDS[name].kind, value) for name, value in options.items()}
    for name, value in fields.items():
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, str):
                valid_text(item, TICKET_FIELDS[name].shown_name)
    if text is None and not fields["title"]:
        raise BadInput("Say what you want: legion dispatch -t TITLE TEXT, or --from FILE for many tickets.")
    fields["text"] = read_text(text, "TEXT") if text is not None else ""
    fields["title"] = fields["title"] or short_title(fields["text"])
    return NewTicket(**fields, worker_id=worker)


def _field_value(kind: FieldKind, value: Any) -> Any:  # noqa: ANN401
    """The value of an option as the ticket holds it."""
    match kind:
        case FieldKind.TEXT:
            return value or ""
        case FieldKind.TEXTS:
            return list(value)
        case FieldKind.TICKETS:
            return list(dict.fromkeys(id for ids in value for id in ids))
        case _:
            return value


def _arguments(arguments: tuple[str, ...]) -> tuple[int | None, str | None]:
    """The worker and the text."""
    if len(arguments) < 2:
        return None, arguments[0] if arguments else None
    worker, *texts = arguments
    if len(texts) > 1 or not (worker.isascii() and worker.isdigit()):
        raise BadInput("TEXT must be one argument; put it in quotes, as in legion dispatch 'Add a page to log in.'")
    number = int(worker[:20])
    if fault := TICKET_FIELDS["worker_id"].fault(number):
        raise BadInput(f"WORKER {fault}.")
    return number, texts[0]


def _names_template(name: str, values: tuple[str, ...]) -> bool:
    """Whether --from means a template: it has variables, or no file has that name."""
    return bool(values) or (name != "-" and bool(_NAME.fullmatch(name)) and not Path(name).exists())


def _dispatch_template(
    call: CommandCall, name: str, values: tuple[str, ...], *, team: str, epic: str, dry_run: bool
) -> None:
    given = named_values(values)
    wanted = RunTemplate(cwd=call.cwd, name=name, values=given, team=team, epic=epic, dry_run=dry_run)
    if not values and name not in [one.name for one in call.legion().templates(call.cwd).templates]:
        raise NotFound(f"There is neither a file nor a template {name}: see `legion plan template list`.")
    expanded = call.legion().run_template(wanted)
    if expanded.plan is None:
        tried = Dispatched(ids=[], planned=_planned(expanded))
        call.answer(tried, lambda: [*map(sanitize, tried.planned), "Nothing was created."])
        call.notes(f"{one.ticket or name}: {one.text}." for one in expanded.findings)
        return
    number = plan_number(expanded.plan.plan.id)
    assert number is not None, "the daemon names its own plans"
    made = call.legion().approve_plan(number, ApprovePlan(request=os.urandom(16).hex()))
    done = Dispatched(ids=list(made.tickets.values()), keys=made.tickets, notes=made.notes)
    call.answer(done, lambda: [f"Ticket ID: {id}" for id in done.ids])
    call.notes([*done.notes, f"`legion status epic {epic or expanded.plan.plan.id}` follows them."])


def _planned(expanded: ExpandedTemplate) -> list[str]:
    return [f"{one.key}: {one.title}" for one in expanded.tickets]
