"""The driver of JSON lines in a real runner and sandbox: a process per turn, each resuming the one before."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from legion.drivers import EndKind
from legion.runner import launch
from legion.runner.journal import read_journal
from legion.runner.launch import Launcher
from tests.drivers.small_programs import Stage, facts, seen, texts
from tests.runner.runs import Workbench


@pytest.fixture
def stage(tmp_path: Path, launcher: Launcher) -> Iterator[Stage]:
    bench = Workbench(tmp_path, shared=launcher)
    yield Stage(bench, tmp_path, "json")
    bench.close()


def test_a_process_per_turn_continues_one_conversation(stage: Stage):
    outcome, events = stage.play("noise\nsay one\nrun make\nsay two")
    assert (outcome, texts(events)) == (EndKind.FINISHED, ["one", "two"])
    assert [one["input"] for one in facts(events, "begins")] == ["make"]
    assert facts(events, "result")[0]["usage"] == {"input_tokens": 7}
    run = stage.start("", again="say one\nwait")
    seen(run, "said", text="one")
    launch.tell(run, "m1", "say told")
    launch.interrupt(run, "m2", "say interrupted")
    assert stage.bench.result(run).outcome is EndKind.FINISHED
    resumed = "resumed thread-1"
    assert texts(read_journal(run)) == [resumed, "one", resumed, "interrupted", resumed, "told"]
    assert [one["reason"] for one in facts(read_journal(run), "result")] == ["cancelled", "end_turn", "end_turn"]


def test_a_program_that_stays_after_the_end_of_its_turn_is_ended(stage: Stage):
    outcome, events = stage.play("say one", "stay")
    assert (outcome, texts(events)) == (EndKind.FINISHED, ["one"])


@pytest.mark.parametrize(
    ("prompt", "message"), [("fail it broke", "it broke"), ("die", "Small ended without a result (exit code 3).")]
)
def test_a_failed_turn_is_reported(stage: Stage, prompt: str, message: str):
    result = stage.bench.result(stage.start(prompt))
    assert (result.outcome, result.message) == (EndKind.FAILED, message)


def test_a_stop_ends_the_process_of_the_turn(stage: Stage):
    run = stage.start("say one\nwait")
    seen(run, "said", text="one")
    launch.stop(run)
    assert stage.bench.result(run).outcome is EndKind.STOPPED


@pytest.mark.parametrize("options", [{}, {"program": {"name": "x", "title": "X", "driver": "json"}}])
def test_a_driver_that_fails_is_the_end_of_the_run_with_its_reason(stage: Stage, options: dict[str, object]):
    """As with the spec of another release, or a fault of the driver: no silent death, and no start again and again."""
    run = stage.bench.start(("true",), driver="small", kind="json", options=options)
    result = stage.bench.result(run)
    assert result.outcome is EndKind.FAILED_TO_START
    assert result.message.startswith("Legion's runner failed, which is a fault of Legion: KeyError: ")
    assert "Traceback" in stage.bench.output(run)
    assert [event.kind for event in read_journal(run)][-1] == "ended"
