"""`legion forge add`, `list`, `test`, `hook` and `remove`, and `legion forge sync`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator

import click

from legion.cli.base.command import CommandCall, command, group
from legion.cli.base.output import Cell, Colour, Screen, duration, sanitize
from legion.cli.base.progress import progress
from legion.cli.base.texts import read_stdin
from legion.wire.errors import BadInput, LegionError
from legion.wire.forge import AddForge, ForgeLine, Forges
from legion.wire.projects import Where


@command("add", example="legion forge add github acme/shop --gh\nlegion forge add git ssh://git@host/shop.git")
@click.argument("kind", metavar="KIND", type=click.Choice(("github", "git")))
@click.argument("address", metavar="OWNER/REPO|URL")
@click.option("--url", default="", metavar="URL", help="The address of a GitHub Enterprise server.")
@click.option("--branch", default="", metavar="NAME", help="The branch that work lands on.")
@click.option("--label", default="legion:go", metavar="NAME", help="The label that starts an issue; '' for none.")
@click.option("--milestone", default="", metavar="NAME", help="Start only issues of this milestone.")
@click.option("--assignee", default="", metavar="LOGIN", help="Start only issues of this assignee.")
@click.option("--app", default="", metavar="ID", help="A GitHub App; the key is its private key, a .pem file.")
@click.option("--gh", is_flag=True, help="Use the token of the program gh.")
@click.option("--key-stdin", is_flag=True, help="Read the token from stdin.")
@click.option("--key-file", default="", metavar="PATH", help="A file of yours that holds the token.")
@click.option("--key-env", default="", metavar="NAME", help="A variable of the daemon that holds the token.")
@click.option("--key-command", default="", metavar="CMD", help="A program that prints the token; no shell runs it.")
@click.option("--keyring", is_flag=True, help="Store the token in the system's keyring, or read it from there.")
def add(call: CommandCall, kind: str, address: str, key_stdin: bool, **options: str | bool) -> None:
    """Connect this project to GitHub or to a git remote.

    The token, or the app, needs read and write access to contents, issues and pull requests. No agent sees it.
    """
    elsewhere = kind == "git" or any(options[name] for name in ("gh", "key_file", "key_env", "key_command"))
    key = _token(address, key_stdin, bool(options["keyring"]), elsewhere)
    wanted = AddForge(cwd=call.cwd, kind=kind, address=address, key=key, **options)  # type: ignore[arg-type]
    with progress(f"Asking {sanitize(address)}"):
        done = call.legion().add_forge(wanted)
    call.report(done)


def _token(address: str, from_stdin: bool, keyring: bool, elsewhere: bool) -> str:
    """The token itself, if Legion is to store it; else empty."""
    if from_stdin:
        key = read_stdin("The token").strip()
        if not key:
            raise BadInput("There is no token on stdin; pipe it in, or remove --key-stdin.")
        return key
    if elsewhere:
        return ""
    if sys.stdin.isatty():
        typed = click.prompt(
            f"Token for {sanitize(address)}", default="", show_default=False, hide_input=True, err=True
        )
        return str(typed).strip()
    if keyring:
        return ""
    raise BadInput("There is no token; pipe it in with --key-stdin, or use --gh. `legion forge add --help` has more.")


@command("list", example="legion forge list")
def listed(call: CommandCall) -> None:
    """List the forges of all projects, and how the last look at each ended."""
    found = call.legion().forges()
    call.answer(found, lambda: _table(found, call.screen))


def _table(found: Forges, screen: Screen) -> Iterator[str]:
    if not found.forges:
        yield "No forge yet; `legion forge add github OWNER/REPO` connects this project."
        return
    for line, row in zip(found.forges, screen.table([_row(one) for one in found.forges], indent=0), strict=True):
        yield row
        if line.problem:
            since = f" (since {duration(time.time() - line.problem_since)})" if line.problem_since else ""
            yield from screen.aside(sanitize(line.problem) + since)


def _row(line: ForgeLine) -> list[Cell]:
    looked = f"{duration(time.time() - line.synced_at)} ago" if line.synced_at else "not looked at yet"
    return [
        Cell(sanitize(line.project), Colour.BOLD),
        Cell(sanitize(f"{line.kind} {line.name}")),
        Cell(sanitize(f"{line.target} to {line.branch}"), Colour.CYAN),
        Cell(sanitize(f"as {line.login}" if line.login else "")),
        Cell(f"token: {sanitize(line.key)}", Colour.DIM),
        Cell(f"issues: {line.issues}, pull requests: {line.pulls}"),
        Cell(looked, Colour.RED if line.problem else Colour.DIM),
    ]


@command("test", example="legion forge test")
def test(call: CommandCall) -> int:
    """Ask the forge who Legion is there and what it may do. Ends with 1 if it fails."""
    with progress("Asking the forge"):
        found = call.legion().try_forge(Where(cwd=call.cwd))
    call.report(found)
    return 0 if found.ok else LegionError.exit_code


@command("hook", example="legion forge hook")
def hook(call: CommandCall) -> None:
    """Print the path and the secret to enter at the forge, so that it reports changes at once."""
    found = call.legion().forge_hook(Where(cwd=call.cwd))
    lines = [sanitize(found.message), f"path:   {sanitize(found.path)}", f"secret: {sanitize(found.secret)}"]
    call.answer(found, lambda: lines)


@command("remove", example="legion forge remove")
def remove(call: CommandCall) -> None:
    """Disconnect this project from its forge, and delete the token that Legion kept."""
    call.report(call.legion().remove_forge(call.cwd))


@command("sync", example="legion forge sync")
def sync(call: CommandCall) -> None:
    """Look at the project's forge now, without waiting for the next look."""
    with progress("Looking at the forge"):
        done = call.legion().sync_forge(Where(cwd=call.cwd))
    call.report(done)


forge = group(
    "forge",
    """Where this project's issues and pull requests live: add, list, test, hook, remove.

`landing.target` in legion.toml says what goes there: nothing, landed commits, or a pull request for each ticket.
""",
    "legion forge add github acme/shop --gh\nlegion forge test",
    add,
    listed,
    test,
    hook,
    remove,
)
