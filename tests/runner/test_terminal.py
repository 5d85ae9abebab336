"""Programs in a terminal that the runner holds: viewers, sizes, replay, state of the screen, and what survives."""

from __future__ import annotations

import re
import select
import socket
import time
from collections.abc import Sequence
from pathlib import Path

from legion.domain.terminal import FrameKind, FrameReader, Hello, TerminalEnd, TerminalSize, frame
from legion.drivers import EndKind, Program
from legion.drivers.terminal_options import TerminalOptions
from legion.runner import control, launch
from legion.runner.journal import read_journal
from legion.runner.launch import LivingRun
from legion.runner.spec import TERMINAL_SOCKET
from legion.runner.viewers import ViewerServer
from tests.runner.runs import DEADLINE, ENV, Workbench, assert_gone, program_of, runner_of

PYTHON = ("python3", "-I", "-u", "-c")
DRAWS = """
import os, signal, sys
signal.signal(signal.SIGWINCH, lambda *_: print("drawn at", *reversed(os.get_terminal_size())))
print("first line")
for line in sys.stdin: print("got", line)
"""
"""Not bash: it forgets a signal that arrives while its trap for the one before runs."""


class Viewer:
    """What `legion attach` is for the runner."""

    __slots__ = ("_frames", "_socket", "end", "seen")

    def __del__(self) -> None:
        self._socket.close()

    def __init__(self, run_dir: Path, *, columns: int = 80, rows: int = 24, only_looks: bool = False) -> None:
        self._frames = FrameReader()
        self.seen = b""
        """Everything so far, with the echo of what was typed."""
        self.end: TerminalEnd | None = None
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.connect(str(run_dir / TERMINAL_SOCKET))
        hello = Hello(size=TerminalSize(columns=columns, rows=rows), only_looks=only_looks)
        self._socket.sendall(frame(FrameKind.HELLO, hello.to_bytes()))

    def type(self, text: str) -> None:
        self._socket.sendall(frame(FrameKind.KEYS, text.encode()))

    def resize(self, columns: int, rows: int) -> None:
        self._socket.sendall(frame(FrameKind.SIZE, TerminalSize(columns=columns, rows=rows).to_bytes()))

    def sees(self, pattern: str) -> str:
        deadline = time.monotonic() + DEADLINE
        while not (found := re.search(pattern.encode(), self.seen)):
            assert self._read(deadline), f"{pattern!r} is not in {self.seen[-2000:]!r}"
        return found[0].decode()

    def sees_the_end(self) -> TerminalEnd:
        deadline = time.monotonic() + DEADLINE
        while self.end is None:
            assert self._read(deadline), f"no end after {self.seen[-2000:]!r}"
        return self.end

    def leave(self) -> None:
        self._socket.close()

    def _read(self, deadline: float) -> bool:
        ready, _, _ = select.select([self._socket], [], [], max(0, deadline - time.monotonic()))
        data = self._socket.recv(1 << 16) if ready else b""
        for kind, content in self._frames.feed(data):
            if kind is FrameKind.OUTPUT:
                self.seen += content
            elif kind is FrameKind.END:
                self.end = TerminalEnd.from_bytes(content)
        return bool(data)


def started(bench: Workbench, argv: Sequence[str], **options: object) -> Path:
    env = {**ENV, "TERM": "xterm", "PS1": "$ "}
    run_dir = bench.start(
        argv,
        program=Program(argv=tuple(argv), cwd=bench.worktree, env=env, terminal=True),
        driver="terminal",
        options=TerminalOptions(**options).to_json(),  # type: ignore[arg-type]
    )
    until_recorded(run_dir, "terminal")
    return run_dir


def until_recorded(run_dir: Path, kind: str) -> None:
    with control.connect(run_dir, DEADLINE) as connection:
        control.send(connection, "follow")
        while kind not in kinds(run_dir):
            assert connection.recv(4096), f"the run ended without {kind}"


def kinds(run_dir: Path) -> list[str]:
    return [event.kind for event in read_journal(run_dir)]


