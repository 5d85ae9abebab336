"""`legion forge add`, `list`, `test`, `hook` and `remove`, and `legion forge sync`."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import click

from legion.cli.base.command import CommandCall, command, group
from legion.cli.base.output import progress, sanitize
from legion.cli.base.parameters import BIGGEST
from legion.cli.base.row_command import described_by, filled, row_command
from legion.cli.base.texts import read_stdin
from legion.client.text.rows import Column, Columns, Row, listing, note, row
from legion.client.text.terminal import Colour, duration
from legion.wire.errors import BadInput
from legion.wire.forge import AddForge, Assigned, AssignedLine, AssignIssues, ForgeLine, ForgeRows, Forges, HookAddress


@described_by(AddForge)
@command("add", example="legion forge add github acme/shop --gh\nlegion forge add git ssh://git@host/shop.git")
@click.option("--key-stdin", is_flag=True, help="Read the token from stdin.")
def add(call: CommandCall, key_stdin: bool, **given: Any) -> None:
    """Connect this project to GitHub or to a git remote.

    The token, or the app, needs read and write access to contents, issues and pull requests. No agent sees it.
    """
    elsewhere = given["kind"] == "git" or any(given[name] for name in ("gh", "key_file", "key_env", "key_command"))
    key = _token(given["address"], key_stdin, given["keyring"], elsewhere)
    wanted = filled(AddForge, given, call.cwd, key=key)
    with progress(f"Asking {sanitize(wanted.address)}"):
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


def _issue(line: ForgeLine) -> str:
    return f"issues: {line.issues}, pull requests: {line.pulls}"


def _looked(line: ForgeLine) -> str:
    return f"{duration(time.time() - line.synced_at)} ago" if line.synced_at else "not looked at yet"


_FORGE: Columns[ForgeLine] = (
    Column("project", lambda one: one.project, Colour.BOLD, keeps=True),
    Column("forge", lambda one: f"{one.kind} {one.name}"),
    Column("target", lambda one: f"{one.target} to {one.branch}", Colour.CYAN),
    Column("login", lambda one: f"as {one.login}" if one.login else ""),
    Column("token", lambda one: f"token: {one.key}", Colour.DIM),
    Column("counts", _issue),
    Column("looked", _looked, lambda one: Colour.RED if one.problem else Colour.DIM),
)


def _problem(line: ForgeLine) -> list[Row]:
    since = f" (since {duration(time.time() - line.problem_since)})" if line.problem_since else ""
    return [note(f"{line.problem}{since}", indent=2)] if line.problem else []


def _rows(found: Forges, width: int) -> list[Row]:
    made = listing(_FORGE, found.forges, width, below=_problem)
    return made or [row("No forge yet; `legion forge add github OWNER/REPO` connects this project.")]


def _hook(found: HookAddress) -> list[str]:
    return [found.message, f"path:   {found.path}", f"secret: {found.secret}"]


sync = row_command("sync", ForgeRows.sync_forge, "legion forge sync", waiting="Looking at the forge")
forge = group(
    "forge",
    """Where this project's issues and pull requests live: add, list, test, hook, remove.

`landing.target` in legion.toml says what goes there: nothing, landed commits, or a pull request for each ticket.
""",
    "legion forge add github acme/shop --gh\nlegion forge test",
    add,
    row_command("list", ForgeRows.forges, "legion forge list", shows=_rows),
    row_command("test", ForgeRows.try_forge, "legion forge test", waiting="Asking the forge"),
    row_command("hook", ForgeRows.forge_hook, "legion forge hook", says=_hook),
    row_command("remove", ForgeRows.remove_forge, "legion forge remove"),
)


@described_by(AssignIssues)
@command(
    "assign", example="legion forge assign 12 14 --team pair --plan-first\nlegion forge assign --milestone 1.0 --watch"
)
@click.argument("issues", metavar="[ISSUE...]", type=click.IntRange(1, BIGGEST), nargs=-1)
@click.option("--briefing-file", default="", metavar="PATH", help="The same from a file.")
@click.option("-w", "--watch", is_flag=True, help="Follow the tickets until nothing more happens by itself.")
def assign(call: CommandCall, issues: tuple[int, ...], briefing_file: str, watch: bool, **given: Any) -> int:
    """Make a ticket of each of these issues of the project's forge.

    An issue that another branch claims already is left alone. Ends with 1 if none became a ticket. With --watch the
    exit codes are those of `legion wait`.
    """
    if given["briefing"] and briefing_file:
        raise BadInput("Give --briefing or --briefing-file, not both.")
    if briefing_file:
        given["briefing"] = _file(briefing_file)
    wanted = filled(AssignIssues, given, call.cwd, issues=list(issues))
    with progress("Asking the forge"):
        found = call.legion().assign(wanted)
    call.show(found, _assigned_rows)
    made = [one.ticket for one in found.issues if one.ticket]
    if watch and made:
        from legion.cli.tickets.wait import exit_code, until_settled

        return exit_code(call.legion(), until_settled(call, made, all_projects=False, timeout=None).state)
    return 0 if wanted.dry_run or any(one.ticket for one in found.issues) else 1


def _file(path: str) -> str:
    try:
        return Path(path).expanduser().read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        raise BadInput(f"{path} cannot be read as text: name another file.") from None


_ISSUE: Columns[AssignedLine] = (
    Column("issue", lambda one: f"#{one.issue}", Colour.BOLD, keeps=True),
    Column("message", lambda one: one.message, lambda one: Colour.GREEN if one.ticket else Colour.YELLOW, keeps=True),
    Column("branch", lambda one: one.branch, Colour.DIM),
    Column("title", lambda one: one.title),
)


def _assigned_rows(found: Assigned, width: int) -> list[Row]:
    return listing(_ISSUE, found.issues, width)
