"""A Postgres of the tests' own: started once per session by whoever needs it first, one database per test."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from tests.support.session import session_folder, take

_PATIENCE = 90.0


def server_folder() -> Path:
    """The folder of the running server's socket. Where there is no Postgres the test is skipped."""
    session = session_folder()
    answer = session / "postgres.answer"
    starting = take(session / "postgres.starting")
    try:
        if not answer.exists():
            answer.write_text(_start_keeper(session))
    finally:
        os.close(starting)
    said = answer.read_text()
    if said == "ready":
        return session / "postgres"
    pytest.skip(said)


def _start_keeper(session: Path) -> str:
    keeper = Path(__file__).with_name("postgres_keeper.py")
    # It outlives this worker on purpose: the session's end stops it, not ours.
    child = subprocess.Popen(
        [sys.executable, keeper, session], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True
    )
    assert child.stdout is not None
    with child.stdout as out:
        readable, _, _ = select.select([out], [], [], _PATIENCE)
        said = out.readline().decode().strip() if readable else ""
    # Nobody waits for it: without a code, Python would warn about that.
    child.returncode = 0
    return said or f"Postgres did not start within {_PATIENCE:.0f} seconds"


@contextmanager
def fresh_database(template: str = "template1") -> Iterator[str]:
    """A database for one test, as an SQLAlchemy URL: empty, or a copy of the template."""
    name = f"test_{uuid.uuid4().hex}"
    url = create(name, template)
    try:
        yield url
    finally:
        drop(name)


def create(name: str, template: str = "template1") -> str:
    """Make a database and say its URL."""
    socket = server_folder()
    with _administrator(socket) as connection:
        words = sql.SQL("create database {} template {}")
        connection.execute(words.format(sql.Identifier(name), sql.Identifier(template)))
    return f"postgresql+psycopg://legion@/{name}?host={socket}"


def drop(name: str) -> None:
    with _administrator(server_folder()) as connection:
        connection.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))


def _administrator(socket: Path) -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(host=str(socket), user="legion", dbname="postgres", autocommit=True)