def test_a_shell_has_job_control_sizes_and_its_exit_code_is_reported(bench: Workbench):
    run_dir = started(bench, ["bash", "--norc", "-i"])
    viewer = Viewer(run_dir, columns=91, rows=33)
    viewer.type("stty size; echo on-$(tty)\r")
    viewer.sees("33 91")
    viewer.sees("\non-/dev/")
    # One command prints and sleeps: between two commands the shell itself would get the key.
    viewer.type("sh -c 'echo begun; exec sleep 1000'\r")
    viewer.sees("\rbegun")
    viewer.type("\x03")
    viewer.type("echo left-$((40 + 2))\r")
    viewer.sees("left-42")
    assert b"no job control" not in viewer.seen
    viewer.type("exit 7\r")
    assert viewer.sees_the_end().exit_code == 7
    result = bench.result(run_dir)
    assert (result.outcome, result.exit_code) == (EndKind.EXITED, 7)
    assert not (run_dir / TERMINAL_SOCKET).exists()


def test_a_new_viewer_sees_what_was_printed_before_and_the_program_draws_again(sandboxed: Workbench):
    run_dir = started(sandboxed, [*PYTHON, DRAWS])
    first = Viewer(run_dir)
    first.sees("first line")
    first.leave()
    again = Viewer(run_dir, columns=70, rows=20)
    again.sees("first line")
    again.type("\r")
    again.sees("drawn at 20 70")


def test_the_size_follows_the_last_viewer_that_types_and_one_that_only_looks_changes_nothing(sandboxed: Workbench):
    run_dir = started(sandboxed, ["bash", "--norc", "-i"])
    wide = Viewer(run_dir, columns=100, rows=30)
    wide.type("stty size\r")
    wide.sees("30 100")
    narrow = Viewer(run_dir, columns=50, rows=20)
    narrow.type("stty size\r")
    narrow.sees("20 50")
    looks = Viewer(run_dir, columns=33, rows=11, only_looks=True)
    looks.type("echo never\r")
    wide.type("echo size $(stty size)\r")
    wide.sees("size 30 100")
    looks.sees("size 30 100")
    assert b"never" not in wide.seen


def test_a_program_outlives_its_viewers_unless_it_should_not(sandboxed: Workbench):
    stays = started(sandboxed, ["cat"])
    leaves = started(sandboxed, ["cat"], leave_after=0.2)
    for run_dir in (stays, leaves):
        viewer = Viewer(run_dir)
        viewer.type("hello\r")
        viewer.sees("hello")
        viewer.leave()
    sandboxed.result(leaves)
    assert isinstance(launch.settle(stays), LivingRun)


def test_a_viewer_that_sends_nonsense_is_cut_off_and_disturbs_no_other(sandboxed: Workbench):
    run_dir = started(sandboxed, ["cat"])
    good = Viewer(run_dir)
    bad = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    bad.connect(str(run_dir / TERMINAL_SOCKET))
    bad.sendall(b"GET / HTTP/1.1\r\n\r\n")
    bad.settimeout(DEADLINE)
    assert bad.recv(10) == b""
    bad.close()
    good.type("still here\r")
    good.sees("still here")


def test_a_stop_hangs_up_and_what_ignores_that_is_killed(bench: Workbench):
    run_dir = started(bench, ["sh", "-c", "trap '' HUP TERM INT; echo ready; while :; do sleep 1; done"])
    viewer = Viewer(run_dir)
    viewer.sees("ready")
    launch.stop(run_dir, 0.4)
    assert bench.result(run_dir).outcome is EndKind.STOPPED
    assert viewer.sees_the_end().message == "The run was stopped as asked."


def test_the_program_dies_with_its_killed_runner(bench: Workbench):
    run_dir = started(bench, ["cat"])
    program, runner = program_of(run_dir), runner_of(run_dir)
    runner.kill()
    bench.wait(run_dir)
    assert_gone([program, runner])


ASKS = (
    "echo Do you trust this folder; read -r a; echo trusted-$a;"
    " echo Delete everything, yes or no; read -r b; echo deleted-$b; exec cat"
)


