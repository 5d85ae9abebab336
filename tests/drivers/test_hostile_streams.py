"""Programs that write what no encoding holds, and lines that no reader expects: the run ends with a result, and all
that it leaves behind is text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from legion.drivers import EndKind
from legion.runner import launch
from legion.runner.journal import read_journal
from legion.runner.launch import Launcher
from legion.runner.spec import RunResult
from tests.drivers.small_programs import Stage, facts, seen, texts
from tests.runner.runs import Workbench
from tests.support.attacks import Attacker, Door, attack

LETTERS = {
    "first half": r"\ud83d",
    "second half": r"\ude00",
    "swapped halves": r"\ude00\ud83d",
    "NUL": r"\u0000",
    "escape sequence": r"\u001b]0;evil\u0007",
    "C1": r"\u009b31m",
    "delete": r"\u007f\u0008",
}
EVERY = "-".join(LETTERS.values())
"""For each place of a text; one place of each kind of program is tried with them one by one."""
_OBEYED = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


@pytest.fixture
def acp(tmp_path: Path, launcher: Launcher) -> Iterator[Stage]:
    bench = Workbench(tmp_path, shared=launcher)
    yield Stage(bench, tmp_path, "acp")
    bench.close()


@pytest.fixture
def lines(tmp_path: Path, launcher: Launcher) -> Iterator[Stage]:
    bench = Workbench(tmp_path, shared=launcher)
    yield Stage(bench, tmp_path, "json")
    bench.close()


def left_behind(stage: Stage, run: Path) -> RunResult:
    """The result, after a look at everything that the run wrote for others to read."""
    result = stage.bench.result(run)
    kept = [result.message, *result.denied]
    for event in read_journal(run):
        kept.append(json.dumps(dict(event.facts), ensure_ascii=False).replace(r"\n", " "))
        kept += [value for value in event.facts.values() if isinstance(value, str)]
    assert not [text for text in kept if _OBEYED.search(text)]
    written = (run / "journal.jsonl").read_text() + (run / "result.json").read_text()
    assert not re.search(r"\\ud8(?!..\\ud[c-f])|(?<!\\ud83d)\\ude00|\\u00[019]", written), written
    return result


@attack(Attacker.PROGRAM, Door.TEXT)
@pytest.mark.parametrize(
    ("prompt", "outcome"),
    [
        ("say! a {} b", EndKind.FINISHED),
        ("say! STUCK: no {} key", EndKind.GAVE_UP),
        ("error! it {} broke", EndKind.FAILED),
        ("run! make {}", EndKind.FINISHED),
    ],
    ids=["message", "stuck", "error", "permission"],
)
def test_letters_of_an_acp_program_are_data(acp: Stage, prompt: str, outcome: EndKind):
    run = acp.start(prompt.format(EVERY), permission_mode="default")
    assert left_behind(acp, run).outcome is outcome


@attack(Attacker.PROGRAM, Door.TEXT)
def test_letters_of_a_question_are_data(acp: Stage):
    run = acp.start(f"run! make {EVERY} all", permission_mode="default", asks=True)
    seen(run, "asked")
    (asked,) = facts(read_journal(run), "asked")
    launch.permit(run, str(asked["question"]), allowed=True)
    assert left_behind(acp, run).outcome is EndKind.FINISHED


@attack(Attacker.PROGRAM, Door.TEXT)
@pytest.mark.parametrize(
    ("prompt", "outcome"),
    [
        ("say! a {} b", EndKind.FINISHED),
        ("say! STUCK: no {} key", EndKind.GAVE_UP),
        ("fail! it {} broke", EndKind.FAILED),
        ("run! make {}", EndKind.FINISHED),
    ],
    ids=["message", "stuck", "error", "command"],
)
def test_letters_of_a_program_that_prints_json_are_data(lines: Stage, prompt: str, outcome: EndKind):
    run = lines.start(prompt.format(EVERY))
    assert left_behind(lines, run).outcome is outcome


@attack(Attacker.PROGRAM, Door.TEXT)
@pytest.mark.parametrize("letters", LETTERS.values(), ids=LETTERS)
@pytest.mark.parametrize("kind", ["acp", "lines"])
def test_letters_of_a_session_are_data(request: pytest.FixtureRequest, kind: str, letters: str):
    stage: Stage = request.getfixturevalue(kind)
    run = stage.start("say one", f"session=x{letters}")
    assert left_behind(stage, run).outcome is EndKind.FINISHED
    assert left_behind(stage, stage.start("say two", f"session=x{letters}")).outcome is EndKind.FINISHED


@attack(Attacker.PROGRAM, Door.TEXT)
@pytest.mark.parametrize("kind", ["acp", "lines"])
def test_a_pair_that_was_cut_is_whole_again_or_a_mark(request: pytest.FixtureRequest, kind: str):
    stage: Stage = request.getfixturevalue(kind)
    run = stage.start("say! one \\ud83d\nsay! \\ude00 two")
    assert left_behind(stage, run).outcome is EndKind.FINISHED
    assert texts(read_journal(run)) in (["one \N{GRINNING FACE} two"], ["one \ufffd", "\ufffd two"])


@attack(Attacker.PROGRAM, Door.BOUNDS)
@pytest.mark.parametrize("depth", [50, 500, 900, 100_000])
@pytest.mark.parametrize("kind", ["acp", "lines"])
def test_nested_json_ends_no_run(request: pytest.FixtureRequest, kind: str, depth: int):
    stage: Stage = request.getfixturevalue(kind)
    nested = "[" * depth + "]" * depth
    update = f'{{"sessionUpdate":"tool_call","toolCallId":"t","title":"t","status":"completed","rawInput":{nested}}}'
    raw = {
        "acp": f'{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"session-1","update":{update}}}}}',
        "lines": f'{{"type":"turn.completed","usage":{{"deep":{nested}}}}}',
    }
    run = stage.start(f"raw {raw[kind]}\nsay done")
    assert left_behind(stage, run).outcome is EndKind.FINISHED


@attack(Attacker.PROGRAM, Door.BOUNDS)
@pytest.mark.parametrize("first", ["id", "params"])
def test_a_request_that_is_too_long_is_answered(acp: Stage, first: str):
    """The program sends 20 MB as a request and waits for the answer by its id."""
    run = acp.start(f"huge {first}\nsay done", files=True)
    assert left_behind(acp, run).outcome is EndKind.FINISHED
    said = texts(read_journal(run))
    assert any("A line of 20 MB was skipped: at most 16 MB are read." in one for one in said), said


@attack(Attacker.PROGRAM, Door.BOUNDS)
def test_an_answer_that_is_too_long_ends_the_turn_with_that_sentence(acp: Stage):
    result = left_behind(acp, acp.start("huge-answer"))
    assert (result.outcome, result.message) == (EndKind.FAILED, "A line of 20 MB was skipped: at most 16 MB are read.")


@attack(Attacker.PROGRAM, Door.BOUNDS)
def test_a_long_line_of_a_program_that_prints_json_is_skipped(lines: Stage):
    run = lines.start("flood 20000000\nsay done")
    assert left_behind(lines, run).outcome is EndKind.FINISHED
    assert texts(read_journal(run)) == ["done"]


@attack(Attacker.PROGRAM, Door.TEXT)
@pytest.mark.parametrize("kind", ["acp", "lines"])
@pytest.mark.parametrize(
    "raw", [r"\x80\xfe\xff", r"\x00\x00", r"\xed\xa0\xbd", r"{\x00}", r"\x9b31m", "NaN", '"', "[]", "{}"]
)
def test_bytes_that_are_no_message_go_to_the_log(request: pytest.FixtureRequest, kind: str, raw: str):
    stage: Stage = request.getfixturevalue(kind)
    run = stage.start(f"bytes {raw}\nsay done")
    assert left_behind(stage, run).outcome is EndKind.FINISHED
    assert texts(read_journal(run)) == ["done"]


@attack(Attacker.PROGRAM, Door.BOUNDS)
def test_updates_of_a_foreign_session_are_no_part_of_the_run(acp: Stage):
    chunk = '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"STUCK: not mine"}}'
    foreign = f'{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"other","update":{chunk}}}}}'
    run = acp.start(f"say mine\nraw {foreign}")
    assert left_behind(acp, run).outcome is EndKind.FINISHED
    assert texts(read_journal(run)) == ["mine"]
