"""The quick way of `legion dispatch`: it asks for exactly what the whole command would, or for nothing."""

from __future__ import annotations

import os
import pty
import socket
import subprocess
import sys
import threading
from pathlib import Path

import click
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sqlalchemy import delete

from legion.cli import quick_connection, quick_dispatch
from legion.cli.base.command import COMMON
from legion.cli.tickets.dispatch import dispatch as whole
from legion.cli.tickets.dispatch import one_ticket
from legion.domain.errors import LegionError
from legion.store.database import schema
from legion.system.paths import default_data_dir
from legion.wire.dispatch import NewTicket
from tests.support.board import Board

PLAIN = [
    ["-t", "A", "Do it"],
    ["Do it", "-t", "A"],
    ["only a text"],
    ["-t", "only a title"],
    ["-t", "A", "-c", "where", "-k", "when", "-p", "how", "Do it"],
    ["--title=A", "--files=a/*", "--files", "b", "--prove", "make test", "Do it"],
    ["-t", "A", "--after", "1,3", "--after", "3,2", "--priority", "7", "--max-attempts", "20", "x"],
    ["-t", "A", "-a", "1,3", "--team", "t", "--label", "l", "--label=m", "--accept", "n", "--review", "off", "x"],
    ["-t", "A", "--budget", "2.5", "--ask", "--plan-first", "x"],
    ["-t", "A", "--checkpoint", "--epic", "e", "--driver", "d", "--command", "c=d", "--model", "m", "x"],
]
NOT_PLAIN = [
    [],
    ["--help"],
    ["-"],
    ["--", "-x"],
    ["a", "b"],
    ["-tA", "x"],
    ["-t", "-A", "x"],
    ["-t"],
    ["--json", "-t", "A", "x"],
    ["--data-dir", "/elsewhere", "-t", "A", "x"],
    ["--session", "other", "-t", "A", "x"],
    ["--from", "plan.toml"],
    ["--after", "x", "y"],
    ["--after", "0", "y"],
    ["--max-attempts", "21", "y"],
    ["--priority", "-1", "y"],
    ["--budget", "0", "y"],
    ["--review", "never", "y"],
    ["-a=1", "y"],
    ["--checkpoint=yes", "y"],
    ["--unheard-of", "of", "y"],
]
OPTIONS = [name for option in whole.params for name in (*option.opts, *option.secondary_opts) if name.startswith("-")]
VALUES = ["", "a text", "x=y", "-", "--", "-5", "0", "7", "007", "21", "1,2", "2,,1", "#3", " 4", "\udcff", "--title=B"]


def by_quick(words: list[str]) -> NewTicket | None:
    try:
        told = quick_dispatch.read(words)
    except LegionError:
        return None
    return None if told is None else NewTicket(**told)


def by_click(words: list[str]) -> NewTicket | None:
    """None where the whole command refuses."""
    try:
        told = whole.make_context("dispatch", list(words)).params
        assert told.pop("plan_file") is None
        assert told.pop("values") == ()
        for common in (*COMMON, "to", "dry_run"):
            told.pop(common)
        return one_ticket(told.pop("arguments"), told)
    except (click.ClickException, LegionError):
        return None


@pytest.mark.parametrize("words", PLAIN)
def test_plain_words_ask_for_the_same_ticket_as_the_whole_command(words: list[str]):
    assert by_quick(words) == by_click(words) is not None


@pytest.mark.parametrize("words", NOT_PLAIN)
def test_whatever_is_not_plain_is_left_to_the_whole_command(words: list[str]):
    assert by_quick(words) is None


@given(st.lists(st.sampled_from([*(name for name in OPTIONS if name not in ("-h", "--help")), *VALUES]), max_size=7))
@example(["-t", "", "a text"])
def test_no_words_are_understood_in_two_ways(words: list[str]):
    ticket = by_quick(words)
    assert ticket is None or ticket == by_click(words)


