"""The terminal UI in a real terminal (tmux) in front of one real daemon: a ticket from the form to the target branch.

It is skipped where tmux is missing: install it with `tools/system-packages.sh tmux`.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from legion.wire.terminal import NewByHand
from tests.support.legion import Project, Squad
from tests.support.looking import until_seen
from tests.support.repository import CHECK, Repository

PATIENCE = 60.0
LOOK_AGAIN = 0.05
THEN_STAY = '"$@"; echo "left with $?"; exec cat'
"""tmux may miss the signal that its child has ended and then never shows it, so a shell prints the exit code."""
AGENT = "sh -c 'cat > prompt.log; echo I wrote it; read -r _ < {go}'"
"""At work until the test says go: an agent that has ended is in no pane."""
SETTINGS = f'[sandbox]\nmode = "off"\n\n[drivers.writer]\nrun = "{AGENT}"\n'
GO = "go"

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is missing: tools/system-packages.sh tmux")


class Terminal:
    """A tmux of its own with one window."""

    def __init__(self, folder: Path, squad: Squad) -> None:
        self._socket = str(folder / "tmux")
        self._env = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("LEGION_", "TMUX"))},
            "PYTHONPATH": str(Path(__file__).parents[2] / "src"),
            "LEGION_CONFIG": str(squad.settings),
            **squad.found_by(),
        }

    def tmux(self, *words: str) -> str:
        argv = ["tmux", "-S", self._socket, "-f", "/dev/null", *words]
        return subprocess.run(argv, env=self._env, capture_output=True, text=True, check=False).stdout

    @property
    def modes(self) -> str:
        """Alternate screen, mouse, cursor."""
        return self.tmux("display-message", "-p", "#{alternate_on} #{mouse_any_flag} #{cursor_flag}").strip()

    @property
    def program(self) -> int:
        """The process that the shell in the window started."""
        shell = self.tmux("display-message", "-p", "#{pane_pid}").strip()
        found = subprocess.run(["pgrep", "-P", shell], capture_output=True, text=True, check=True)
        return int(found.stdout.split()[0])

    def open(
        self, cwd: str, *words: str, columns: int = 100, lines: int = 30, extra: Mapping[str, str] | None = None
    ) -> None:
        self._env |= extra or {}
        command = ["sh", "-c", THEN_STAY, "sh", sys.executable, "-m", "legion", *words]
        size = ["-x", str(columns), "-y", str(lines)]
        self.tmux("new-session", "-d", *size, "-c", cwd, *command)

    def keys(self, *keys: str) -> None:
        for key in keys:
            self.tmux("send-keys", key)

    def type(self, text: str) -> None:
        self.tmux("send-keys", "-l", text)

    @property
    def text(self) -> str:
        return self.tmux("capture-pane", "-p")

    def shows(self, *words: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not all(word in (text := self.text) for word in words):
            assert time.monotonic() < deadline, f"{words} did not appear:\n{text}"
            # tmux reports no change of its screen, and each look is a process that takes time from what is looked at.
            select.select([], [], [], LOOK_AGAIN)

    def close(self) -> None:
        self.tmux("kill-server")


@pytest.fixture(scope="module")
def project() -> Iterator[Project]:
    with tempfile.TemporaryDirectory(prefix="legion-") as folder:
        go = Path(folder, GO)
        os.mkfifo(go)
        squad = Squad(Path(folder), settings=SETTINGS.format(go=go))
        squad.start()
        try:
            yield squad.adopt(Repository(Path(folder) / "shop", CHECK))
        finally:
            squad.close()


@pytest.fixture
def terminal(project: Project, tmp_path: Path) -> Iterator[Terminal]:
    # The path of a socket must be short.
    with tempfile.TemporaryDirectory(prefix="legion-") as folder:
        made = Terminal(Path(folder), project.squad)
        yield made
        made.close()


def test_a_ticket_is_written_watched_and_lands_while_the_daemon_is_killed_in_between(
    project: Project, terminal: Terminal
):
    terminal.open(project.cwd)
    terminal.shows("1 squad", "live", "The board is empty.")
    terminal.keys("n")
    terminal.shows("New ticket")
    terminal.type("Write a file")
    terminal.shows("Write a file")
    terminal.keys("C-s")
    terminal.shows("#1 Write a file", "I wrote it")
    project.squad.kill()
    terminal.shows("gone", "U starts it")
    # For reading, too: it opens at once, also before the agent listens.
    with (Path(project.cwd).parent / GO).open("r+b", buffering=0) as go:
        go.write(b"go\n")
        project.squad.start()
        terminal.shows("live")
        terminal.keys("2")
        terminal.shows("columns", "Ended 1")
    terminal.keys("Enter")
    terminal.shows("I wrote it", "It landed.")
    terminal.keys("f")
    terminal.shows("prompt.log", "Write a file")
    terminal.keys("Escape")
    terminal.shows("columns")
    terminal.keys("q")
    terminal.shows("left with 0")
    assert project.squad.client.ticket(1).ticket.state == "done"


def test_a_person_attaches_to_an_agent_and_comes_back(project: Project, terminal: Terminal):
    program = "sh -c 'stty size; while read -r line; do echo heard-$line; done'"
    client = project.squad.client
    (ticket,) = client.new_by_hand(NewByHand(cwd=project.cwd, name="Together", program=program)).ids
    project.until(ticket, "working")
    terminal.open(project.cwd)
    terminal.shows("1 squad", "live", "Together")
    terminal.keys("o")
    terminal.shows("Ctrl-Q")
    terminal.type("hello")
    terminal.keys("Enter")
    terminal.shows("heard-hello")
    terminal.keys("C-q")
    terminal.shows("Detached from", "1 squad")
    terminal.keys("q")
    terminal.shows("left with 0")
    client.stop(ticket)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_a_signal_leaves_the_terminal_as_it_was(project: Project, terminal: Terminal, number: signal.Signals):
    terminal.open(project.cwd)
    terminal.shows("1 squad", "live")
    assert terminal.modes == "1 1 0"
    os.kill(terminal.program, number)
    terminal.shows(f"left with {128 + number}")
    assert terminal.modes == "0 0 1", "the screen, the mouse and the cursor are the shell's again"


def test_ctrl_z_suspends_and_fg_comes_back(project: Project, terminal: Terminal):
    legion = f"{sys.executable} -m legion"
    terminal.tmux("new-session", "-d", "-x", "100", "-y", "30", "-c", project.cwd, "bash", "--norc", "-i")
    terminal.type(legion)
    terminal.keys("Enter")
    terminal.shows("1 squad", "live")
    terminal.keys("C-z")
    terminal.shows("Stopped")
    assert terminal.modes == "0 0 1"
    terminal.type("fg")
    terminal.keys("Enter")
    terminal.shows("1 squad", "live")
    terminal.keys("q")
    until_seen(project.squad, lambda: terminal.modes == "0 0 1", "the shell")
    terminal.type("echo left-$?")
    terminal.keys("Enter")
    terminal.shows("left-0")


@pytest.mark.parametrize(
    ("extra", "shown", "missing"),
    [({"NO_COLOR": "1"}, "live", "\x1b[38"), ({"LANG": "C", "LC_ALL": ""}, "* live", "●")],
    ids=["no-color", "ascii"],
)
def test_a_terminal_without_colours_or_glyphs_gets_none(
    project: Project, terminal: Terminal, extra: dict[str, str], shown: str, missing: str
):
    terminal.open(project.cwd, extra=extra)
    terminal.shows("1 squad", shown)
    drawn = terminal.tmux("capture-pane", "-p", "-e")
    assert missing not in drawn
    assert "\x1b[48" not in drawn or "NO_COLOR" not in extra
    terminal.keys("q")
    terminal.shows("left with 0")


def test_a_dumb_terminal_is_refused_with_a_sentence(project: Project, terminal: Terminal):
    done = project.squad.cli("tui", cwd=Path(project.cwd), extra={"TERM": "dumb"})
    assert done.returncode == 2
    assert "use `legion tui --plain`" in done.stderr


def test_plain_lines_say_the_same(project: Project, terminal: Terminal):
    ticket = project.dispatch("Write two", "echo 2 > two.txt")
    project.until(ticket, "done")
    done = project.squad.cli("tui", "--plain", cwd=Path(project.cwd), stdin=f"help\nboard\nticket {ticket}\nnonsense\n")
    assert done.returncode == 0
    for words in ("answer N CHOICE", "Write two", "It landed.", "nonsense"):
        assert words in done.stdout


def test_without_a_terminal_legion_prints_its_help(project: Project, terminal: Terminal):
    done = project.squad.cli(cwd=Path(project.cwd))
    assert "Usage: legion" in done.stdout
