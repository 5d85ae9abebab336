"""kill -9, with a real daemon, to each kind of process and to all at once."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from legion.system.crash import Point
from legion.wire import errors
from legion.wire.dispatch import Dispatch
from tests.crash import invariants
from tests.crash.squads import PATIENCE, Site, site
from tests.support.legion import new
from tests.support.sampling import sampled


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Site]:
    with site(tmp_path) as one:
        yield one


@pytest.mark.parametrize("kills", [2, pytest.param(10, marks=pytest.mark.soak)])
def test_agents_work_on_however_their_daemon_ends_and_none_is_started_again(here: Site, kills: int):
    """Killed once or again and again, ended in order, or gone when an agent ends."""
    project, gate, early = here.open(), here.gate(), here.gate("early")
    ticket = project.dispatch("waits", here.agent(f"{gate.script}; echo done > a.txt"))
    other = project.dispatch("ends early", here.agent(f"{early.script}; echo done > b.txt"))
    gate.wait()
    early.wait()
    program, runner, server = here.program(ticket), here.runner(other), here.fork_server()
    here.squad.kill()
    invariants.wait_until_gone([server])
    assert program.is_running()
    here.squad.start()
    assert project.state(ticket) == "working"
    for _ in range(kills):
        here.restart()
    assert here.squad.end() == 0
    assert program.is_running()
    here.squad.start()
    here.squad.kill()
    early.open()
    invariants.wait_until_gone([runner])
    here.squad.start()
    assert program.is_running()
    gate.open()
    project.until_settled()
    for one in (ticket, other):
        page = project.ticket(one)
        assert (page.ticket.state, page.ticket.attempt, len(page.runs)) == ("done", 1, 1)
        assert here.starts(one) == 1
    here.is_sound(lost_allowed=False)


HALF_WAY = """
if [ -e half.txt ]; then
    cat half.txt half.txt > whole.txt
else
    echo half > half.txt
    git init --quiet nested && echo kept > nested/kept.txt
    {gate}
fi
"""
"""Goes on with what the killed one left: a file that is not committed, and a repository inside the tree."""


def test_a_killed_fork_server_costs_nothing_a_killed_runner_continues_and_a_killed_agent_has_failed(here: Site):
    """Either way what the agent left is kept."""
    project, gate, waiting = here.open(), here.gate(), here.gate("waiting")
    waits = project.dispatch("waits", here.agent(f"{waiting.script}; echo done > a.txt"))
    scripts = [HALF_WAY.format(gate=gate.script).replace("whole", name) for name in ("one", "two")]
    lost, failed = (project.dispatch(f"half {n}", here.agent(script)) for n, script in enumerate(scripts))
    gate.wait()
    gate.wait()
    waiting.wait()
    here.fork_server().kill()
    other = project.dispatch("other", here.agent("echo b > b.txt"))
    project.until(other, "done")
    program, runner = here.program(lost), here.runner(lost)
    runner.kill()
    invariants.wait_until_gone([program])
    here.program(failed).kill()
    waiting.open()
    project.until_settled()
    page = project.ticket(lost)
    assert [run.outcome for run in page.runs] == ["lost", "finished"]
    assert (page.ticket.attempt, [run.generation for run in page.runs]) == (1, [1, 2])
    assert [(run.attempt, run.outcome) for run in project.ticket(failed).runs] == [(1, "failed"), (2, "finished")]
    assert [project.landed(f"{name}.txt") for name in ("one", "two")] == ["half\nhalf\n"] * 2
    assert (here.starts(lost), here.starts(waits), here.starts(other)) == (2, 1, 1)
    for ticket in (waits, other):
        assert [(run.attempt, run.outcome) for run in project.ticket(ticket).runs] == [(1, "finished")]
    here.is_sound()


def test_after_a_power_cut_every_attempt_goes_on_with_what_it_had(here: Site):
    project, gate = here.open(), here.gate()
    ids = [
        project.dispatch(f"half {name}", here.agent(HALF_WAY.format(gate=gate.script).replace("whole", name)))
        for name in ("one", "two", "three")
    ]
    for _ in ids:
        gate.wait()
    here.cut_the_power()
    here.squad.start()
    project.until_settled()
    for ticket, name in zip(ids, ("one", "two", "three"), strict=True):
        assert [run.outcome for run in project.ticket(ticket).runs] == ["lost", "finished"]
        assert project.landed(f"{name}.txt") == "half\nhalf\n"
    nested = list(project.worktrees.rglob("nested/kept.txt"))
    assert [place.read_text() for place in nested] == ["kept\n"] * 3
    here.is_sound()


def words_of(process: psutil.Process) -> str:
    """Its command line; nothing of one that has ended meanwhile."""
    with contextlib.suppress(psutil.Error):
        return " ".join(process.cmdline())
    return ""


def test_a_daemon_killed_during_a_landing_lands_once_and_killed_checks_blame_nobody(here: Site):
    project = here.open()
    gate = here.gate("check")
    here.repository.commit("slow check", {"check.sh": f"grep -q slow a.txt 2>/dev/null || exit 0; {gate.script}\n"})
    ticket = project.dispatch("slow", here.agent("echo slow > a.txt"))
    gate.wait()
    checks = [process for process in here.everything() if "check.sh" in words_of(process)]
    assert checks
    here.restart()
    invariants.wait_until_gone(checks)
    for _ in range(3):
        gate.wait()
        here.check_runner().kill()
    gate.wait()
    gate.open()
    project.until_settled()
    page = project.ticket(ticket)
    assert (page.ticket.state, page.ticket.attempt) == ("done", 1)
    assert project.landed_titles().count("slow") == 1
    assert here.starts(ticket) == 1
    here.is_sound(lost_allowed=False)


def killed_git(daemon: psutil.Process) -> bool:
    """Kill the next git that the daemon starts. False where it starts none for a while."""
    pause = threading.Event()
    for _ in range(300):
        for task in Path(f"/proc/{daemon.pid}/task").glob("*/children"):
            # Threads end, and gits too.
            with contextlib.suppress(OSError, psutil.NoSuchProcess):
                for child in map(psutil.Process, map(int, task.read_text().split())):
                    if child.name() == "git":
                        child.kill()
                        return True
        pause.wait(0.002)
    return False


def test_killed_gits_cost_only_time(here: Site):
    """Each git that the daemon starts may be the one that dies: one after every few events."""
    here.repository.commit("many files", {f"many/{n % 40}/{n}.txt": f"{n}\n" for n in range(500)})
    project = here.open()
    ids = [project.dispatch(f"ticket {n}", here.agent(f"echo {n} > {n}.txt")) for n in range(3)]
    killed, last = 0, 0
    while killed < 6:
        killed += killed_git(here.daemon())
        state = project.squad.client.wait(project.cwd, ids, after_event=last, timeout=5)
        last = state.last_event
        if state.settled:
            break
    assert killed
    project.until_settled(patience=2 * PATIENCE)
    assert {project.state(ticket) for ticket in ids} == {"done"}
    assert [here.starts(ticket) for ticket in ids] == [1, 1, 1]
    here.is_sound(lost_allowed=False)


HALF_SETUP = """
[setup]
run = "mkdir -p deps && cp lock.txt deps/copy && {{ grep -q one lock.txt || {{ {gate}; }} ; }}"
key = ["lock.txt"]