def test_a_plain_dispatch_is_asked_for_without_importing_what_costs(program, board: Board):
    ended = program(
        "dispatch", "-t", "A", "-c", "here", "--command", "true", "Do it", env={"PYTHONPROFILEIMPORTTIME": "1"}
    )
    assert (ended.code, ended.out) == (0, "Ticket ID: 1\n")
    asked = board.callers.sent[-1]["wanted"]
    assert asked.cwd == str(Path.cwd())
    assert len(asked.request) == 32
    assert asked.tickets == [NewTicket(title="A", context="here", text="Do it", command="true")]
    for name in (
        "click",
        "dataclasses",
        "inspect",
        "typing",
        "pathlib",
        "urllib.parse",
        "legion.wire.dispatch",
        "legion.wire.tickets",
    ):
        assert not any(line.rpartition("|")[2].strip() == name for line in ended.err.splitlines()), name


def test_notes_are_told_and_the_ticket_is_made_once(program, board: Board):
    with board.store.write() as tx:
        tx.execute(delete(schema.trusted))
    ended = program("dispatch", "-t", "A", "-c", "here", "Do it")
    board.trust()
    assert (ended.code, ended.out) == (0, "Ticket ID: 1\n")
    assert ended.err.startswith("Note: ")
    assert "legion trust" in ended.err
    assert list(board.tickets) == [1]


def test_a_refusal_is_one_sentence_with_its_exit_code(program, board: Board):
    ended = program("dispatch", "-t", "A", "--after", "77", "B")
    assert (ended.code, ended.out) == (2, "")
    assert "77" in ended.err
    assert ended.err.count("\n") == 1
    assert board.callers.asked == ["dispatch"]


@pytest.mark.parametrize("shell", ["exec 1>&-; exec {}", "{} | true"])
def test_nobody_has_to_read_the_number(board: Board, shell: str):
    legion = f"{sys.executable} -m legion dispatch -t A --command true x"
    ended = subprocess.run(["sh", "-c", shell.format(legion)], capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert board.callers.asked == ["dispatch"]


def test_in_a_terminal_the_shell_reports_its_variables(board: Board):
    ours, terminal = pty.openpty()
    words = [sys.executable, "-m", "legion", "dispatch", "-t", "A", "--command", "true", "x"]
    ended = subprocess.run(words, stdin=terminal, capture_output=True, text=True, timeout=60, check=False)
    os.close(ours)
    os.close(terminal)
    assert (ended.returncode, ended.stdout) == (0, "Ticket ID: 1\n"), ended.stderr
    assert "use_shell" in board.callers.asked


@pytest.fixture
def listener(short_folder: Path, monkeypatch: pytest.MonkeyPatch):
    """The socket of a daemon that the test plays."""
    monkeypatch.delenv("LEGION_URL", raising=False)
    monkeypatch.setenv("LEGION_DATA_DIR", str(short_folder))
    (short_folder / "token").write_text("secret\n")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(str(short_folder / "api.sock"))
        yield listening


def test_a_socket_where_nobody_listens_is_left_to_the_whole_command(listener: socket.socket, capsys):
    assert quick_dispatch.dispatch(["-t", "A", "x"]) is None
    assert capsys.readouterr() == ("", "")


def test_a_request_that_may_have_been_done_is_not_made_again(listener: socket.socket, capsys):
    listener.listen()

    def hang_up() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)

    daemon = threading.Thread(target=hang_up)
    daemon.start()
    assert quick_dispatch.dispatch(["-t", "A", "x"]) == 75
    daemon.join(20)
    assert "went away in the middle" in capsys.readouterr().err


@pytest.mark.parametrize(
    "env",
    [
        {"LEGION_DATA_DIR": "/data/here", "XDG_DATA_HOME": "/xdg", "HOME": "/home/me"},
        {"XDG_DATA_HOME": "/xdg", "HOME": "/home/me"},
        {"HOME": "/home/me"},
        {"LEGION_DATA_DIR": "", "XDG_DATA_HOME": "", "HOME": "/home/me"},
    ],
)
def test_the_folder_is_the_one_that_everybody_uses(env: dict[str, str], monkeypatch: pytest.MonkeyPatch):
    for name in ("LEGION_DATA_DIR", "XDG_DATA_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert quick_connection.data_dir() == str(default_data_dir())


@pytest.mark.parametrize("env", [{"LEGION_DATA_DIR": "~/x"}, {"LEGION_DATA_DIR": "x"}, {"XDG_DATA_HOME": "x"}])
def test_a_folder_that_needs_thought_is_left_to_the_whole_command(env: dict[str, str], monkeypatch: pytest.MonkeyPatch):
    for name in ("LEGION_DATA_DIR", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    assert quick_connection.data_dir() is None
