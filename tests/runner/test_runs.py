"""What a run does with its program: start, output, limits, end."""

from __future__ import annotations

import os
import resource
import signal
from pathlib import Path

import psutil
import pytest

from legion.drivers import EndKind, Program
from legion.runner import launch
from legion.runner.journal import JournalEvent, JournalKind, read_journal
from legion.runner.launch import EndedRun, FreshRun, LivingRun, RunnerFailed, RunNotStarted
from legion.runner.spec import read_result
from legion.system import cgroups
from legion.system.cgroups import GroupLimits
from tests.runner.runs import ENV, Workbench, assert_gone, program_of, runner_of, until, within


def kinds(run_dir: Path) -> list[str]:
    return [event.kind for event in read_journal(run_dir)]


def test_a_run_tells_how_its_program_ended_and_what_it_printed(bench: Workbench):
    run = bench.shell("echo out; echo err >&2; pwd; exit 3")
    result = bench.result(run)
    assert (result.outcome, result.exit_code, result.succeeded) == (EndKind.EXITED, 3, False)
    assert bench.output(run) == f"out\nerr\n{bench.worktree}\n"
    assert result.output_bytes == len(bench.output(run))
    assert result.started_at <= result.ended_at
    assert kinds(run) == ["opened", "starting", "started", "ended"]


def test_a_program_that_a_signal_ends_has_the_exit_code_that_a_shell_shows(bench: Workbench):
    assert bench.result(bench.shell("kill -SEGV $$")).exit_code == 128 + signal.SIGSEGV


def test_a_program_gets_its_environment_and_nothing_else(bench: Workbench):
    program = Program(argv=("env",), cwd=bench.worktree, env={**ENV, "LEGION_TICKET": "7"})
    run = bench.start([], program=program)
    bench.result(run)
    names = {line.split("=")[0] for line in bench.output(run).splitlines()}
    # Without a sandbox its processes are known by a mark.
    mark = set() if bench.sandboxed else {"LEGION_RUN"}
    assert names - {"PWD"} == {*ENV, "LEGION_TICKET", *mark}


def test_a_program_gets_the_stdin_file_or_nothing(bench: Workbench):
    text = bench.root / "text"
    text.write_text("a briefing\n" * 100_000)
    program = Program(argv=("cat",), cwd=bench.worktree, env=ENV, stdin=text)
    run = bench.start([], program=program)
    assert bench.result(run).succeeded
    assert bench.output(run) == text.read_text()
    silent = bench.start(["cat"])
    assert bench.result(silent).output_bytes == 0


def test_a_program_holds_no_handle_but_the_three_standard_ones(bench: Workbench):
    run = bench.shell("ls /proc/self/fd")
    bench.result(run)
    # The fourth is ls reading the folder.
    assert bench.output(run).split() == ["0", "1", "2", "3"]


def test_a_program_that_is_not_there_fails_to_start_with_a_sentence(bench: Workbench):
    result = bench.result(bench.start(["no-such-program"]))
    assert (result.outcome, result.exit_code) == (EndKind.FAILED_TO_START, None)
    assert "no-such-program" in result.message
    assert "No such file" in result.message


def test_a_worktree_that_is_not_there_fails_to_start_with_a_sentence(bench: Workbench):
    program = Program(argv=("true",), cwd=bench.root / "nowhere", env=ENV)
    result = bench.result(bench.start([], program=program))
    assert result.outcome is EndKind.FAILED_TO_START
    assert "nowhere" in result.message


def test_a_program_that_runs_too_long_is_ended(bench: Workbench):
    result = bench.result(bench.shell("exec tail -f /dev/null", timeout=0.2, grace=20))
    assert result.outcome is EndKind.TIMED_OUT
    assert result.exit_code == 128 + signal.SIGINT
    assert "0.2 s" in result.message


def test_a_program_that_ignores_every_polite_signal_is_killed_after_the_grace(bench: Workbench):
    ready = bench.pipe("ready")
    run = bench.shell("trap '' INT TERM; echo go > ready; while :; do tail -f /dev/null; done", grace=600)
    ready.line()
    assert launch.stop(run, 0.4)
    result = bench.result(run)
    assert (result.outcome, result.exit_code) == (EndKind.STOPPED, 128 + signal.SIGKILL)
    assert result.ended_at - result.started_at < 20


