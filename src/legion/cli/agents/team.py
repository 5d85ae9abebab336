"""`legion team` and `legion team role`: list, show, edit, create and remove teams and roles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import click
from click.shell_completion import CompletionItem

from legion.cli.agents.team_section import PARTS
from legion.cli.base.command import CommandCall, command, group
from legion.cli.base.editor import edit, refuse_no_editor
from legion.cli.base.output import Cell, Colour, Screen, sanitize
from legion.cli.base.parameters import files, roles, teams
from legion.cli.base.texts import file_text, valid_text
from legion.wire.teams import RoleLine, RolePage, Roles, SaveDefinition, TeamLine, TeamPage, Teams

_BROKEN = "cannot be used, see below"
Completion = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]


@command("list", example="legion team list")
def team_list(call: CommandCall) -> None:
    """All teams, and where each is defined."""
    found = call.legion().teams(call.cwd)
    call.answer(found, lambda: _teams(found, call.screen))


@command("list", example="legion team role list")
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


@command("show", example="legion team role show qa")
@click.argument("name", metavar="NAME", shell_complete=roles)
def role_show(call: CommandCall, name: str) -> None:
    """A role with its prompt."""
    page = call.legion().role(call.cwd, valid_text(name, "NAME"))
    call.answer(page, lambda: _role_page(page, call.screen))


_FROM = click.option(
    "--from", "file", metavar="FILE", shell_complete=files, help="Take the text from a file instead; - is stdin."
)


def _edit_command(kind: str, names: Completion, example: str) -> click.Command:
    @click.argument("name", metavar="NAME", shell_complete=names)
    @_FROM
    def edit(call: CommandCall, name: str, file: str | None) -> None:
        _edit(call, kind, name, file)

    edit.__doc__ = f"""Change a {kind} in your editor; a shipped one becomes your own.

    An invalid text is refused with line and reason, and the old file stays.
    """
    return command("edit", example=example)(edit)


def _new_command(kind: str, names: Completion, example: str) -> click.Command:
    @click.argument("name", metavar="NAME")
    @click.option("--like", default="", metavar="NAME", shell_complete=names, help="Start with a copy of this one.")
    @_FROM
    def new(call: CommandCall, name: str, like: str, file: str | None) -> None:
        _edit(call, kind, name, file, new=True, like=like)

    new.__doc__ = f"Write a {kind} of your own."
    return command("new", example=example)(new)


@command("remove", example="legion team remove pair")
@click.argument("name", metavar="NAME", shell_complete=teams)
def team_remove(call: CommandCall, name: str) -> None:
    """Remove a team of your own; a shipped team of the same name counts again.

    Its text is kept next to it. Tickets keep the team that they were dispatched with.
    """
    call.report(call.legion().remove_team(call.cwd, valid_text(name, "NAME")))


@command("remove", example="legion team role remove security")
@click.argument("name", metavar="NAME", shell_complete=roles)
def role_remove(call: CommandCall, name: str) -> None:
    """Remove a role of your own; a shipped role of the same name counts again.

    Its text is kept next to it. A role that a team needs is not removed.
    """
    call.report(call.legion().remove_role(call.cwd, valid_text(name, "NAME")))


def _edit(call: CommandCall, kind: str, name: str, file: str | None, *, new: bool = False, like: str = "") -> None:
    legion, name = call.legion(), valid_text(name, "NAME")
    read, save = (legion.role_text, legion.save_role) if kind == "role" else (legion.team_text, legion.save_team)
    there = read(call.cwd, name, new=new, like=valid_text(like, "--like"))
    if file is not None:
        wanted = SaveDefinition(cwd=call.cwd, name=name, text=file_text(file), new=new)
        call.report(save(wanted))
        return
    saving = f"legion {kind} {'new' if new else 'edit'} {name}"
    refuse_no_editor(saving)
    if there.fault:
        call.say(sanitize(there.fault))
    done = edit(
        call,
        name,
        there.text,
        is_unchanged=lambda text: text == there.text and not new,
        save=lambda text: save(SaveDefinition(cwd=call.cwd, name=name, text=text, new=new)),
        command=saving,
    )
    if done is not None:
        call.report(done)


def _teams(found: Teams, screen: Screen) -> Iterator[str]:
    return _table(found.teams, [(", ".join(one.roles), _place(one)) for one in found.teams], found.untrusted, screen)


def _place(one: TeamLine) -> str:
    return f"{one.origin}, default" if one.default else one.origin


def _roles(found: Roles, screen: Screen) -> Iterator[str]:
    facts = [(PARTS.get(one.part, one.part), one.origin) for one in found.roles]
    return _table(found.roles, facts, found.untrusted, screen)


def _table(
    lines: Sequence[TeamLine | RoleLine], facts: Iterable[tuple[str, str]], untrusted: list[str], screen: Screen
) -> Iterator[str]:
    """Of each definition its name, two facts, and what it is about."""
    rows = [
        [
            Cell(sanitize(one.name), Colour.BOLD),
            Cell(sanitize(what)),
            Cell(origin, Colour.DIM),
            Cell(_BROKEN, Colour.RED) if one.fault else Cell(sanitize(one.about), Colour.DIM),
        ]
        for one, (what, origin) in zip(lines, facts, strict=True)
    ]
    yield from screen.table(rows, indent=0)
    yield from _faults([one.fault for one in lines], screen)
    yield from _untrusted(untrusted, screen)


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


team = group(
    "team",
    """Teams that work on tickets: list, show, edit, new, remove.

A team is a list of roles: advisors, one builder, and readers of the change. Each role is a separate agent.
""",
    "legion team list\nlegion dispatch --team tech_lead_team 'Add a login form'",
    team_list,
    team_show,
    _edit_command("team", teams, "legion team edit tech_lead_team\nlegion team edit solo --from solo.toml"),
    _new_command("team", teams, "legion team new pair --like tech_lead_team"),
    team_remove,
)
role = group(
    "role",
    """The roles that teams consist of: list, show, edit, new, remove.

A role describes one agent: prompt, tools, model, provider.
""",
    "legion team role list\nlegion team role edit qa",
    role_list,
    role_show,
    _edit_command("role", roles, "legion team role edit qa\nlegion team role edit qa --from qa.toml"),
    _new_command("role", roles, "legion team role new security --like reviewer"),
    role_remove,
)
