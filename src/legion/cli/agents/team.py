"""`legion team` and `legion role`: list, show, edit, create and remove teams and roles."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click

from legion.cli.agents.team_section import PARTS
from legion.cli.base.command import CommandCall, command
from legion.cli.base.output import Cell, Colour, Screen, sanitize
from legion.cli.base.parameters import files, roles, teams
from legion.cli.base.texts import decode, read_text, valid_text
from legion.wire.errors import BadInput, LegionError, NotFound
from legion.wire.projects import Done
from legion.wire.teams import RoleLine, RolePage, Roles, SaveDefinition, TeamLine, TeamPage, Teams

_BROKEN = "cannot be used, see below"


def _group(name: str, example: str) -> click.Group:
    return click.Group(
        name,
        invoke_without_command=True,
        context_settings={"help_option_names": ["-h", "--help"]},
        epilog=f"\b\nExample:\n  {example}",
        callback=_help,
    )


@click.pass_context
def _help(ctx: click.Context) -> None:
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


team = _group("team", "legion team list\n  legion dispatch --team tech_lead_team 'Add a login form'")
team.help = """Teams that work on tickets: list, show, edit, new, remove.

A team is a list of roles: advisors, one builder, and readers of the change. Each role is a separate agent.
"""
role = _group("role", "legion role list\n  legion role edit qa")
role.help = """The roles that teams consist of: list, show, edit, new, remove.

