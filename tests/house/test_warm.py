"""Programs that tests fork from the warm process are like those of a plain start, and end with their test."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psutil
import pytest

from tests.support.codebase import ROOT
from tests.support.legion import PLAIN, SOURCE, Squad, squad
from tests.support.looking import until_seen
from tests.support.repository import Repository
from tests.support.warm import Forked, warm

PATIENCE = 60.0

LEFT_ALONE = """
import signal, sys
from pathlib import Path
from tests.support.legion import Squad
one = Squad(Path(sys.argv[1])).start()
print(one.process.pid, flush=True)
signal.pause()
"""


@pytest.fixture(scope="module")
def forked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Squad]:
    with squad(tmp_path_factory.mktemp("forked")) as one:
        assert isinstance(one.process, Forked)
        yield one


@pytest.fixture
def mortal(tmp_path: Path) -> Iterator[Squad]:
    """A forked daemon for a test that kills it or a part of it."""
    (tmp_path / "mortal").mkdir()
    with squad(tmp_path / "mortal") as one:
        yield one


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Squad]:
    with squad(tmp_path_factory.mktemp("plain"), launch=PLAIN) as one:
        assert isinstance(one.process, subprocess.Popen)
        yield one


def test_a_forked_daemon_is_where_a_plain_one_is(forked: Squad, plain: Squad):
    assert forked.process is not None
    assert plain.process is not None
    assert standing(forked) == standing(plain)
    assert shown(forked.process.pid, forked) == shown(plain.process.pid, plain)
    assert forked.log.splitlines()[0].startswith("Starting Legion service")


def test_the_fork_server_that_is_forked_with_its_daemon_is_where_an_execd_one_is(forked: Squad, plain: Squad):
    ours, theirs = forked.fork_server(), plain.fork_server()
    for one, server in ((forked, ours), (plain, theirs)):
        until_seen(one, partial(ignores_deaths, server.pid), "a fork server that listens")
    assert standing(forked, ours) == standing(plain, theirs)
    assert [os.getsid(one.pid) for one in (ours, theirs)] == [ours.pid, theirs.pid]
    assert shown(ours.pid, forked)[:-2] == shown(theirs.pid, plain)[:-2]
    # After some idle seconds a child has one of the two.
    for one, server in ((forked, ours), (plain, theirs)):
        until_seen(one, partial(has_two_sockets, server), "the sockets of a fork server")


def test_a_killed_fork_server_that_was_forked_is_replaced_by_an_execd_one(mortal: Squad, tmp_path: Path):
    first = mortal.fork_server()
    first.kill()
    project = mortal.adopt(Repository(tmp_path / "ada"))
    ticket = project.dispatch("work", "touch a.txt")
    project.until(ticket, "done")
    assert mortal.fork_server().pid != first.pid
    assert not psutil.pid_exists(first.pid)


def has_two_sockets(server: psutil.Process) -> bool:
    """While it hands one to a child, neither may show it."""
    return len({name for one in (server, *server.children()) for name in handles(one.pid)}) == 2


def ignores_deaths(pid: int) -> bool:
    """The last thing that a fork server does before it listens."""
    ignored = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("SigIgn"))
    return bool(int(ignored.split()[1], 16) & 1 << signal.SIGCHLD - 1)


def shown(pid: int, one: Squad) -> list[str]:
    """The command line that the system shows for a process."""
    return [word.replace(str(one.folder), "") for word in psutil.Process(pid).cmdline() if word]


@pytest.mark.parametrize("words", [["version"], ["status"], ["dispatch", "--from", "-"], ["nonsense"]])
def test_a_forked_command_prints_and_ends_as_an_execd_one(forked: Squad, tmp_path: Path, words: list[str]):
    ours = forked.cli(*words, cwd=tmp_path, stdin="[[ticket]]\n")
    env = {"PYTHONPATH": str(SOURCE), "LEGION_CONFIG": str(forked.settings), "LEGION_DATA_DIR": str(forked.data.root)}
    theirs = subprocess.run(
        [sys.executable, "-m", "legion", *words],
        cwd=tmp_path,
        env={**os.environ, **env},
        input="[[ticket]]\n",
        capture_output=True,
        text=True,
    )
    assert (ours.args, ours.returncode, ours.stderr) == (theirs.args, theirs.returncode, theirs.stderr)
    assert ours.stdout.partition("up ")[0] == theirs.stdout.partition("up ")[0]


def standing(one: Squad, process: psutil.Process | None = None) -> dict[str, object]:
    """What a start decides: session, group, signals, folder and first handles. The daemon's, if no process is given."""
    assert one.process is not None
    process = process or psutil.Process(one.process.pid)
    told = dict(line.split(":", 1) for line in Path(f"/proc/{process.pid}/status").read_text().splitlines())
    handles = {number: str(Path(f"/proc/{process.pid}/fd/{number}").readlink()) for number in (0, 1, 2)}
    return {
        "session": os.getsid(process.pid) == process.pid or os.getsid(process.pid),
        "group": os.getpgid(process.pid) == process.pid or os.getpgid(process.pid),
        # Without those above 31: the C library catches two of them from the first thread on.
        "signals": [int(told[name], 16) & (1 << 31) - 1 for name in ("SigBlk", "SigIgn", "SigCgt")],
        "mask": told["Umask"],
        "folder": process.cwd(),
        "priority": process.nice(),
        "handles": {number: target.replace(str(one.folder), "") for number, target in handles.items()},
    }


