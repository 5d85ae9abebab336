"""`legion plugin`: Legion in the person's own Claude Code, installed, shown and removed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from legion.cli.base.command import CommandCall, command, group
from legion.cli.base.output import Cell, Colour
from legion.cli.base.shapes import PluginAt, PluginCommand, PluginShape
from legion.cli.plugin import news as spoken
from legion.cli.plugin import place as places
from legion.cli.plugin.bridge import tools_token
from legion.cli.plugin.files import PLAIN, commands, program_of_person
from legion.cli.plugin.place import PluginPlace
from legion.system.paths import DataDir, default_data_dir
from legion.wire.errors import LegionError

_WHERE = (
    click.option("--user", "where", flag_value="user", default="user", help="For all your projects (the default)."),
    click.option("--project", "where", flag_value="project", help="In this repository only, below .claude."),
)


def _place(call: CommandCall, where: str) -> PluginPlace:
    if where == "project":
        return places.of_project(PLAIN, Path(call.cwd))
    return places.of_person(program_of_person(call.data_dir, Path(default_data_dir())))


@command("install", example="legion plugin install\nlegion plugin install --project --dry-run")
@_WHERE[0]
@_WHERE[1]
@click.option("--list", "listed", is_flag=True, help="List the commands and agents that it brings; change nothing.")
@click.option("--dry-run", is_flag=True, help="List the files that would be written; change nothing.")
def install(call: CommandCall, where: str, listed: bool, dry_run: bool) -> None:
    """Install the plugin, or renew it after an update of Legion. Your settings stay as they are.

    It brings /legion:plan, /legion:dispatch, /legion:status, /legion:inbox, /legion:diff and /split-tickets, Legion's
    tools over MCP with a token of their own, a status line if you have none, an agent `leader`, and news of tickets and
    questions at your next turn.
    """
    place = _place(call, where)
    if listed:
        brought = [PluginCommand(name=name, about=about) for name, about in commands(place.program).items()]
        rows = [[Cell(one.name, Colour.BOLD), Cell(one.about)] for one in brought]
        call.answer(replace(_shape(call, ""), commands=brought), lambda: call.screen.table(rows, indent=0))
        return
    if dry_run:
        paths = [str(path) for path in places.would_write(place)]
        call.answer(
            replace(_shape(call, "Nothing was changed."), files=paths), lambda: [*paths, "Nothing was changed."]
        )
        return
    notes = places.install(place)
    tools_token(DataDir(call.data_dir))
    message = f"The plugin is in {place.plugin}. Start Claude Code again, or run /reload-plugins in it."
    call.answer(_shape(call, message), lambda: [message])
    call.notes(notes)


@command("remove", example="legion plugin remove\nlegion plugin remove --project")
@_WHERE[0]
@_WHERE[1]
def remove(call: CommandCall, where: str) -> None:
    """Remove the plugin. What it changed becomes what it was, and its token is revoked."""
    place = _place(call, where)
    notes = places.remove(place)
    others = [one for one in _places(call) if one.installed]
    if not others:
        DataDir(call.data_dir).plugin_token.unlink(missing_ok=True)
    message = f"The plugin is removed from {place.folder}."
    call.answer(_shape(call, message), lambda: [message])
    call.notes(notes)


@command("show", example="legion plugin show")
def show(call: CommandCall) -> None:
    """Where the plugin is installed."""
    found = _shape(call, "")
    there = [f"{one.place}: {one.folder}" for one in found.places if one.installed]
    call.answer(found, lambda: there or ["The plugin is not installed: `legion plugin install`."])


@command("news", example="legion plugin news")
def news(call: CommandCall) -> None:
    """For the plugin's hooks: what happened since the last turn of a conversation, as JSON."""
    if answer := spoken.hook_answer(call.data_dir, spoken.given()):
        call.out(answer)


@command("line", example="legion plugin line")
def line(call: CommandCall) -> None:
    """For the status line of Claude Code: tickets, questions, money, limits."""
    call.out(spoken.line(call.data_dir, spoken.given()))


plugin = group(
    "plugin",
    "Legion in your own Claude Code.",
    "legion plugin install\nlegion plugin show\nlegion plugin remove",
    install,
    remove,
    show,
    news,
    line,
)


def _places(call: CommandCall) -> list[PluginPlace]:
    found = [_place(call, "user")]
    try:
        return [*found, _place(call, "project")]
    except LegionError:
        return found


def _shape(call: CommandCall, message: str) -> PluginShape:
    lines = [
        PluginAt(place=one.name, folder=str(one.plugin), installed=one.installed, settings=str(one.settings))
        for one in _places(call)
    ]
    return PluginShape(places=lines, message=message)