A role describes one agent: prompt, tools, model, provider.
"""


@command("list", example="legion team list")
def team_list(call: CommandCall) -> None:
    """All teams, and where each is defined."""
    found = call.legion().teams(call.cwd)
    call.answer(found, lambda: _teams(found, call.screen))


@command("list", example="legion role list")
def role_list(call: CommandCall) -> None:
    """All roles, and where each is defined."""
    found = call.legion().roles(call.cwd)
    call.answer(found, lambda: _roles(found, call.screen))


@command("show", example="legion team show tech_lead_team")
@click.argument("name", metavar="NAME", shell_complete=teams)
def team_show(call: CommandCall, name: str) -> None:
    """A team with its roles in order."""
    page = call.legion().team(call.cwd, valid_text(name, "NAME"))
    call.answer(page, lambda: _team_page(page, call.screen))


@command("show", example="legion role show qa")
@click.argument("name", metavar="NAME", shell_complete=roles)
def role_show(call: CommandCall, name: str) -> None:
    """A role with its prompt."""
    page = call.legion().role(call.cwd, valid_text(name, "NAME"))
    call.answer(page, lambda: _role_page(page, call.screen))


_FROM = click.option(
    "--from", "file", metavar="FILE", shell_complete=files, help="Take the text from a file instead; - is stdin."
)


@command("edit", example="legion team edit tech_lead_team\nlegion team edit solo --from solo.toml")
@click.argument("name", metavar="NAME", shell_complete=teams)
@_FROM
def team_edit(call: CommandCall, name: str, file: str | None) -> None:
    """Change a team in your editor; a shipped one becomes your own.

    An invalid text is refused with line and reason, and the old file stays.
    """
    _edit(call, "team", name, file)


@command("edit", example="legion role edit qa\nlegion role edit qa --from qa.toml")
@click.argument("name", metavar="NAME", shell_complete=roles)
@_FROM
def role_edit(call: CommandCall, name: str, file: str | None) -> None:
    """Change a role in your editor; a shipped one becomes your own.

    An invalid text is refused with line and reason, and the old file stays.
    """
    _edit(call, "role", name, file)


@command("new", example="legion team new pair --like tech_lead_team")
@click.argument("name", metavar="NAME")
@click.option("--like", default="", metavar="NAME", shell_complete=teams, help="Start with a copy of this one.")
@_FROM
def team_new(call: CommandCall, name: str, like: str, file: str | None) -> None:
    """Write a team of your own."""
    _edit(call, "team", name, file, new=True, like=like)


@command("new", example="legion role new security --like reviewer")
@click.argument("name", metavar="NAME")
@click.option("--like", default="", metavar="NAME", shell_complete=roles, help="Start with a copy of this one.")
@_FROM
def role_new(call: CommandCall, name: str, like: str, file: str | None) -> None:
    """Write a role of your own."""
    _edit(call, "role", name, file, new=True, like=like)


@command("remove", example="legion team remove pair")
@click.argument("name", metavar="NAME", shell_complete=teams)
def team_remove(call: CommandCall, name: str) -> None:
    """Remove a team of your own; a shipped team of the same name counts again.

    Its text is kept next to it. Tickets keep the team that they were dispatched with.
    """
    _print_done(call, call.legion().remove_team(call.cwd, valid_text(name, "NAME")))


@command("remove", example="legion role remove security")
@click.argument("name", metavar="NAME", shell_complete=roles)
def role_remove(call: CommandCall, name: str) -> None:
    """Remove a role of your own; a shipped role of the same name counts again.

    Its text is kept next to it. A role that a team needs is not removed.
    """
    _print_done(call, call.legion().remove_role(call.cwd, valid_text(name, "NAME")))


def _edit(call: CommandCall, kind: str, name: str, file: str | None, *, new: bool = False, like: str = "") -> None:
    legion, name = call.legion(), valid_text(name, "NAME")
    read, save = (legion.role_text, legion.save_role) if kind == "role" else (legion.team_text, legion.save_team)
    there = read(call.cwd, name, new=new, like=valid_text(like, "--like"))
    if file is not None:
        wanted = SaveDefinition(cwd=call.cwd, name=name, text=_given(file), new=new)
        _print_done(call, save(wanted))
        return
    if not sys.stdin.isatty():
        raise BadInput(
            f"There is no terminal for an editor; run legion {kind} {'new' if new else 'edit'} {name} --from FILE."
        )
    if there.fault:
        call.say(sanitize(there.fault))
    draft = _draft(name, there.text)
    while True:
        click.edit(filename=str(draft))
        text = valid_text(decode(draft.read_bytes(), str(draft)), str(draft))
        if text == there.text and not new:
            draft.unlink()
            call.say("Nothing was changed.")
            return
        try:
            done = save(SaveDefinition(cwd=call.cwd, name=name, text=text, new=new))
        except LegionError as refused:
            call.say(sanitize(refused.message))
            if not click.confirm("Edit it again?", default=True, err=True):
                again = f"legion {kind} {'new' if new else 'edit'} {name} --from {draft}"
                raise BadInput(f"Nothing was changed; your text is kept, and `{again}` saves it.") from None
            continue
        draft.unlink()
        _print_done(call, done)
        return


def _draft(name: str, text: str) -> Path:
    """A temporary file, so that an editor that saves early changes no definition."""
    handle, path = tempfile.mkstemp(prefix=f"legion-{name}-", suffix=".toml")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    return Path(path)


def _given(file: str) -> str:
    if file == "-":
        return read_text("-", "The text")
    try:
        return valid_text(decode(Path(file).read_bytes(), file), file)
    except FileNotFoundError:
        raise NotFound(f"There is no file {file}; pass an existing one to --from.") from None
    except IsADirectoryError:
        raise BadInput(f"{file} is a folder; pass a file inside it to --from.") from None


def _print_done(call: CommandCall, done: Done) -> None:
    call.answer(done, lambda: [sanitize(done.message)])
    for note in done.notes:
        call.say(f"Note: {sanitize(note)}")


def _teams(found: Teams, screen: Screen) -> Iterator[str]:
    rows = [
        [
            Cell(sanitize(one.name), Colour.BOLD),
            Cell(sanitize(", ".join(one.roles))),
            Cell(_place(one), Colour.DIM),
            Cell(_BROKEN, Colour.RED) if one.fault else Cell(sanitize(one.about), Colour.DIM),
        ]
        for one in found.teams
    ]
    yield from screen.table(rows, indent=0)
    yield from _faults([one.fault for one in found.teams], screen)
    yield from _untrusted(found.untrusted, screen)


def _place(one: TeamLine) -> str:
    return f"{one.origin}, default" if one.default else one.origin


def _roles(found: Roles, screen: Screen) -> Iterator[str]:
    rows = [
        [
            Cell(sanitize(one.name), Colour.BOLD),
            Cell(PARTS.get(one.part, one.part)),
            Cell(one.origin, Colour.DIM),
            Cell(_BROKEN, Colour.RED) if one.fault else Cell(sanitize(one.about), Colour.DIM),
        ]
        for one in found.roles
    ]
    yield from screen.table(rows, indent=0)
    yield from _faults([one.fault for one in found.roles], screen)
    yield from _untrusted(found.untrusted, screen)


def _faults(faults: list[str], screen: Screen) -> Iterator[str]:
    """Uncut, because they say what to do."""
    for fault in dict.fromkeys(filter(None, faults)):
        yield from screen.paragraph(fault, indent=0)


def _untrusted(names: list[str], screen: Screen) -> Iterator[str]:
    if names:
        listed = sanitize(", ".join(names))
        yield from screen.note(
            f"Not trusted yet, so without effect: {listed} (`legion trust`)", Colour.YELLOW, indent=0
        )


def _team_page(page: TeamPage, screen: Screen) -> Iterator[str]:
    one = page.team
    yield screen.bold(sanitize(one.name))
    if one.about:
        yield sanitize(one.about)
    rows = [[Cell(sanitize(stage.name), Colour.BOLD), Cell(PARTS[stage.part]), *_means(stage)] for stage in page.stages]
    yield from screen.table(rows)
    if any(stage.part == "read" for stage in page.stages):
        yield f"After {one.rounds} rounds of requested changes, you are asked."
    yield from screen.note(f"in {sanitize(one.file)} ({_place(one)})", Colour.DIM, indent=0)


def _role_page(page: RolePage, screen: Screen) -> Iterator[str]:
    one = page.role
    yield screen.bold(sanitize(one.name))
    if one.about:
        yield sanitize(one.about)
    rows = [[Cell(PARTS[one.part]), *_means(one)]]
    yield from screen.table(rows)
    yield from (f"  {sanitize(line)}".rstrip() for line in page.prompt.splitlines())
    if page.teams:
        yield f"In {sanitize(', '.join(page.teams))}."
    yield from screen.note(f"in {sanitize(one.file)} ({one.origin})", Colour.DIM, indent=0)


def _means(one: RoleLine) -> list[Cell]:
    values = {"model": one.model, "provider": one.provider, "driver": one.driver}
    shown = [f"{name} {value}" for name, value in values.items() if value]
    tools = "all tools of your settings" if one.tools is None else f"only {', '.join(one.tools)}"
    return [Cell(sanitize(tools)), Cell(sanitize(", ".join(shown)), Colour.DIM)]


for _one in (team_list, team_show, team_edit, team_new, team_remove):
    team.add_command(_one)
for _one in (role_list, role_show, role_edit, role_new, role_remove):
    role.add_command(_one)