def test_only_what_a_rule_names_is_accepted_and_each_is_recorded(sandboxed: Workbench):
    run_dir = started(
        sandboxed,
        ["bash", "-c", ASKS],
        asking=("trust this folder", "yes or no"),
        accept=("trust this folder",),
        yes="y\r",
        quiet=0.2,
    )
    viewer = Viewer(run_dir)
    viewer.sees("trusted-y")
    until_recorded(run_dir, "asked")
    accepted = [event.facts for event in read_journal(run_dir) if event.kind == "accepted"]
    assert accepted == [{"text": "Do you trust this folder", "rule": "trust this folder"}]
    (asked,) = [event.facts for event in read_journal(run_dir) if event.kind == "asked"]
    assert asked["input"] == "Delete everything, yes or no"
    assert b"deleted" not in viewer.seen
    launch.permit(run_dir, str(asked["question"]), True)
    viewer.sees("deleted-y")


def test_the_prompt_is_typed_when_the_program_is_ready(sandboxed: Workbench):
    program = "echo loading; sleep 0.3; printf 'ready> '; read -r line; echo did-$line; exec cat"
    run_dir = started(sandboxed, ["bash", "-c", program], prompt="write a file", ready=("ready> $",), quiet=0.2)
    Viewer(run_dir).sees("did-write a file")
    assert "prompted" in kinds(run_dir)


def test_a_flood_of_output_is_kept_to_the_ring(sandboxed: Workbench):
    times = 40_000
    run_dir = started(sandboxed, ["bash", "-c", f"for i in $(seq {times}); do echo line number $i; done; exec cat"])
    first = Viewer(run_dir, only_looks=True)
    first.sees(f"line number {times}\r")
    late = Viewer(run_dir, only_looks=True)
    late.sees(f"line number {times}\r")
    assert 200_000 < len(late.seen) <= 256 << 10
    assert late.seen.startswith(b"line number")


def test_the_last_person_who_leaves_ends_the_conversation_and_those_who_only_look_do_not_count(bench: Workbench):
    run_dir = started(bench, ["cat"], wheel=True)
    first, second, looks = Viewer(run_dir), Viewer(run_dir), Viewer(run_dir, only_looks=True)
    for viewer in (first, second):
        viewer.type("here\r")
        viewer.sees("here")
    looks.sees("here")
    second.leave()
    assert launch.leave(run_dir) == 1
    first.type("still\r")
    first.sees("still")
    first.leave()
    assert launch.leave(run_dir) == 0
    looks.sees_the_end()
    assert bench.result(run_dir).outcome is EndKind.INTERRUPTED


def test_a_viewer_that_was_killed_is_no_person_also_before_its_last_keys_were_read(tmp_path: Path):
    server = ViewerServer(tmp_path)
    viewer = Viewer(tmp_path)
    while not server.people():
        server.take()
    viewer.type("\x1b[?1;2c")
    viewer.leave()
    assert server.people() == 0
    server.end(TerminalEnd(exit_code=None, message=""))


def test_viewers_killed_at_any_moment_of_their_opening_are_no_people(sandboxed: Workbench):
    run_dir = started(sandboxed, ["cat"], wheel=True)
    stays = Viewer(run_dir)
    stays.type("here\r")
    stays.sees("here")
    for number in range(30):
        opens = Viewer(run_dir)
        for _ in range(number % 3):
            opens.type("\x1b[?1;2c")
        if number % 2:
            opens.sees("here")
        opens.leave()
        assert launch.leave(run_dir) == 1
    launch.stop(run_dir, grace=0)
    sandboxed.result(run_dir)


def test_a_message_that_arrives_twice_is_typed_once(bench: Workbench):
    run_dir = started(bench, ["cat"])
    viewer = Viewer(run_dir)
    for id, text in (("m1", "use tabs"), ("m1", "use tabs"), ("m2", "and spaces")):
        assert launch.tell(run_dir, id, text)
    viewer.sees("and spaces")
    assert launch.interrupt(run_dir, "m2", "and spaces")
    assert launch.tell(run_dir, "m3", "the last")
    viewer.sees("the last")
    told = [event.facts["id"] for event in read_journal(run_dir) if event.kind == "told"]
    assert told == ["m1", "m2", "m3"]
    launch.stop(run_dir, grace=0)
    bench.result(run_dir)
