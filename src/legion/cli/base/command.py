"""Defines a command: the three common options, help with an example, and a CommandCall to work with."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

from legion.cli.base.output import Screen, progress, sanitize
from legion.cli.base.texts import valid_text
from legion.client.discovery import find, is_remote
from legion.client.http import NotRunning
from legion.client.legion import Legion
from legion.system.paths import default_data_dir
from legion.wire.errors import BadInput, LegionError, NotAllowed, NotFound, StateConflict

if TYPE_CHECKING:
    from legion.client.text.rows import Row
    from legion.wire.table import Operation
    from legion.wire.tickets import Acted

Shown = TypeVar("Shown")
COMMON = ("json", "data_dir", "no_color", "on_session")
_NUMBERED = ("/v1/tickets/{id}/", "/v1/plans/{id}/", "/v1/questions/{id}/")
"""Paths of requests that act on what they name by a number alone."""
_SETTINGS = {"help_option_names": ["-h", "--help"]}


class Report(Protocol):
    """An answer that consists of a sentence, and maybe of notes."""

    message: str


@dataclass(kw_only=True)
class CommandCall:
    """One call of a command: its common options, its output, its connection to the daemon."""

    json: bool
    data_dir: Path
    screen: Screen
    session: str = ""
    """The session that --session names."""
    _legion: Legion | None = field(default=None, repr=False)
    _session_folder: str = field(default="", repr=False)

    @property
    def here(self) -> str:
        """The current folder."""
        try:
            return str(Path.cwd())
        except FileNotFoundError:
            raise LegionError("The current folder no longer exists; change to another one.") from None

    @property
    def cwd(self) -> str:
        """The folder that names the project in requests: the current one, or that of the session of --session."""
        if not self.session:
            return self.here
        if not self._session_folder:
            there = self.legion().sessions(self.here).sessions
            found = [one.folder for one in there if one.name == self.session]
            found += [one.folder for one in there if one.branch == self.session]
            if not found:
                listed = ", ".join(sanitize(one.name) for one in there)
                raise NotFound(f"There is no session {sanitize(self.session)[:60]}; the sessions are {listed}.")
            self._session_folder = found[0]
        return self._session_folder

    def legion(self) -> Legion:
        """The daemon, started if it is not running. What is of another project is asked about or refused."""
        if self._legion is None:
            try:
                self._legion = find(self.data_dir)
            except NotRunning:
                if is_remote():
                    raise
                # Starting needs more imports than asking.
                from legion.client.start import start

                with progress("Starting Legion"):
                    self._legion = start(self.data_dir)
                self.mention_sandbox(self._legion)
            self.mention_version(self._legion)
            self._legion.before = self._before
        return self._legion

    def _before(self, row: Operation, arguments: Mapping[str, Any]) -> None:
        if row.method != "GET" and row.path.startswith(_NUMBERED):
            _confirm_project(self, row.path, arguments["id"])

    def use_shell(self, place: str) -> None:
        """Report the variables of this shell for the programs of the repository here. A script of an agent or for a
        daemon on another machine reports none, and a folder without a repository has no programs."""
        legion = self.legion()
        if is_remote() or legion.address.session:
            return
        from legion.wire.projects import SHELL_NAMES, ShellVariables

        variables = {name: os.environ[name] for name in SHELL_NAMES if name in os.environ}
        with contextlib.suppress(LegionError):
            self.notes(legion.use_shell(ShellVariables(path=place, variables=variables)).notes)

    def again(self) -> Legion:
        """A new connection to the daemon after it was lost. It starts none: a person may have stopped it."""
        self._legion = find(self.data_dir)
        return self._legion

    def again_or_start(self) -> None:
        """A daemon that answers, started where there is none."""
        self._legion = None
        self.legion()

    def answer(self, shape: object, lines: Callable[[], Iterable[str]]) -> None:
        """Print the data: as JSON with --json, else as lines for a person."""
        if self.json:
            self.out(as_json(shape, indent=self.screen.tty))
        else:
            for line in lines():
                self.out(line)

    def show(self, shape: Shown, rows: Callable[[Shown, int], Iterable[Row]]) -> None:
        """Print the data: as JSON with --json, else as rows for a person."""
        self.answer(shape, lambda: self.screen.rows(rows(shape, self.screen.columns)))

    def report(self, done: Report) -> None:
        """Print an answer that is one sentence, and its notes."""
        self.answer(done, lambda: [sanitize(done.message)])
        self.notes(getattr(done, "notes", ()))

    def report_each(self, tickets: Sequence[int], act: Callable[[int], Acted]) -> None:
        """Do it to one ticket after the other. Those that are refused do not hold up the others."""
        done: list[Acted] = []
        refused: list[LegionError] = []
        try:
            for id in tickets:
                try:
                    done.append(act(id))
                except (BadInput, NotAllowed, NotFound, StateConflict) as no:
                    refused.append(no)
        finally:
            if done:
                merged = replace(done[0], tickets=[id for one in done for id in one.tickets])
                merged.message = "\n".join(one.message for one in done)
                self.answer(merged, lambda: [sanitize(one.message) for one in done])
        if refused:
            for one in refused[:-1]:
                self.say(sanitize(one.message))
            raise refused[-1]

    def notes(self, notes: Iterable[str]) -> None:
        for note in notes:
            wrapped = self.screen.paragraph(f"Note: {note}", indent=0) if sys.stderr.isatty() else []
            self.say("\n".join(wrapped or [f"Note: {sanitize(note)}"]))

    def out(self, line: str) -> None:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()

    def out_piece(self, text: str) -> None:
        """Print a part of a line."""
        sys.stdout.write(text)
        sys.stdout.flush()

    def say(self, line: str) -> None:
        """Print a note. It is not data, so it goes to stderr."""
        sys.stdout.flush()
        sys.stderr.write(line + "\n")
        sys.stderr.flush()

    def mention_sandbox(self, legion: Legion) -> None:
        """Warn once, when the daemon starts, if agents run without a sandbox."""
        daemon = legion.status(None).daemon
        if daemon.sandbox_missing:
            self.say(f"Note: Agents run without a sandbox: {sanitize(daemon.sandbox)}")

    def mention_version(self, legion: Legion) -> None:
        other = legion.other_version
        if other:
            self.say(f"Note: the daemon is version {other}; restart it with `legion down` and `legion up`.")


def as_json(shape: object, *, indent: bool) -> str:
    return json.dumps(shape, default=vars, indent=2 if indent else None)


def common_options(function: Callable[..., Any]) -> Callable[..., Any]:
    function = click.option("--no-color", is_flag=True, help="No colours; NO_COLOR=1 does the same.")(function)
    function = click.option("--session", "on_session", metavar="NAME", default="", help="Act on this session.")(
        function
    )
    function = click.option(
        "--data-dir",
        type=click.Path(path_type=Path, file_okay=False),
        help="Legion's own folder, for a separate daemon with separate projects.",
    )(function)
    return click.option("--json", "json", is_flag=True, help="Answer with JSON; docs/json.md describes it.")(function)


def command(name: str, *, example: str) -> Callable[[Callable[..., int | None]], click.Command]:
    """Make a command of a function that takes the CommandCall and its own parameters, and returns the exit code."""

    def decorate(function: Callable[..., int | None]) -> click.Command:
        @common_options
        @functools.wraps(function)
        def invoked(
            json: bool, data_dir: Path | None, no_color: bool, on_session: str, **parameters: object
        ) -> int | None:
            call = make_call(json=json, data_dir=data_dir, no_color=no_color, session=on_session)
            _refuse_unreadable(click.get_current_context().command, parameters)
            return function(call, **parameters)

        made = click.command(name, epilog=_epilog(example), context_settings=_SETTINGS)(invoked)
        # The command's own options come first in its help.
        made.params.sort(key=lambda one: one.name in COMMON)
        return made

    return decorate


def _refuse_unreadable(command: click.Command, given: Mapping[str, object]) -> None:
    """No text with a NUL or without an encoding goes further. Names of files may have any bytes."""
    for param in command.params:
        values = given.get(param.name or "")
        metavar = (getattr(param, "metavar", None) or "").strip("[]").partition("]")[0]
        if metavar in ("FILE", "PATH"):
            continue
        label = max(param.opts, key=len) if isinstance(param, click.Option) else metavar or str(param.name)
        for value in values if isinstance(values, tuple) else (values,):
            if isinstance(value, str):
                valid_text(value, label)


def group(
    name: str, help: str, example: str, *commands: click.Command, alone: click.Command | None = None
) -> click.Group:
    """A command that consists of others; by itself it runs `alone`, or prints its help."""

    @click.pass_context
    def invoked(ctx: click.Context) -> int | None:
        if ctx.invoked_subcommand is not None:
            return None
        if alone is not None:
            found: int | None = ctx.invoke(alone)
            return found
        click.echo(ctx.get_help())
        return None

    return click.Group(
        name,
        commands,
        invoke_without_command=True,
        context_settings=_SETTINGS,
        help=help,
        epilog=_epilog(example),
        callback=invoked,
    )


def _epilog(example: str) -> str:
    indented = "\n".join(f"  {line}" for line in example.splitlines())
    return f"\b\nExample:\n{indented}"


def make_call(*, json: bool, data_dir: Path | None, no_color: bool, session: str = "") -> CommandCall:
    above = click.get_current_context().find_root().obj or {}
    folder = data_dir or above.get("data_dir") or default_data_dir()
    plain = no_color or above.get("no_color") or bool(os.environ.get("NO_COLOR"))
    return CommandCall(
        json=bool(json or above.get("json")),
        data_dir=Path(folder).expanduser().absolute(),
        screen=Screen.of(sys.stdout, plain=bool(plain)),
        session=session or above.get("session") or "",
    )


def _confirm_project(call: CommandCall, path: str, number: int) -> None:
    """Numbers count over all projects. What is of another one is asked about, or refused without a terminal."""
    legion = call.legion()
    if legion.address.session:
        # An agent: its token says what it may do.
        return
    status = legion.status(call.cwd)
    here = status.project
    if here is None or len(status.projects) < 2:
        return
    name, project, title = _named_by(legion, path, number)
    if project in (here.name, ""):
        return
    root = next((one.root for one in status.projects if one.name == project), "")
    text = f"{name} ({sanitize(title)}) is of project {sanitize(project)}, not {sanitize(here.name)}."
    if not sys.stdin.isatty():
        raise NotAllowed(f"{text} Run it in {root}.")
    if not click.confirm(f"{text} Go on?", err=True):
        raise NotAllowed(f"Nothing was done to {name[0].lower()}{name[1:]}.")


def _named_by(legion: Legion, path: str, number: int) -> tuple[str, str, str]:
    """Its name, project and title. A question that no longer waits has none: the daemon says so."""
    if path.startswith("/v1/tickets/"):
        ticket = legion.ticket(number).ticket
        return f"Ticket {number}", ticket.project, ticket.title
    if path.startswith("/v1/plans/"):
        plan = legion.plan_page(number).plan
        return f"Plan {plan.id}", plan.project, plan.goal
    asked = next((one for one in legion.inbox().questions if one.id == number), None)
    return f"Question {number}", asked.project if asked else "", asked.words if asked else ""