def test_a_forked_daemon_has_no_handle_of_the_warm_process_or_of_another_daemon(forked: Squad, tmp_path: Path):
    (tmp_path / "other").mkdir()
    assert forked.process is not None
    source = psutil.Process(forked.process.pid).parent()
    assert source is not None
    before = handles(source.pid)
    with squad(tmp_path / "other") as other:
        assert other.process is not None
        first, second = handles(forked.process.pid), handles(other.process.pid)
        assert not first & second
        assert str(other.data.daemon_log) not in second
        assert not (first | second) & before
        assert handles(source.pid) == before


def handles(pid: int) -> set[str]:
    """Everything open that only one process is meant to have."""
    found = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        try:
            target = str(entry.readlink())
        except FileNotFoundError:
            continue
        if int(entry.name) > 2 and not target.startswith(("anon_inode:", "/dev/")):
            found.add(target)
    return found


def test_a_forked_daemon_is_handled_as_a_process_that_was_started(mortal: Squad):
    assert mortal.process is not None
    assert mortal.process.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        mortal.process.wait(0.01)
    assert mortal.process.pid in [process.pid for process in mortal.processes()]
    mortal.kill()
    assert mortal.process.returncode == mortal.process.poll() == mortal.process.wait() == -signal.SIGKILL
    mortal.process.kill()
    assert mortal.start().end() == 0


def test_what_an_interpreter_reads_at_its_start_is_left_to_a_plain_start():
    source = warm(SOURCE)
    env = {**os.environ, "PYTHONPATH": str(SOURCE)}
    assert source.fits({**env, "HOME": "/elsewhere", "LEGION_CRASH_AT": "git.target.before-swap"})
    assert not source.fits({**env, "PYTHONPATH": "/elsewhere"})
    assert not source.fits({**env, "TZ": "Pacific/Auckland"})


def test_nothing_is_left_of_a_killed_test_process(tmp_path: Path):
    words = [sys.executable, "-c", LEFT_ALONE, str(tmp_path)]
    env = {**os.environ, "PYTHONPATH": f"{SOURCE}{os.pathsep}{ROOT}"}
    with subprocess.Popen(words, cwd=ROOT, env=env, stdout=subprocess.PIPE) as test:
        assert test.stdout is not None
        daemon = int(test.stdout.readline())
        left = [psutil.Process(daemon), *psutil.Process(daemon).parents()[:1]]
        watched = [os.pidfd_open(process.pid) for process in left]
        test.kill()
    try:
        for handle in watched:
            assert select.select([handle], [], [], PATIENCE)[0], left
    finally:
        for handle in watched:
            os.close(handle)