def test_asking_again_to_stop_can_only_shorten_the_grace(bench: Workbench):
    ready = bench.pipe("ready")
    run = bench.shell("trap '' INT TERM; echo go > ready; while :; do tail -f /dev/null; done")
    ready.line()
    for grace in (600, 0.1, 600):
        assert launch.stop(run, grace)
    assert bench.result(run).outcome is EndKind.STOPPED


def test_a_program_may_tidy_up_within_the_grace(bench: Workbench):
    ready = bench.pipe("ready")
    run = bench.shell("trap 'echo tidied; exit 5' TERM; trap '' INT; echo go > ready; while :; do :; done")
    ready.line()
    launch.stop(run, 1)
    result = bench.result(run)
    assert (result.outcome, result.exit_code) == (EndKind.STOPPED, 5)
    assert bench.output(run) == "tidied\n"


def test_an_interrupt_leaves_the_rest_to_the_program(bench: Workbench):
    ready = bench.pipe("ready")
    run = bench.shell("trap 'echo heard; exit 0' INT; echo go > ready; while :; do :; done")
    ready.line()
    assert launch.interrupt(run)
    assert bench.result(run).outcome is EndKind.EXITED
    assert bench.output(run) == "heard\n"
    assert "interrupted" in kinds(run)


def test_300_megabytes_of_output_cost_neither_memory_nor_disk_nor_time(bench: Workbench):
    pipe, limit = bench.pipe("ready"), 1_000_000
    run = bench.shell(
        "head -c 300000000 /dev/zero; echo LAST; echo go > ready; exec tail -f /dev/null", max_output_bytes=limit
    )
    pipe.line()
    assert runner_of(run).memory_info().rss < 64 << 20
    launch.stop(run, 0)
    result = bench.result(run)
    assert result.output_bytes == 300_000_005
    content = (run / "output.log").read_bytes()
    assert limit < len(content) < limit + 100_000
    assert content.endswith(b"\0LAST\n")
    assert b"bytes left out]" in content
    assert kinds(run).count("output-limit") == 1


def test_nothing_that_a_program_starts_outlives_its_run(bench: Workbench):
    heard = bench.pipe("heard")
    # A daemon: it has left its parent and its session, and it ignores what can be ignored.
    daemon = "trap '' HUP INT TERM; echo daemon > heard; exec tail -f /dev/null"
    bench.pipe("go")
    run = bench.shell(f'setsid sh -c "({daemon}) &" & echo main > heard; read line < go', grace=600)
    assert {heard.line(), heard.line()} == {"daemon", "main"}
    family = runner_of(run).children(recursive=True)
    assert len(family) >= 2  # the program and its daemon; what stood between them may have ended
    (bench.worktree / "go").write_text("on\n")
    assert bench.result(run).outcome is EndKind.EXITED
    assert not [process for process in family if process.is_running()]


def test_a_program_that_closes_its_output_still_runs_to_its_end(bench: Workbench):
    ready = bench.pipe("ready")
    bench.pipe("go")
    run = bench.shell("exec >&- 2>&-; echo closed > ready; read line < go; exit 9")
    ready.line()
    (bench.worktree / "go").write_text("on\n")
    assert bench.result(run).exit_code == 9


def test_waiting_tells_every_event_once_while_it_happens(bench: Workbench):
    seen: list[str] = []
    bench.pipe("go")
    run = bench.shell("read line < go")

    def let_it_end(event: JournalEvent) -> None:
        seen.append(event.kind)
        if event.kind == "started":
            (bench.worktree / "go").write_text("on\n")

    assert isinstance(within(lambda: launch.wait(run, let_it_end)), EndedRun)
    assert seen == ["opened", "starting", "started", "ended"]
    later: list[str] = []
    launch.wait(run, lambda event: later.append(event.kind), after=3)
    assert later == ["ended"]


def test_a_run_is_fresh_then_living_then_ended(bench: Workbench):
    run = bench.prepare(["sh", "-c", "read line < go"])
    bench.pipe("go")
    assert launch.settle(run.parent / "nobody") == FreshRun()
    assert launch.settle(run) == FreshRun()
    with pytest.raises(RunNotStarted, match="never started"):
        launch.wait(run)
    assert not launch.stop(run)
    bench.launcher.start(run)
    assert launch.settle(run) == LivingRun()
    (bench.worktree / "go").write_text("on\n")
    assert launch.settle(run) in (LivingRun(), EndedRun(bench.result(run)))
    assert launch.settle(run) == EndedRun(bench.result(run))
    assert not launch.stop(run)
    assert not launch.interrupt(run)