[checks.test]
run = "cmp lock.txt deps/copy"
"""


def test_a_setup_that_was_cut_off_is_never_taken_for_done(here: Site):
    gate = here.gate()
    config = HALF_SETUP.format(gate=gate.script.replace("'", ""))
    here.repository.commit("setup", {"legion.toml": config, "lock.txt": "one\n"})
    project = here.open()
    project.dispatch("first", here.agent("echo 1 > 1.txt"))
    project.until_settled()
    project.collect()
    before = here.repository.head()
    # The person's own commit needs another setup. They take it back while that is half done.
    here.repository.commit("another lock", {"lock.txt": "two\n"})
    with pytest.raises(errors.Retryable):
        project.collect()
    gate.wait()
    here.squad.kill()
    here.repository.git("reset", "--quiet", "--hard", before)
    here.squad.start()
    ticket = project.dispatch("second", here.agent("echo 2 > 2.txt"))
    project.until_settled()
    assert (project.state(ticket), project.ticket(ticket).ticket.attempt) == ("done", 1)
    excluded = (project.hub / "info/exclude").read_text().splitlines()
    assert [line for line in excluded if not line.startswith("#")] == ["/deps"], "only setup's own work is left out"
    here.is_sound(lost_allowed=False)


WITH_SETUP = '[setup]\nrun = "mkdir -p deps"\n\n[checks.test]\nrun = "sh check.sh"\n'
PASSED = ("jobs.conduct.", "jobs.run.", "jobs.setup.", "jobs.save.", "jobs.check.", "jobs.land.")
"""What one ticket of a command agent passes. The other points are reached where their kind of work is tested."""
JOBS = [point for point in Point if point.value.startswith(PASSED)]


@pytest.mark.parametrize("point", sampled(JOBS, 2), ids=lambda point: point.value)
def test_a_real_daemon_that_dies_at_a_point_goes_on_after_its_start(here: Site, point: Point):
    here.repository.commit("setup", {"legion.toml": WITH_SETUP})
    project = here.open()
    assert here.squad.end() == 0
    here.squad.start({"LEGION_CRASH_AT": point.value})
    asked = Dispatch(
        cwd=project.cwd,
        tickets=[new("one", here.agent("echo 1 > 1.txt"), prove=["test -s 1.txt"])],
        request="one ticket",
    )
    # Whether the answer still comes depends on the point, so the person asks again.
    with contextlib.suppress(errors.LegionError):
        here.squad.client.dispatch(asked)
    assert here.squad.process is not None
    assert here.squad.process.wait(PATIENCE) == -signal.SIGKILL
    here.squad.start()
    here.squad.client.dispatch(asked)
    project.until_settled()
    assert project.landed("1.txt") == "1\n"
    here.is_sound(lost_allowed=False)
