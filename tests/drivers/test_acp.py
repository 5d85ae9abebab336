"""The driver of the Agent Client Protocol in a real runner and sandbox, with a small program that may be hostile."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from legion.drivers import EndKind
from legion.runner import launch
from legion.runner.journal import JournalEvent, read_journal
from legion.runner.launch import Launcher
from legion.runner.spec import RunFolder
from tests.drivers.small_programs import Stage, facts, seen, texts
from tests.runner.runs import Workbench, assert_gone, program_of, runner_of


@pytest.fixture
def stage(tmp_path: Path, launcher: Launcher) -> Iterator[Stage]:
    bench = Workbench(tmp_path, shared=launcher)
    yield Stage(bench, tmp_path, "acp")
    bench.close()


def test_a_turn_becomes_events(stage: Stage):
    outcome, events = stage.play("say I write.\nplan Write it\nedit hello.txt\nsay It is\nsay  done.")
    assert outcome is EndKind.FINISHED
    assert (stage.bench.worktree / "hello.txt").read_text() == "edited\n"
    assert texts(events) == ["I write.", "It is done."]
    assert facts(events, "planned") == [{"steps": [{"text": "Write it", "status": "pending"}]}]
    (called,), (back,) = facts(events, "called"), facts(events, "returned")
    assert (called["tool"], called["input"]) == ("edit", "hello.txt")
    assert (back["failed"], back["places"]) == (False, ["hello.txt"])
    assert back["diffs"] == [{"path": "hello.txt", "before": 0, "after": 1}]
    assert [one.kind for one in events].index("heard") < [one.kind for one in events].index("said")
    assert facts(events, "result")[0]["text"] == "It is done."


def test_the_conversation_is_loaded_again_and_its_history_is_not_repeated(stage: Stage):
    stage.play("say one")
    outcome, events = stage.play("say never")
    assert outcome is EndKind.FINISHED
    assert facts(events, "conversation") == [{"id": stage.conversation, "resumed": True}]
    assert texts(events) == ["resumed"]


def test_history_that_follows_the_answer_is_not_part_of_the_turn(stage: Stage):
    stage.play("say one")
    assert texts(stage.play("say never", "late")[1]) == ["resumed"]


def test_a_prompt_with_an_id_carries_its_mark(stage: Stage):
    _, events = stage.play("say one", "echoes", prompt_id="p-1")
    assert texts(events) == ["one(prompt p-1)"]


def test_a_conversation_that_the_program_forgot_starts_with_the_briefing(stage: Stage):
    stage.play("say one")
    outcome, events = stage.play("say two", "forgets")
    assert (outcome, texts(events)) == (EndKind.FINISHED, ["two"])


def test_a_killed_runner_takes_the_program_along_and_the_next_run_resumes(stage: Stage):
    run = stage.start("say one\nwait")
    seen(run, "heard")
    program = program_of(run)
    runner_of(run).kill()
    stage.bench.wait(run)
    assert_gone([program])
    assert texts(stage.play("say never")[1]) == ["resumed"]


def test_messages_follow_the_turn_and_an_interrupt_cancels_it(stage: Stage):
    run = stage.start("say one\nwait")
    seen(run, "heard")
    launch.tell(run, "m1", "say told")
    launch.tell(run, "m1", "say told")
    launch.interrupt(run, "m2", "say interrupted")
    assert stage.bench.result(run).outcome is EndKind.FINISHED
    events = read_journal(run)
    assert texts(events) == ["one", "interrupted", "told"]
    assert [one["id"] for one in facts(events, "heard")][1:] == ["m2", "m1"]


def test_a_stop_and_an_interrupt_without_a_message_end_the_run(stage: Stage):
    run = stage.start("say one\nwait")
    seen(run, "heard")
    launch.interrupt(run)
    assert stage.bench.result(run).outcome is EndKind.INTERRUPTED
    run = stage.start("", again="say one\nhang")
    seen(run, "heard")
    launch.stop(run)
    assert stage.bench.result(run).outcome is EndKind.STOPPED


@pytest.mark.parametrize(
    ("prompt", "outcome", "message"),
    [
        ("fail", EndKind.FAILED, "Internal error: it broke"),
        ("say x\ndie 3", EndKind.FAILED, "Small ended in the middle of its work."),
        ("stop-with max_tokens", EndKind.FAILED, "Small ended its turn with max_tokens."),
        ("say STUCK: no key", EndKind.GAVE_UP, "no key"),
    ],
)
def test_a_failed_turn_is_reported(stage: Stage, prompt: str, outcome: EndKind, message: str):
    result = stage.bench.result(stage.start(prompt))
    assert (result.outcome, result.message) == (outcome, message)


def test_the_settings_decide_about_permissions(stage: Stage):
    assert texts(stage.play("run make")[1]) == ["make: yes"]
    stage.conversation = str(uuid.uuid4())
    run = stage.start("run make", permission_mode="default")
    assert (stage.bench.result(run).denied, texts(read_journal(run))) == (("execute",), ["make: no"])
    assert facts(read_journal(run), "denied") == [{"tool": "execute", "call": "run-1"}]


def test_a_person_is_asked(stage: Stage):
    run = stage.start("run make", permission_mode="default", asks=True)
    seen(run, "asked", tool="execute", input="make", rule="Bash(make)")
    launch.permit(run, str(facts(read_journal(run), "asked")[0]["question"]), True)
    stage.bench.result(run)
    assert texts(read_journal(run)) == ["make: yes"]


def test_files_are_read_and_written_inside_the_worktree_only(stage: Stage, tmp_path: Path):
    tree = stage.bench.worktree
    secret = tmp_path / "secret"
    secret.write_text("secret")
    (tree / "run.sh").write_text("x")
    (tree / "run.sh").chmod(0o755)
    (tree / "huge").touch()
    os.truncate(tree / "huge", 1 << 42)
    prompts = [
        f"write {tree}/run.sh changed",
        "write new/file.txt hello",
        "read new/file.txt",
        f"read {secret}",
        f"read {tree}/../secret",
        f"link {secret} {tree}/link",
        f"read {tree}/link",
        f"link {tmp_path} {tree}/folder",
        f"write {tree}/folder/planted x",
        f"write {tree}/link x",
        f"write {tmp_path}/planted x",
        "read /etc/passwd",
        "read huge",
    ]
    outcome, events = stage.play("\n".join(prompts), files=True)
    assert outcome is EndKind.FINISHED
    answers = [json.loads(one) for one in "".join(texts(events)).replace("}{", "}\n{").splitlines()]
    assert [list(one)[-1] for one in answers] == ["result"] * 3 + ["error"] * 4 + ["result"] + ["error"] * 3
    assert "larger than 16 MB" in str(answers[-1])
    assert answers[2]["result"]["content"] == "hello"
    assert secret.read_text() == "secret"
    assert not (tmp_path / "planted").exists()
    assert (tree / "run.sh").stat().st_mode & 0o777 == 0o755
    assert (tree / "run.sh").read_text() == "changed"
    assert not (tree / "link").is_symlink(), "the link itself was replaced"


def test_strange_messages_do_no_harm(stage: Stage):
    run = stage.start("strange no_such_thing\nask no/such {}\nflood 40000000\nsay still there")
    assert stage.bench.result(run).outcome is EndKind.FINISHED
    events = read_journal(run)
    printed = RunFolder(run).output.read_text()
    assert "xx" not in printed, "no part of a line that is too long is kept"
    assert "A line of 38 MB was skipped" in printed
    assert "still there" in "".join(texts(events))
    assert '"code": -32601' in "".join(texts(events)), "an unknown request is refused"


def answers_of(events: list[JournalEvent]) -> list[dict[str, Any]]:
    return [json.loads(one) for one in "".join(texts(events)).replace("}{", "}\n{").splitlines()]


def asks(method: str, **params: object) -> str:
    return f"ask terminal/{method} {json.dumps(params)}"


def test_a_terminal_is_a_command_in_the_sandbox(stage: Stage, tmp_path: Path):
    tree = stage.bench.worktree
    (tree / "below").mkdir()
    secret = tmp_path / "secret"
    secret.write_text("secret")
    look = f"pwd; echo $COLOUR; cat {secret}; echo x > {tmp_path}/planted; exit 3"
    one, two, three = "terminal-1", "terminal-2", "terminal-3"
    prompts = [
        asks("create", command=look, cwd=str(tree / "below"), env=[{"name": "COLOUR", "value": "blue"}]),
        asks("wait_for_exit", terminalId=one),
        asks("output", terminalId=one),
        asks("release", terminalId=one),
        asks("output", terminalId=one),
        asks("create", command="yes \u00fc | head -n 1000", outputByteLimit=101),
        asks("wait_for_exit", terminalId=two),
        asks("output", terminalId=two),
        asks("create", command="tail", args=["-f", "/dev/null"]),
        asks("output", terminalId=three),
        asks("kill", terminalId=three),
        asks("wait_for_exit", terminalId=three),
    ]
    outcome, events = stage.play("\n".join(prompts))
    assert outcome is EndKind.FINISHED
    made, ended, output, _, gone, _, _, cut, _, silent, _, killed = answers_of(events)
    assert made["result"] == {"terminalId": one}
    assert ended["result"] == {"exitCode": 3}
    lines = output["result"]["output"].splitlines()
    assert lines[:2] == [str(tree / "below"), "blue"]
    assert "No such file" in lines[2]
    assert not (tmp_path / "planted").exists()
    assert output["result"]["exitStatus"] == {"exitCode": 3}
    assert "error" in gone, "it was released"
    assert killed["result"] == {"signal": "9"}
    assert cut["result"]["truncated"] is True
    assert len(cut["result"]["output"].encode()) <= 101
    assert "\N{REPLACEMENT CHARACTER}" not in cut["result"]["output"]
    assert silent["result"] == {"output": "", "truncated": False}


def test_a_terminal_needs_permission_and_starts_inside_the_worktree(stage: Stage, tmp_path: Path):
    tree = stage.bench.worktree
    (tree / "link").symlink_to(tmp_path)
    outside = [asks("create", command="id", cwd=cwd) for cwd in ("/", str(tree / ".."), str(tree / "link"), "none")]
    outcome, events = stage.play("\n".join([*outside, asks("output", terminalId="terminal-9")]))
    assert outcome is EndKind.FINISHED
    assert ["error" in one for one in answers_of(events)] == [True] * 5
    stage.conversation = str(uuid.uuid4())
    denied = asks("create", command="touch", args=["planted"])
    allowed = asks("create", command="touch", args=["allowed"])
    wait = asks("wait_for_exit", terminalId="terminal-1")
    _, events = stage.play(
        f"{denied}\n{allowed}\n{wait}", permission_mode="default", allowed_tools=("Bash(touch allowed)",)
    )
    assert ["error" in one for one in answers_of(events)] == [True, False, False]
    assert facts(events, "denied") == [{"tool": "execute", "call": None}]
    assert ((tree / "planted").exists(), (tree / "allowed").exists()) == (False, True)


def test_too_many_terminals_are_refused_and_all_end_with_the_run(stage: Stage):
    many = [asks("create", command="tail", args=["-f", "/dev/null"])] * 33
    run = stage.start("\n".join([*many, "edit made.txt", "wait"]))
    seen(run, "returned")
    assert "32 terminals are open" in answers_of(read_journal(run))[-1]["error"]["data"]["details"]
    below = runner_of(run).children(recursive=True)
    assert len(below) > 32
    launch.stop(run, 0)
    stage.bench.wait(run)
    assert_gone(below)


def test_an_interrupt_answers_open_questions_and_the_turn_ends_by_itself(stage: Stage):
    run = stage.start("run make\nstop-with cancelled", permission_mode="default", asks=True, prompt_id="p-1")
    seen(run, "asked")
    launch.interrupt(run, "m1", "say otherwise")
    result = stage.bench.result(run)
    events = read_journal(run)
    assert (result.outcome, result.denied) == (EndKind.FINISHED, ())
    assert texts(events) == ["make: None", "otherwise"]
    (answered,) = facts(events, "answered")
    assert (answered["allowed"], answered["withdrawn"]) == (False, True), "the question leaves the inbox"
    assert [one["id"] for one in facts(events, "heard")] == ["p-1", "m1"]
    assert not facts(events, "not-heard")


def test_a_question_during_a_cancelled_turn_is_not_asked(stage: Stage):
    run = stage.start("say one\nuntil-cancelled\nrun make\nstop-with cancelled", permission_mode="default", asks=True)
    seen(run, "heard")
    launch.interrupt(run, "m1", "say otherwise")
    assert stage.bench.result(run).outcome is EndKind.FINISHED
    assert not facts(read_journal(run), "asked")


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        ("until-cancelled\ndie 3", "Small ended in the middle of its work."),
        ("hang", "Small did not end its turn within 10 s of an interrupt, so Legion ended it."),
    ],
)
def test_an_interrupt_that_the_program_does_not_survive_costs_no_attempt(stage: Stage, prompt: str, message: str):
    run = stage.start(f"say one\n{prompt}")
    seen(run, "heard")
    launch.interrupt(run, "m1", "say otherwise")
    result = stage.bench.result(run)
    assert (result.outcome, result.message) == (EndKind.STOPPED, message), "the same attempt resumes"
    assert facts(read_journal(run), "not-heard") == [{"id": "m1"}], "the next run gets the message"


def test_a_file_that_is_written_through_the_driver_is_a_call_and_needs_permission(stage: Stage):
    place = stage.bench.worktree / "a.txt"
    _, events = stage.play(f"write {place} content", files=True)
    assert place.read_text() == "content"
    (called,), (back,) = facts(events, "called"), facts(events, "returned")
    assert (called["tool"], called["input"], back["failed"], back["places"]) == (
        "edit",
        str(place),
        False,
        [str(place)],
    )
    stage.conversation = str(uuid.uuid4())
    outcome, events = stage.play(f"write {place} other", files=True, permission_mode="default")
    assert (outcome, place.read_text()) == (EndKind.FINISHED, "content")
    assert [one["tool"] for one in facts(events, "denied")] == ["edit"]
    stage.conversation = str(uuid.uuid4())
    rule = ("Edit",)
    stage.play(f"write {place} allowed", files=True, permission_mode="default", allowed_tools=rule)
    assert place.read_text() == "allowed"
