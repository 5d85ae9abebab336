"""Commands that start and stop the daemon: up, down, serve."""

from __future__ import annotations

import importlib
import os
import subprocess
import time

import click

from legion import __version__
from legion.cli.base.command import CommandCall, command
from legion.cli.base.output import progress, sanitize
from legion.cli.base.shapes import DaemonShape
from legion.client.discovery import OWN_NAMES, find, is_remote, read_record
from legion.client.http import NotRunning
from legion.client.start import start, stop
from legion.system.paths import DataDir
from legion.system.supervisors import ServiceFile, ServiceHost, daemon_service, starts_with_machine, write_service
from legion.wire.errors import BadInput, LegionError
from legion.wire.projects import Done

_SERVICE_PATIENCE = 60.0
_LOOK_AGAIN = 0.1
_LONGEST = 300


@command("up", example="legion up\nlegion up --service")
@click.option("--service", is_flag=True, help="By systemd or launchd, which start it again after a reboot.")
def up(call: CommandCall, service: bool) -> None:
    """Start Legion in the background. Other commands start it when they need it.

    After a reboot agents, routines and forges otherwise stand still until the next command.
    """
    _refuse_remote()
    if service:
        _supervise(call)
    try:
        find(call.data_dir)
        started = False
    except NotRunning:
        with progress("Starting Legion"):
            legion = start(call.data_dir)
        call.mention_sandbox(legion)
        started = True
    record = read_record(call.data_dir)
    if record is None:
        raise LegionError(f"Legion runs but wrote no daemon.json into {call.data_dir}; see its daemon.log.")
    answer = _daemon(call, pid=record.pid, url=record.url, version=record.version, started=started)
    is_up = "is up" if started else "was up already"
    call.answer(answer, lambda: [f"Legion {record.version} {is_up}: {record.url} (pid {record.pid})"])
    call.use_shell(call.here)
    call.say(f"Data directory: {call.data_dir}")
    call.say(f"Token: in {answer.token_file}")


def _supervise(call: CommandCall) -> None:
    """Write the service and have it started. The daemon of before ends first; its agents work on."""
    made = _service(call)
    write_service(made)
    call.say(f"Written: {made.file}")
    stop(call.data_dir)
    otherwise = f"Legion starts without it; later: {made.commands[0]}"
    if all(_told_supervisor(words, otherwise, call) for words in made.start):
        _wait_for_daemon(call)
        if made.advice and not starts_with_machine():
            call.say(f"It starts when you log in. To have it start with the machine: {made.advice}")


def _wait_for_daemon(call: CommandCall) -> None:
    """A second one would take the folder of the supervisor's."""
    deadline = time.monotonic() + _SERVICE_PATIENCE
    while time.monotonic() < deadline:
        try:
            find(call.data_dir)
        except NotRunning:
            time.sleep(_LOOK_AGAIN)
        else:
            return


def _service(call: CommandCall) -> ServiceFile:
    made = daemon_service(call.data_dir, ServiceHost.here())
    if made is None:
        raise BadInput("Neither systemd nor launchd runs here: have a supervisor of your own run `legion serve`.")
    return made


def _told_supervisor(words: tuple[str, ...], otherwise: str, call: CommandCall) -> bool:
    done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
    if done.returncode != 0:
        call.say(f"`{' '.join(words)}` failed: {sanitize(done.stderr.strip()[:_LONGEST])}. {otherwise}")
    return done.returncode == 0


@command("down", example="legion down\nlegion down --service")
@click.option("--service", is_flag=True, help="And never start it again by itself: undoes `legion up --service`.")
def down(call: CommandCall, service: bool) -> None:
    """Stop Legion in the background. Running agents continue; `legion up` adopts them again."""
    if service:
        made = _service(call)
        for words in made.end if made.file.exists() else ():
            _told_supervisor(words, "Its file is removed all the same.", call)
        made.file.unlink(missing_ok=True)
        call.say(f"Removed: {made.file}")
    with progress("Stopping Legion"):
        was_up = stop(call.data_dir)
    message = "Legion is down." if was_up else "Legion was not running."
    call.answer(Done(message=message), lambda: [message])


@command("serve", example="legion serve --port 6666")
@click.option(
    "--port", type=click.IntRange(0, 65535), metavar="N", help="6666, or as your config says; 0: any free one."
)
@click.option("--host", metavar="ADDRESS", help="127.0.0.1, or as your config says; it answers only under that name.")
@click.option("--standby", is_flag=True, help="Wait until no other head serves the same Postgres, then take over.")
@click.option(
    "--machines",
    is_flag=True,
    help="Only serve machines under --host, for the head that has the same Postgres and data directory.",
)
def serve(call: CommandCall, port: int | None, host: str | None, standby: bool, machines: bool) -> int:
    """Run Legion in the foreground; Ctrl-C ends it.

    Prints the port and the data directory; with --json one object, as `up` does, as soon as it answers. If the port is
    taken, the next free one is used and recorded.
    """
    if machines:
        return _serve_machines(call, host or "", port, standby=standby)
    if host is not None and host not in OWN_NAMES:
        call.say(
            f"Note: {sanitize(host)} is open to other machines: everyone with the token can run programs as you. They "
            "must use exactly this address, so 0.0.0.0 or :: serve only this machine."
        )

    def announce(url: str) -> None:
        call.answer(_daemon(call, pid=os.getpid(), url=url, version=__version__, started=True), list)

    # Imported by name: the command line must not depend on the daemon's code, which is slow to import.
    daemon = importlib.import_module("legion.daemon.main")
    code = daemon.serve(
        port=port, host=host, data_dir=call.data_dir, announce=announce if call.json else None, standby=standby
    )
    return code if isinstance(code, int) else 0


def _serve_machines(call: CommandCall, host: str, port: int | None, *, standby: bool) -> int:
    if standby:
        raise BadInput("A standby waits to be the head, and --machines only serves machines: choose one of the two.")

    def announce(url: str) -> None:
        answer = _daemon(call, pid=os.getpid(), url=url, version=__version__, started=True)
        call.answer(answer, lambda: [f"Machines can dial {url} too. Ctrl-C ends it; they then dial the head."])

    second_head = importlib.import_module("legion.daemon.second_head")
    second_head.serve(host, port, DataDir(call.data_dir), announce)
    return 0


def _daemon(call: CommandCall, *, pid: int, url: str, version: str, started: bool) -> DaemonShape:
    return DaemonShape(
        pid=pid,
        url=url,
        version=version,
        data_dir=str(call.data_dir),
        token_file=str(DataDir(call.data_dir).token),
        started=started,
    )


def _refuse_remote() -> None:
    if is_remote():
        raise BadInput("LEGION_URL names a daemon that runs elsewhere; unset it to start one here.")
