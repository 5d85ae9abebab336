"""Runs of the real Claude Code against the plain program: start, memory, and thirty at once. The model is scripted."""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import psutil

from bench import ground
from bench.pace import Pace, pace
from bench.report import ROUNDS, Report
from legion.domain.runs import ticket_seat
from legion.drivers import Program
from legion.drivers.claude.options import ClaudeOptions
from legion.drivers.claude.profile import ClaudeProfile, find
from legion.rehearsal.process import Playing, playing
from legion.runner import launch
from legion.runner.journal import JournalEvent, read_journal
from legion.runner.launch import Launcher
from legion.runner.spec import RunSpec, write_spec
from tests.support.legion import PLAIN, Project, Squad

_MANY = 30
_AT_ONCE = 6
_FLAGS = ("--output-format", "stream-json", "--verbose", "--permission-mode", "acceptEdits", "--allowedTools", "Bash")
_WORK = """
    [[step]]
    say = "I write."
    call = {tool = "Write", input = {file_path = "{cwd}/done-{name}.txt", content = "done\\n"}}

    [[step]]
    call = {tool = "Bash", input = {command = "ls | head -3"}}

    [[step]]
    say = "Done."

    [capture]
    name = 'piece (\\S+)'
"""
_TURNS = 40
_LONG_WORK = _WORK.replace(
    """
    [[step]]
    say = "Done."
""",
    # Who made the same call again and again would be looked at more closely.
    "".join(
        f"""
    [[step]]
    call = {{tool = "Bash", input = {{command = "cat done-{{name}}.txt; echo {number}"}}}}
"""
        for number in range(_TURNS - 3)
    )
    + """
    [[step]]
    say = "Done."
""",
)
_WAIT = """
    [[step]]
    say = "I take my time."
    delay = 600
"""


def run(folder: Path, report: Report) -> None:
    scripts = folder / "scripts"
    scripts.mkdir()
    (scripts / "work.toml").write_text(dedent(_WORK))
    (scripts / "long.toml").write_text(dedent(_LONG_WORK))
    (scripts / "wait.toml").write_text(dedent(_WAIT))
    _start(folder, report)
    with playing(scripts, folder) as model:
        with _squad(folder / "memory", model, _MANY) as project:
            _memory(project, report)
        with _squad(folder / "many", model, _AT_ONCE) as project:
            _thirty(folder, project, model, report, script="work", turns=3)
            _thirty(folder, project, model, report, script="long", turns=_TURNS)


def _start(folder: Path, report: Report) -> None:
    """From asking for a runner to the first instruction of the program that it starts."""
    program = folder / "program"
    program.write_text('#!/bin/sh\ndate +%s.%N > "$LEGION_BENCH"\n')
    program.chmod(0o755)
    launcher = Launcher()
    launcher.warm()
    ours, plain = [], []
    for number in range(-1, 2 * ROUNDS):
        stamp = folder / f"stamp-{number}"
        env = {"PATH": os.environ["PATH"], "LEGION_BENCH": str(stamp)}
        began = time.time()
        subprocess.run([program], env=env, check=True)
        bare = float(stamp.read_text()) - began
        words = folder / "words"
        words.write_text("begin")
        options = ClaudeOptions(
            conversation=str(uuid.uuid4()), config_dir=folder / "state", prompt=words, again=words, rules="none"
        )
        run_dir = folder / f"run-{number}"
        write_spec(
            run_dir,
            RunSpec(
                run=run_dir.name,
                program=Program(argv=(str(program),), cwd=folder, env=env),
                driver=ClaudeProfile.name,
                options=options.to_json(),
                sandbox=None,
            ),
        )
        began = time.time()
        launcher.start(run_dir)
        launch.wait(run_dir)
        if number >= 0:
            ours.append(float(stamp.read_text()) - began)
            plain.append(bare)
    launcher.close()
    added = (statistics.median(ours) - statistics.median(plain)) * 1000
    report.value("runner to the program's exec, added to a plain exec", added, "ms", aim=100)


def _memory(project: Project, report: Report) -> None:
    tickets = [_dispatch(project, "wait", f"m{number}") for number in range(_MANY)]
    while not all(_talks(project, ticket) for ticket in tickets):
        time.sleep(0.5)
    runners = [psutil.Process(_runner(project, ticket)) for ticket in tickets]
    report.value(
        f"memory per run, {_MANY} at work: runner (PSS)", _mean(p.memory_full_info().pss for p in runners), "MB"
    )
    private = [sum(p.memory_full_info().uss for p in _ours(runner)) for runner in runners]
    report.value("memory per run: private, runner and sandbox", _mean(private), "MB", aim=12)
    programs = [p for runner in runners for p in runner.children(recursive=True) if p.name() == "claude"]
    report.value("memory per run: Claude Code itself (PSS)", _mean(p.memory_full_info().pss for p in programs), "MB")
    for ticket in tickets:
        project.stop(ticket)