def test_an_ended_run_leaves_no_process_no_socket_and_no_temporary_file(bench: Workbench):
    text = bench.root / "text"
    text.write_text("x")
    end = bench.worktree / "end"
    os.mkfifo(end)
    program = Program(argv=("cat", "-", str(end)), cwd=bench.worktree, env=ENV, stdin=text)
    run = bench.start([], program=program)
    runner = runner_of(run)
    until(run, JournalKind.STARTED)
    end.open("w").close()
    bench.result(run)
    assert_gone([runner])
    names = {path.name for path in run.iterdir()}
    assert names == {"spec.json", "journal.jsonl", "output.log", "lock", "result.json", "runner.log", "session"}
    assert (run / "runner.log").read_text() == ""


def test_a_run_folder_with_a_very_long_path_works(tmp_path: Path):
    long = Workbench(tmp_path / ("d" * 120) / ("e" * 120))
    try:
        run = long.shell("exec tail -f /dev/null")
        assert launch.settle(run) == LivingRun()
        assert launch.stop(run, 5)
        assert long.result(run).outcome is EndKind.STOPPED
    finally:
        long.close()


def test_a_spec_that_cannot_be_read_is_refused_with_a_sentence(sandboxed: Workbench):
    run = sandboxed.prepare(["true"])
    spec = run / "spec.json"
    for damage in ("{", '{"version": 99}', '{"version": 1}', "[]"):
        spec.write_text(damage)
        with pytest.raises(RunnerFailed, match=r"update Legion|start the run again"):
            sandboxed.launcher.start(run)
    spec.unlink()
    with pytest.raises(RunnerFailed, match="write the spec"):
        sandboxed.launcher.start(run)
    assert launch.settle(run) == FreshRun()


def test_a_sandbox_that_would_show_the_run_to_its_own_program_is_refused(sandboxed: Workbench):
    run = sandboxed.prepare(["true"])
    spec = run / "spec.json"
    spec.write_text(spec.read_text().replace(str(sandboxed.worktree), str(sandboxed.root)))
    sandboxed.launcher.start(run)
    result = sandboxed.result(run)
    assert result.outcome is EndKind.FAILED_TO_START
    assert "narrower" in result.message


def test_the_program_runs_in_a_session_of_its_own(bench: Workbench):
    run = bench.shell("exec tail -f /dev/null")
    program = program_of(run)
    assert os.getsid(program.pid) not in (os.getsid(0), os.getsid(runner_of(run).pid))
    assert runner_of(run).status() != psutil.STATUS_ZOMBIE
    assert read_result(run) is None


def test_an_error_of_whoever_listens_to_the_events_is_not_swallowed(sandboxed: Workbench):
    run = sandboxed.shell("exec tail -f /dev/null")

    def refuse(event: JournalEvent) -> None:
        raise OSError(f"no room for {event.kind}")

    with pytest.raises(OSError, match="no room for opened"):
        launch.wait(run, refuse)


def test_a_daemon_with_thousands_of_open_files_can_still_start_runs(sandboxed: Workbench):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 2000:
        pytest.skip("this user may not open 2000 files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2000), hard))
    handles = [os.open(os.devnull, os.O_RDONLY) for _ in range(1100)]
    try:
        assert sandboxed.result(sandboxed.shell("exit 0")).succeeded
    finally:
        for handle in handles:
            os.close(handle)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


HOARDS = "head -c 400000000 /dev/zero | tail -c 300000000 > /dev/null"
FORKS = "for n in $(seq 60); do sleep 60 & done"


@pytest.mark.skipif(cgroups.find() is None, reason="this user can make no cgroups here")
@pytest.mark.parametrize(
    ("script", "limits", "named"),
    [
        pytest.param(HOARDS, GroupLimits(memory=100 << 20), "memory limit of 0.1 GB", id="memory"),
        pytest.param(FORKS, GroupLimits(processes=20), "limit of 20 processes", id="processes"),
    ],
)
def test_a_run_that_reaches_a_limit_fails_with_the_limits_name_and_leaves_no_group(
    bench: Workbench, script: str, limits: GroupLimits, named: str
):
    run = bench.shell(script, limits=limits)
    result = bench.result(run)
    assert (result.succeeded, named in result.message) == (False, True), result
    home = cgroups.find()
    assert home is not None
    home.sweep()
    assert not any((folder / "legion" / home.group(run).name).exists() for folder in home.folders.values())
    assert bench.result(bench.shell("true", limits=GroupLimits(memory=100 << 20, processes=20))).message == (
        bench.result(bench.shell("true")).message
    )
