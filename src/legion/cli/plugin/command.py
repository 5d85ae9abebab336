"""`legion plugin`: Legion in the person's own Claude Code, installed, shown and removed."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import click

from legion.cli.base.command import CommandCall, command, group
from legion.cli.base.output import Cell, Colour
from legion.cli.base.shapes import PluginAt, PluginCommand, PluginShape
from legion.cli.plugin import news as spoken
from legion.cli.plugin import place as places
from legion.cli.plugin.place import PLAIN, PluginPlace, commands, program_of_person
from legion.client.http import DaemonAddress, DaemonConnection, NotRunning
from legion.system.paths import DataDir, default_data_dir
from legion.wire.errors import LegionError, NotAllowed

_AT_ONCE = 8
_PATIENCE = 3600.0
"""Seconds: some tools wait for a person."""
_ACCEPT = "application/json, text/event-stream"
_FAILED = -32603


class Bridge:
    """Reads requests from a stream, and writes the daemon's answers to another, in any order."""

    def __init__(self, call: CommandCall, output: TextIO) -> None:
        self._call = call
        self._output = output
        self._writing = threading.Lock()
        self._starting = threading.Lock()
        self._cwd = os.environ.get("CLAUDE_PROJECT_DIR") or str(Path.cwd())

    def run(self, requests: BinaryIO) -> None:
        with ThreadPoolExecutor(max_workers=_AT_ONCE, thread_name_prefix="mcp") as pool:
            for raw in requests:
                try:
                    message = json.loads(raw)
                except ValueError:
                    continue
                # Without an id it is a notification, which needs no answer and means nothing without a session.
                if isinstance(message, dict) and "id" in message and "method" in message:
                    pool.submit(self._answer, message)

    def _answer(self, message: dict[str, Any]) -> None:
        try:
            answer = self._ask(message)
        except LegionError as error:
            answer = {"jsonrpc": "2.0", "id": message["id"], "error": {"code": _FAILED, "message": error.message}}
        with self._writing:
            self._output.write(json.dumps(answer) + "\n")
            self._output.flush()

    def _ask(self, message: dict[str, Any]) -> object:
        try:
            return self._send(self._connection(), message)
        except NotRunning:
            with self._starting:
                self._call.again_or_start()
            return self._send(self._connection(), message)

    def _send(self, connection: DaemonConnection, message: dict[str, Any]) -> object:
        found: object = connection.ask(
            "POST", "/mcp", query={"cwd": self._cwd}, body=message, timeout=_PATIENCE, accept=_ACCEPT
        )
        return found

    def _connection(self) -> DaemonConnection:
        data = DataDir(self._call.data_dir)
        try:
            token = data.plugin_token.read_text().strip()
        except FileNotFoundError:
            raise NotAllowed(
                "The token of Legion's tools is gone: run `legion plugin mcp`, or `legion plugin install`."
            ) from None
        if not data.socket.exists():
            raise NotRunning("Legion is not running.")
        return DaemonConnection(DaemonAddress(socket=str(data.socket), token=token))


def tools_token(data: DataDir) -> Path:
    """The file of a token that opens Legion's tools and nothing else; the daemon reads it at each call."""
    data.root.mkdir(parents=True, exist_ok=True, mode=0o700)
    with contextlib.suppress(FileExistsError):
        handle = os.open(data.plugin_token, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write(f"legion-plugin-{secrets.token_urlsafe(32)}\n")
    return data.plugin_token


def serve(call: CommandCall) -> None:
    Bridge(call, sys.stdout).run(sys.stdin.buffer)


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
