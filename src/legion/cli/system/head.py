"""`legion machine head`: the state of a head as a file, and its move from SQLite to Postgres."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import click

from legion.cli.base.command import CommandCall, command, group
from legion.cli.base.output import count, progress, sanitize
from legion.client.discovery import is_remote
from legion.system.paths import user_config_file
from legion.wire.errors import BadInput
from legion.wire.machines import HeadState


@command("backup", example="legion machine head backup legion-monday.tar")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False))
def backup(call: CommandCall, file: Path) -> None:
    """Write the head's state into a file: database and hubs.

    Legion may work meanwhile. Not in it: keys of providers, the token, the output of past runs, and what agents have
    not saved yet.
    """
    with progress("Writing the backup"):
        done: HeadState = _daemon().backup(call.data_dir, file)
    call.answer(done, lambda: [f"Wrote {sanitize(done.place)}: {_size(done)}."])


@command("restore", example="legion machine head restore legion-monday.tar --data-dir /srv/legion")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False))
def restore(call: CommandCall, file: Path) -> None:
    """Make a head of a backup: into an empty database and an empty data directory.

    Agents that were at work then resume from what was saved when Legion is up.
    """
    with progress("Restoring the head"):
        done: HeadState = _daemon().restore(call.data_dir, file)
    call.answer(done, lambda: [f"Restored {_size(done)}, into {sanitize(done.place)}. Start it with `legion up`."])


@command("move", example="legion machine head move postgresql://legion@db.example/legion")
@click.argument("url", metavar="URL")
def move(call: CommandCall, url: str) -> None:
    """Move the database from SQLite to an empty Postgres. Legion must be down.

    Other machines and a standby need Postgres.
    """
    with progress("Copying the database"):
        done: HeadState = _daemon().move(call.data_dir, url)
    call.answer(done, lambda: _moved(done, url))


def _moved(done: HeadState, url: str) -> Iterator[str]:
    yield f"Copied {done.rows} rows to {sanitize(done.place)}. The old database is kept as {sanitize(done.kept)}."
    yield f"Now write these two lines into {user_config_file()}, then run `legion up`:"
    yield "  [daemon]"
    yield f'  database = "{sanitize(url)}"'


def _size(done: HeadState) -> str:
    return f"{count(len(done.projects), 'project')}, {count(done.rows, 'row')}, {done.bytes / 1e6:.1f} MB"


def _daemon() -> ModuleType:
    """Imported by name, as in `serve`: the command line must not depend on the daemon's code."""
    if is_remote():
        raise BadInput("LEGION_URL names a daemon that runs elsewhere; run this on its own machine.")
    return importlib.import_module("legion.daemon.head")


head = group(
    "head",
    """The state of the head: backup, restore, and the move to Postgres.

All of it is in the database and in the hubs of the projects.
""",
    "legion machine head backup legion-monday.tar\nlegion machine head move postgresql://legion@db.example/legion",
    backup,
    restore,
    move,
)
