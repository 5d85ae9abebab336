"""The next release takes over in the middle of everything: runs of the last one, each kind of job, the database."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import legion
from legion.drivers import EndKind
from legion.runner import control, launch
from legion.runner.journal import read_journal
from legion.runner.launch import EndedRun, FreshRun, Launcher, LivingRun
from legion.wire.mail import AnswerQuestion, ReadMail
from legion.wire.tickets import Action
from tests.crash import invariants
from tests.crash.old_site import OldSite
from tests.crash.squads import PATIENCE, Gate, Site, site

V1 = Path(__file__).with_name("data") / "v1"
NEXT = "99.0.0"


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Site]:
    with site(tmp_path) as one:
        yield one


@pytest.fixture
def next_release(tmp_path: Path) -> Path:
    """A copy of the package with another version and one more migration."""
    source = Path(legion.__file__).parent
    copy = tmp_path / "next"
    # With the times of its files, so that the compiled files next to them hold for the copy too.
    shutil.copytree(source, copy / "legion")
    (copy / "legion/__init__.py").write_text(f'"""The next release."""\n\n__version__ = "{NEXT}"\n')
    (copy / "legion/store/database/migrations/9999_later.sql").write_text(
        "CREATE TABLE later (id INTEGER PRIMARY KEY);\n"
    )
    return copy


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "ticket-7-run-9"


def test_a_spec_of_version_1_is_run(folder: Path):
    shutil.copytree(V1 / "fresh", folder)
    assert launch.settle(folder) == FreshRun()
    launcher = Launcher()
    launcher.start(folder)
    ended = launch.wait(folder)
    launcher.close()
    assert isinstance(ended, EndedRun)
    assert (ended.result.run, ended.result.exit_code) == ("ticket-7-run-9", 3)
    assert (folder / "output.log").read_text() == "hello\n"


def test_a_result_and_a_journal_of_version_1_are_read(folder: Path):
    shutil.copytree(V1 / "ended", folder)
    found = launch.settle(folder)
    assert isinstance(found, EndedRun)
    assert found.result.succeeded
    assert (found.result.run, found.result.ended_at) == ("ticket-7-run-8", 1763000004.0)
    assert found.result.denied == ()
    assert [event.kind for event in read_journal(folder)] == ["opened", "starting", "started", "ended"]


def test_a_journal_of_version_1_without_a_result_is_a_lost_run(folder: Path):
    shutil.copytree(V1 / "ended", folder)
    (folder / "result.json").unlink()
    assert launch.settle(folder) == launch.LostRun()


def test_a_runner_of_version_1_is_found_followed_and_stopped(folder: Path):
    folder.mkdir()
    runner = subprocess.Popen([sys.executable, str(V1 / "runner.py"), str(folder)], stdout=subprocess.PIPE)
    assert runner.stdout is not None
    with runner.stdout as said:
        assert said.readline() == b"ready\n"
    assert launch.settle(folder) == LivingRun()
    launcher = Launcher()
    launcher.start(folder)
    launcher.close()
    assert launch.settle(folder) == LivingRun(), "a second runner leaves it alone"
    assert launch.stop(folder)
    ended = launch.wait(folder)
    assert isinstance(ended, EndedRun)
    assert ended.result.outcome is EndKind.STOPPED
    assert runner.wait(PATIENCE) == 0


def test_a_runner_of_today_understands_what_version_1_asks(folder: Path):
    shutil.copytree(V1 / "fresh", folder)
    spec = json.loads((folder / "spec.json").read_text())
    shared = folder.parent / "shared"
    shared.mkdir()
    os.mkfifo(shared / "deaf")
    spec["argv"] = ["sh", "-c", f"trap : INT; tail -f /dev/null & echo so > {shared}/deaf; while :; do wait; done"]
    spec["sandbox"]["writable"] = [str(shared)]
    (folder / "spec.json").write_text(json.dumps(spec))
    launcher = Launcher()
    launcher.start(folder)
    assert (shared / "deaf").read_text() == "so\n", "an interrupt before this would end it"
    with control.connect(folder, PATIENCE) as connection, connection.makefile("rb") as heard:
        for ask in (V1 / "asks.jsonl").read_bytes().splitlines(keepends=True):
            connection.sendall(ask)
            answer: dict[str, object] = {"bell": True}
            while "bell" in answer:
                answer = json.loads(heard.readline())
            assert answer["version"] == 1
            assert (answer["ok"], answer["run"]) == (True, "ticket-7-run-9")
            assert isinstance(answer["runner"], int)
    ended = launch.wait(folder)
    launcher.close()
    assert isinstance(ended, EndedRun)
    assert ended.result.outcome is EndKind.STOPPED


def test_the_next_release_goes_on_in_the_middle_of_a_run_a_check_and_a_landing(here: Site, next_release: Path):
    """It also ends an agent that the last one has started, when its ticket is stopped."""
    run, check, landing, endless = (here.gate(name) for name in ("run", "check", "landing", "endless"))
    here.repository.commit("slow", {"check.sh": f"test ! -e landed.txt || {{ {landing.script}; }}\n"})
    project = here.open()
    tickets = [
        project.dispatch("in a run", here.agent(f"{run.script}; echo done > run.txt")),
        project.dispatch("in a check", here.agent("echo done > check.txt"), prove=[check.script]),
        project.dispatch("in a landing", here.agent("echo done > landed.txt")),
    ]
    stopped = project.dispatch("stopped", here.agent(f"{endless.script}; echo done > stopped.txt"))
    for gate in (run, check, landing, endless):
        gate.wait()
    program = here.program(stopped)
    here.squad.kill()
    here.squad.start({"PYTHONPATH": str(next_release)})
    assert here.squad.client.status(None).daemon.version == NEXT
    here.squad.client.stop(stopped, Action())
    invariants.wait_until_gone([program])
    project.until(stopped, "stopped")
    # Nobody waits for the checks of a dead daemon, so they are ended and begun again.
    for gate in (check, landing):
        gate.wait()
    # Whatever lands behind it is checked together with its file.
    for gate in (run, check, landing, endless):
        gate.open(10)
    project.retry(stopped)
    project.until_settled()
    for ticket in tickets:
        page = project.ticket(ticket)
        assert (page.ticket.state, page.ticket.attempt) == ("done", 1)
        assert here.starts(ticket) == 1
    here.is_sound(lost_allowed=False)


def test_the_next_release_tests_the_target_that_the_last_one_was_testing(here: Site, next_release: Path):
    gate = here.gate()
    here.repository.commit("slow", {"check.sh": f"test -e a.txt || {{ {gate.script}; }}\n"})
    here.open().dispatch("upgraded", here.agent("echo done > a.txt"))
    gate.wait()
    here.squad.kill()
    here.squad.start({"PYTHONPATH": str(next_release)})
    gate.wait()
    gate.open()
    here.project.until_settled()
    page = here.project.ticket(1)
    assert (page.ticket.state, page.ticket.attempt) == ("done", 1)
    assert here.starts(1) == 1
    here.is_sound(lost_allowed=False)


@pytest.fixture
def old(tmp_path: Path) -> Iterator[OldSite]:
    one = OldSite(tmp_path)
    yield one
    one.squad.close()


def test_a_board_and_a_living_run_of_an_earlier_commit_are_taken_over(old: OldSite):
    gate = Gate(old.gates, "gate")
    old.start_runner()
    gate.wait()
    old.squad.start()
    project, client = old.project, old.squad.client

    landed, failed, asking, living, waiting, stopped = (project.ticket(id) for id in (1, 2, 3, 4, 5, 6))
    states = [page.ticket.state for page in (landed, failed, asking, living, waiting, stopped)]
    assert states == ["done", "failed", "parked", "working", "queued", "stopped"]
    assert [(run.outcome, run.detail) for run in landed.runs] == [("finished", "The agent says that it is through")]
    assert [one.verdict for one in landed.receipts] == ["green"]
    assert [one.criterion for one in landed.evidence] == ["A greeting exists"]
    assert landed.usage is not None
    assert landed.usage.input + landed.usage.cache_read + landed.usage.cache_write > 20_000
    assert failed.ticket.reason == "gave up after 1 attempt: checks failed: `sh check.sh`"
    assert {one.verdict for one in failed.receipts} == {"red"}
    assert [(one.id, one.kind, one.choices) for one in asking.questions] == [(1, "change", ["yes", "no"])]
    assert (waiting.ticket.after, waiting.ticket.priority, waiting.labels) == ([4], 1, ["shelf"])

    (keeper,) = client.agents(True).agents
    assert (keeper.name, keeper.role, keeper.waiting) == ("keeper", "watcher", 1)
    assert keeper.doing == "it waits for the end of the quiet hours"
    texts = [(one.kind, one.delivery, one.text) for one in client.mail(ReadMail(agent="keeper", all=True)).messages]
    assert ("tell", "heard", "Count the shelves.") in texts
    assert ("result", "waiting", "Counted: 3.") in texts
    assert texts[-1] == ("tell", "waiting", "Count them again.")
    assert client.usage(project.cwd, "agent").total.usage.usd > 0.1

    gate.open()
    assert project.until(4, "done").ticket.attempt == 1
    assert project.until(7, "done").ticket.attempt == 1
    assert (old.gates / "starts").read_text() == "4 1\n", "its program was started once, by the old runner"
    client.answer(1, AnswerQuestion(choice="yes"))
    project.until(3, "done")
    assert project.state(5) == "queued"
    project.collect()
    texts_now = [(project.repository.root / name).read_text() for name in ("living.txt", "slow.txt", "guarded.txt")]
    assert texts_now == ["living\n", "slow\n", "two\n"]
    assert old.squad.end() == 0
    gate.close()