def _thirty(folder: Path, project: Project, model: Playing, report: Report, *, script: str, turns: int) -> None:
    """The short work shows what a ticket costs around its program, the long one what that is against a day's work."""

    def ours(number: int) -> None:
        tickets = [_dispatch(project, script, f"{script}-{number}-{piece}") for piece in range(_MANY)]
        project.until_settled(*tickets, patience=600)

    def plain(number: int) -> None:
        _plain(folder / f"plain-{script}-{number}", model, script)

    with pace(folder) as speed:
        pairs = [(_cost(ours, number, speed), _cost(plain, number, speed)) for number in range(ROUNDS)]
        usual = speed.usual()
    name = f"{_MANY} runs of {turns} turns, {_AT_ONCE} at once, dispatched to landed"
    mine, theirs = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    each = statistics.median(one.cpu - other.cpu for one, other in pairs) / _MANY
    report.value(f"{name}: CPU added per run", each * 1000, "ms")
    against = "against plain claude -p"
    report.ratio(f"{name}: wall {against}", [one.wall for one in mine], [one.wall for one in theirs], aim=1.15)
    report.ratio(f"{name}: CPU {against}", [one.cpu for one in mine], [one.cpu for one in theirs], aim=1.15)
    at_one_pace = [[one.cpu * usual / one.beat for one in side] for side in (mine, theirs)]
    report.ratio(f"{name}: CPU {against}, at one pace of the machine", at_one_pace[0], at_one_pace[1], aim=1.15)


@dataclass(frozen=True, kw_only=True)
class _Cost:
    wall: float
    cpu: float
    beat: float
    """What a fixed piece of work took meanwhile."""


def _cost(work: Callable[[int], None], number: int, speed: Pace) -> _Cost:
    beat, cpu, began = speed.beats(), _busy(), time.monotonic()
    work(number)
    return _Cost(wall=time.monotonic() - began, cpu=_busy() - cpu, beat=speed.since(beat))


def _plain(folder: Path, model: Playing, script: str) -> None:
    """The same work without us: a folder each, as many at once."""
    folder.mkdir()
    program = find().path
    for piece in range(_MANY):
        (folder / f"tree-{piece}").mkdir()
    command = (
        f'cd {folder}/tree-$0 && HOME={folder}/home-$0 {program} -p "rehearsal: {script} piece $0" '
        f"{' '.join(_FLAGS)} > ../out-$0 2>&1 < /dev/null"
    )
    env = {
        "PATH": os.environ["PATH"],
        "ANTHROPIC_BASE_URL": model.url,
        "ANTHROPIC_AUTH_TOKEN": "none",
        "IS_SANDBOX": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }
    pieces = "\n".join(str(piece) for piece in range(_MANY))
    words = ["xargs", "-P", str(_AT_ONCE), "-n", "1", "sh", "-c", command]
    subprocess.run(words, input=pieces, text=True, env=env, check=True)
    done = list(folder.glob("tree-*/done-*.txt"))
    if len(done) != _MANY:
        raise RuntimeError(f"only {len(done)} of {_MANY} plain runs did their work: see {folder}")


@contextlib.contextmanager
def _squad(folder: Path, model: Playing, at_once: int) -> Iterator[Project]:
    folder.mkdir()
    repository = ground.repository(folder / "repo", 100, f"[agents]\nparallel = {at_once}\n")
    squad = Squad(folder, launch=PLAIN)
    squad.settings.with_name("providers.toml").write_text(f'[rehearsal]\nurl = "{model.url}"\n')
    squad.start()
    try:
        yield squad.adopt(repository)
    finally:
        squad.close()


def _dispatch(project: Project, script: str, piece: str) -> int:
    return project.dispatch(f"piece {piece}", text=f"rehearsal: {script} piece {piece}", driver="claude")


def _events(project: Project, ticket: int) -> list[JournalEvent]:
    runs = project.ticket(ticket).runs
    return read_journal(project.squad.data.runs / f"{ticket_seat(ticket)}-run-{runs[-1].id}") if runs else []


def _talks(project: Project, ticket: int) -> bool:
    return any(event.kind == "conversation" for event in _events(project, ticket))


def _runner(project: Project, ticket: int) -> int:
    return next(event.facts["runner"] for event in _events(project, ticket) if event.kind == "opened")  # type: ignore[return-value]


def _ours(runner: psutil.Process) -> list[psutil.Process]:
    """The runner and the sandbox around the program, without the program."""
    return [runner, *(p for p in runner.children(recursive=True) if p.name() == "bwrap")]


def _mean(values: Iterable[float]) -> float:
    return statistics.mean(values) / 1e6


def _busy() -> float:
    """Seconds that all processors have worked since they started; the machine has to be quiet otherwise."""
    times = psutil.cpu_times()
    return float(times.user + times.nice + times.system)
