"""`legion driver`: lists, shows, tests, adds and removes agent programs."""

from __future__ import annotations

import importlib
import json
import shlex
import sys
from dataclasses import asdict
from pathlib import Path

import click

from legion.cli.base.command import CommandCall, command, group
from legion.cli.base.output import Cell, Colour, Screen, sanitize
from legion.cli.base.parameters import COMPLETIONS
from legion.cli.base.row_command import row_command
from legion.client.text.providers import driver_page_rows, driver_rows
from legion.wire.errors import BadInput, LegionError
from legion.wire.projects import Done
from legion.wire.providers import AddDriver, ProviderRows

_ADD = """\
legion driver add mine --run 'my-agent --acp'
legion driver add mine --file my-agent.toml"""


names = COMPLETIONS["drivers"]


@command("test", example="legion driver test codex")
@click.argument("name", metavar="NAME", shell_complete=names)
def test(call: CommandCall, name: str) -> int:
    """Play the conformance suite against the installed program, with a scripted model: nothing is spent.

    It starts, edits, runs a command, is interrupted, is killed and continues, meets a limit, is refused a permission,
    stays in its sandbox, and its usage is counted. Your own Legion is not used. Ends with 1 if a promise is broken.
    """
    page = call.legion().driver(name)
    # By name: the command line itself depends on nothing that the suite needs.
    room = importlib.import_module("legion.demo.conformance.suite")
    if not call.json:
        call.say(f"Testing {sanitize(page.driver.title)} {sanitize(page.version)} with a scripted model.")
    result = room.play_suite(page, lambda one: None if call.json else click.echo(_promise(one, call.screen)))
    if call.json:
        sys.stdout.write(json.dumps(asdict(result), indent=2 if call.screen.tty else None) + "\n")
    elif result.ok:
        click.echo(f"{sanitize(page.driver.title)} keeps every promise ({result.seconds:.0f} s).")
    else:
        click.echo(f"{sanitize(page.driver.title)} breaks a promise ({result.seconds:.0f} s).")
    return 0 if result.ok else LegionError.exit_code


def _promise(one: object, screen: Screen) -> str:
    ok, promise, detail = getattr(one, "ok", None), getattr(one, "promise", ""), getattr(one, "detail", "")
    mark = {True: Cell("yes", Colour.GREEN), False: Cell("NO ", Colour.RED), None: Cell("-  ", Colour.DIM)}[ok]
    return screen.line(mark, Cell(f"  {promise}"), Cell(f"  {sanitize(detail)}" if detail else "", Colour.DIM))


@command("add", example=_ADD)
@click.argument("name", metavar="NAME")
@click.option("--run", default="", metavar="CMD", help="The command line that starts the program.")
@click.option("--kind", default="acp", type=click.Choice(("acp", "command")), help="How it is driven; acp if left out.")
@click.option("--title", default="", metavar="TEXT", help="Its name for people.")
@click.option("--file", type=click.Path(path_type=Path), help="A complete description, or a change of a shipped one.")
def add(call: CommandCall, name: str, run: str, kind: str, title: str, file: Path | None) -> None:
    """Add an agent program, or change a shipped one.

    A program that speaks the Agent Client Protocol needs no more than its command line. How it takes a model and an
    endpoint is said in its description: docs/drivers.md lists the keys.
    """
    if (file is None) == (not run):
        raise BadInput("Pass either --run CMD or --file FILE.")
    text = _read(file) if file is not None else _text(run, kind, title or name)
    done: Done = call.legion().add_driver(AddDriver(name=name, text=text))
    call.answer(done, lambda: iter([sanitize(done.message), *(f"Note: {sanitize(note)}" for note in done.notes)]))


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise BadInput(f"{file} cannot be read as UTF-8 text ({fault}); pass a description of a program.") from None


def _text(run: str, kind: str, title: str) -> str:
    try:
        words = shlex.split(run)
    except ValueError:
        raise BadInput("--run has a quote that is not closed; close it.") from None
    listed = ", ".join(json.dumps(word) for word in words)
    can = "\n[can]\ninterrupt = true\n" if kind == "acp" else ""
    return f'title = {json.dumps(title)}\ndriver = "{kind}"\n\n[program]\nrun = [{listed}]\n{can}'


driver = group(
    "driver",
    """Agent programs: list, show, test, add, remove.

A ticket chooses one with `--driver NAME`. Each is described by a TOML file; yours are next to your settings.
""",
    "legion driver list\nlegion driver test codex",
    row_command("list", ProviderRows.drivers, "legion driver list", shows=driver_rows),
    row_command("show", ProviderRows.driver, "legion driver show codex", shows=driver_page_rows),
    test,
    add,
    row_command("remove", ProviderRows.remove_driver, "legion driver remove mine"),
)
