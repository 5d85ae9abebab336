"""The program as a process: signals, pipes, terminals, odd input. Never a traceback."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import update

from legion import __version__
from legion.store.database import schema
from legion.wire.projects import Config, SettingLine
from tests.api.serving import Served, serving
from tests.support.board import Board


@contextmanager
def running(*words: str, **told):
    """A command that goes on; killed at the end if it has not ended."""
    process = subprocess.Popen(
        [sys.executable, "-m", "legion", *words],
        stdin=subprocess.DEVNULL,
        stdout=told.pop("stdout", subprocess.PIPE),
        stderr=told.pop("stderr", subprocess.PIPE),
        text=True,
        **told,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=20)


def read_until(handle: int, wanted: bytes, seconds: float = 20.0) -> bytes:
    """What comes until the wanted bytes are there."""
    got = b""
    deadline = time.monotonic() + seconds
    while wanted not in got:
        ready = select.select([handle], [], [], max(0.0, deadline - time.monotonic()))[0]
        assert ready, f"{wanted!r} did not come; got {got!r}"
        got += os.read(handle, 65536)
    return got


def test_the_version_is_answered_without_importing_anything_of_weight(program):
    for words in (["version"], ["--version"], ["-V"]):
        ended = program(*words, env={"PYTHONPROFILEIMPORTTIME": "1"})
        assert (ended.code, ended.out) == (0, f"legion {__version__}\n")
        assert not [
            name for name in ("click", "json", "http", "legion.wire") if f"| {name}\n" in ended.err.replace("  ", "")
        ]
    assert json.loads(program("version", "--json").out) == {"schema": "legion.version/1", "version": __version__}


def test_asking_the_daemon_imports_none_of_its_libraries(program):
    ended = program("status", env={"PYTHONPROFILEIMPORTTIME": "1"})
    assert ended.code == 0
    for name in (
        "fastapi",
        "pydantic",
        "sqlalchemy",
        "uvicorn",
        "asyncio",
        "subprocess",
        "legion.cli.tickets.dispatch",
    ):
        assert f" {name}\n" not in ended.err, name


@pytest.mark.parametrize(
    ("words", "code"),
    [(["status"], 0), (["nonsense"], 2), (["ticket", "9"], 3), (["stop", "1"], 5), (["wait", "2"], 1)],
)
def test_exit_codes_of_the_real_process(program, board: Board, words, code):
    board.put(1, state="done")
    board.put(2, state="stopped")
    ended = program(*words)
    assert ended.code == code
    assert "Traceback" not in ended.err


def test_ctrl_c_is_one_line_and_130(board: Board):
    board.put(1, state="working")
    with running("wait", "1") as process:
        assert board.news.waiting.acquire(timeout=20)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert err.splitlines()[-1] == "Interrupted."
    assert "Traceback" not in err


def test_a_reader_that_goes_away_is_no_trouble(board: Board):
    board.put(1, state="done")
    board.run(1, "line\n" * 500_000)
    # Unbuffered, Python itself would hide what happens.
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with running("log", "1", env=buffered) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "line\n"
        process.stdout.close()
        process.stdout = None
        _, err = process.communicate(timeout=20)
    assert (process.returncode, err) == (0, "")


def test_the_text_may_come_from_stdin(program, board: Board):
    text = "Zeile für Zeile 🎉\n" * 50_000
    ended = program("dispatch", "-t", "Long", "-", stdin=text.encode())
    assert ended.out == "Ticket ID: 1\n"
    assert board.tickets[1].spec.text == text


@pytest.mark.parametrize(
    ("words", "stdin", "said"),
    [
        (["dispatch", "-t", "A", "-"], b"\xff\xfe", "TEXT is not UTF-8 (byte 0)"),
        (["dispatch", "-t", "A", "-"], b"a\0b", "TEXT holds a NUL"),
        (["dispatch", "-"], b"  \n", "The text is empty"),
        (["dispatch", "-t", b"\xff", "x"], b"", "--title is not valid UTF-8"),
        (["dispatch", "-t", "A", "-c", b"\xff", "x"], b"", "--context is not valid UTF-8"),
        (["dispatch", "--from", "-"], b"nope", "The plan is not valid TOML"),
        (["retry", "1", "--feedback", b"\xff"], b"", "--feedback is not valid UTF-8"),
        (["ticket", b"\xff"], b"", "no ticket number"),
        (["init", b"\xff"], b"", "path is not valid UTF-8"),
    ],
)
def test_odd_bytes_get_a_sentence(program, board: Board, words, stdin, said):
    ended = program(*words, stdin=stdin)
    assert ended.code in (2, 3)
    assert said in ended.err
    assert ended.err.count("\n") == 1
    assert board.tickets == {}


def test_a_folder_that_is_gone_is_said(board: Board, tmp_path: Path):
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f"cd {gone} && rmdir {gone} && exec {sys.executable} -m legion status"
    ended = subprocess.run(["sh", "-c", script], capture_output=True, text=True, timeout=20, check=False)
    assert ended.returncode == 1
    assert ended.stderr == "The current folder no longer exists; change to another one.\n"


def test_a_terminal_without_unicode_gets_plain_letters(program, board: Board):
    board.put(1, "漢字", "done")
    ended = program("status", env={"PYTHONIOENCODING": "ascii"})
    assert ended.code == 0
    assert "+ done" in ended.out
    assert "??" in ended.out


def test_wait_tells_each_change_and_ends_with_the_last(board: Board):
    board.put(1, "First", "working")
    board.put(2, "Second", "queued")
    with running("wait") as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("Waiting for 2 tickets")
        board.put(1, "First", "done")
        assert "#1 done: First" in process.stderr.readline()
        board.put(2, "Second", "failed")
        out, err = process.communicate(timeout=20)
    assert "#2 failed: Second" in err
    assert process.returncode == 1
    assert "✓ done    #1  First" in out


def test_a_dropped_ticket_is_not_waited_for(board: Board):
    board.put(1, "First", "working")
    board.put(2, "Second", "working")
    with running("wait") as process:
        assert process.stderr is not None
        process.stderr.readline()
        board.service.stop(2)
        board.service.drop(2)
        board.put(1, "First", "done")
        out, _ = process.communicate(timeout=20)
    assert process.returncode == 0
    assert "Second" not in out


def test_a_log_is_followed_to_its_end(board: Board):
    board.put(1, state="working")
    run = board.run(1, "one\n", ended=False)
    with running("log", "1", "-f") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "one\n"
        board.print(run, "two\n")
        assert process.stdout.readline() == "two\n"
        board.end_run(run)
        board.put(1, state="done")
        assert process.wait(timeout=20) == 0


def test_watch_shows_state_and_output_until_the_end(board: Board):
    board.put(1, "First", "working")
    run = board.run(1, ended=False)
    with running("watch", "1") as process:
        assert process.stdout is not None
        assert "● working" in process.stdout.readline()
        board.print(run, "thinking\n")
        assert process.stdout.readline() == "thinking\n"
        board.end_run(run)
        board.put(1, "First", "done")
        assert "✓ done" in process.stdout.readline()
        assert process.wait(timeout=20) == 0


def test_status_in_a_pipe_is_written_anew_at_each_change(board: Board):
    board.put(1, "First", "queued")
    with running("status", "-w", "--json") as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["tickets"][0]["state"] == "queued"
        board.put(1, "First", "working")
        assert json.loads(process.stdout.readline())["tickets"][0]["state"] == "working"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_live_screen_leaves_the_terminal_as_it_was(board: Board, number):
    board.put(1, "First", "queued")
    ours, theirs = pty.openpty()
    with running("status", "-w", stdout=theirs, env={**os.environ, "TERM": "xterm"}) as process:
        os.close(theirs)
        shown = read_until(ours, b"First")
        assert b"\x1b[?1049h" in shown
        board.put(1, "First", "working")
        read_until(ours, b"working")
        process.send_signal(number)
        assert b"\x1b[?25h\x1b[?1049l" in read_until(ours, b"\x1b[?1049l")
        assert process.wait(timeout=20) in (130, 128 + number)
    os.close(ours)


def test_colours_only_on_a_terminal_and_never_against_the_persons_wish(board: Board):
    board.put(1, "First", "failed")
    for env, coloured in (({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)):
        ours, theirs = pty.openpty()
        with running("status", stdout=theirs, env={**os.environ, "TERM": "xterm", **env}) as process:
            os.close(theirs)
            shown = read_until(ours, b"legion retry 1")
            assert process.wait(timeout=20) == 0
        os.close(ours)
        assert (b"\x1b[31m" in shown) is coloured


def test_waiting_survives_a_restart_of_the_daemon(short_folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LEGION_DATA_DIR", str(short_folder / "data"))
    with serving(short_folder) as served:
        served.board.put(1, state="working")
        process = subprocess.Popen(
            [sys.executable, "-m", "legion", "wait", "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert served.board.news.waiting.acquire(timeout=20)
        served.board.put(1, state="checking")
        assert served.board.news.waiting.acquire(timeout=20)
    assert process.stderr is not None
    said = ""
    while "went away" not in said:
        line = process.stderr.readline()
        assert line, f"it ended with {process.wait(20)} and said {said!r}"
        said += line
    with serving(short_folder) as served:
        served.board.put(1, state="done")
        process.communicate(timeout=30)
    assert process.returncode == 0


def complete(program, words: str) -> list[str]:
    position = str(len(words.split(" ")) - 1)
    env = {"_LEGION_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": position}
    return [line.partition(",")[2] for line in program(env=env).out.splitlines()]


def test_the_tab_key_completes_commands_options_and_tickets(program, board: Board, server: Served):
    board.put(12, "First")
    board.put(34, "Second")
    assert complete(program, "legion st") == ["status", "stop", "start"]
    assert "--checkpoint" in complete(program, "legion dispatch --c")
    assert complete(program, "legion ticket 1") == ["12"]
    assert complete(program, "legion config completion f") == ["fish"]
    assert complete(program, "legion stop 3") == ["34"]
    assert complete(program, "legion stop a") == ["all"]
    assert complete(program, "legion dispatch --after 12,3") == ["12,34"]
    setting = SettingLine(key="drivers.claude.run", value="claude -p", origin="/config.toml")
    config = Config(user_file="/config.toml", project_file="", settings=[setting], trusted=True)
    board.callers.instead = {"config": config}
    assert complete(program, "legion dispatch --driver c") == ["claude"]


def test_the_tab_key_leaves_files_and_folders_to_the_shell(program):
    for words, kind in (("legion init s", "dir,s"), ("legion dispatch --from s", "file,s")):
        env = {"_LEGION_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
        assert program(env=env).out.strip() == kind


def test_a_closed_stdout_is_no_trouble(board: Board):
    board.put(1)
    for words in ("status", "version", "nonsense"):
        ended = subprocess.run(
            ["sh", "-c", f"{sys.executable} -m legion {words} >&-"],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert "Traceback" not in ended.stderr
        assert ended.returncode == (2 if words == "nonsense" else 0)


def test_collect_that_waits_also_waits_for_the_persons_own_commits(short_folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LEGION_DATA_DIR", str(short_folder / "data"))
    with serving(short_folder) as served:
        board = served.board
        own = board.repository.commit("the person's own", {"own.txt": "mine\n"})
        with running("collect", "--wait", cwd=board.cwd) as command:
            assert command.stderr is not None
            said = command.stderr.readline()
            while not said.startswith("Waiting until your own commits are checked"):
                assert said
                said = command.stderr.readline()
            with board.store.write() as tx:
                tx.execute(update(schema.projects).values(target=own, person_absorbed=own))
            board.happen()
            out, _ = command.communicate(timeout=20)
    assert (command.returncode, out) == (0, "main already contains all landed work.\n")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_is_one_that_the_shell_can_read(program, shell, tmp_path: Path):
    script = program("completion", shell).out
    assert "_LEGION_COMPLETE" in script
    if shell == "bash":
        checked = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, timeout=20, check=False)
        assert (checked.returncode, checked.stderr) == (0, "")


def test_a_tab_starts_no_daemon(program, tmp_path: Path):
    env = {"_LEGION_COMPLETE": "bash_complete", "COMP_WORDS": "legion ticket 1", "COMP_CWORD": "2"}
    ended = program(env={**env, "LEGION_DATA_DIR": str(tmp_path / "fresh")})
    assert (ended.code, ended.out.strip(), ended.err) == (0, "", "")
    assert not (tmp_path / "fresh").exists()
