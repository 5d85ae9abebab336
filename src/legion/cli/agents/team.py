"""`legion team` and `legion team role`: list, show, edit, create and remove teams and roles."""

from __future__ import annotations

import click

from legion.cli.base.command import CommandCall, command, group
from legion.cli.base.editor import edit, refuse_no_editor
from legion.cli.base.output import sanitize
from legion.cli.base.parameters import Completion, files, roles, teams
from legion.cli.base.row_command import row_command
from legion.cli.base.texts import file_text
from legion.client.text.catalog import role_page_rows, role_rows, team_page_rows, team_rows
from legion.wire.teams import SaveDefinition, TeamRows

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


def _edit(call: CommandCall, kind: str, name: str, file: str | None, *, new: bool = False, like: str = "") -> None:
    legion, name = call.legion(), name
    read, save = (legion.role_text, legion.save_role) if kind == "role" else (legion.team_text, legion.save_team)
    there = read(call.cwd, name, new=new, like=like)
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


team = group(
    "team",
    """Teams that work on tickets: list, show, edit, new, remove.

A team is a list of roles: advisors, one builder, and readers of the change. Each role is a separate agent.
""",
    "legion team list\nlegion dispatch --team tech_lead_team 'Add a login form'",
    row_command("list", TeamRows.teams, "legion team list", shows=team_rows),
    row_command("show", TeamRows.team, "legion team show tech_lead_team", shows=team_page_rows),
    _edit_command("team", teams, "legion team edit tech_lead_team\nlegion team edit solo --from solo.toml"),
    _new_command("team", teams, "legion team new pair --like tech_lead_team"),
    row_command("remove", TeamRows.remove_team, "legion team remove pair"),
)
role = group(
    "role",
    """The roles that teams consist of: list, show, edit, new, remove.

A role describes one agent: prompt, tools, model, provider.
""",
    "legion team role list\nlegion team role edit qa",
    row_command("list", TeamRows.roles, "legion team role list", shows=role_rows),
    row_command("show", TeamRows.role, "legion team role show qa", shows=role_page_rows),
    _edit_command("role", roles, "legion team role edit qa\nlegion team role edit qa --from qa.toml"),
    _new_command("role", roles, "legion team role new security --like reviewer"),
    row_command("remove", TeamRows.remove_role, "legion team role remove security"),
)
