"""The journal, the output file and the spec: what they hold when things go wrong while they are written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from legion.drivers import EndKind, Program
from legion.runner.host import TAIL, OutputFile
from legion.runner.journal import Journal, JournalKind, read_journal
from legion.runner.sandbox import Sandbox, SandboxNetwork
from legion.runner.spec import (
    RunFolder,
    RunResult,
    RunSpec,
    UnreadableSpec,
    parse_result,
    read_result,
    read_spec,
    write_result,
    write_spec,
)


def journal(run_dir: Path) -> Journal:
    return Journal(run_dir, lambda: None)


def test_events_are_numbered_and_read_from_a_number_on(tmp_path: Path):
    writer = journal(tmp_path)
    for _ in range(3):
        writer.append("step", text="line\nbreak 🏛")
    assert [(event.number, event.kind, event.facts["text"]) for event in read_journal(tmp_path, after=1)] == [
        (2, "step", "line\nbreak 🏛"),
        (3, "step", "line\nbreak 🏛"),
    ]
    assert read_journal(tmp_path / "nobody") == []


@pytest.mark.parametrize("after", [0, 1, 5, 9])
def test_the_last_events_and_those_of_a_kind_are_the_same_as_among_all(tmp_path: Path, after: int):
    writer = journal(tmp_path)
    for number in range(9):
        writer.append("even" if number % 2 else "odd", text='"even"', number_of_lines=number)
    everything = read_journal(tmp_path, after=after)
    assert [event.number for event in everything] == list(range(after + 1, 10))
    for last in (1, 4, 100):
        assert read_journal(tmp_path, after=after, last=last) == everything[-last:]
    for kinds in (["even"], ["odd"], ["even", "odd"], ["none"]):
        of_kind = [event for event in everything if event.kind in kinds]
        assert read_journal(tmp_path, after=after, kinds=kinds) == of_kind
        assert read_journal(tmp_path, after=after, kinds=kinds, last=2) == of_kind[-2:]


def test_half_a_line_at_the_end_is_passed_over_and_the_next_event_is_whole(tmp_path: Path):
    journal(tmp_path).append(JournalKind.OPENED)
    path = tmp_path / "journal.jsonl"
    whole = path.read_bytes()
    for length in range(len(whole) - 1):
        path.write_bytes(whole + whole[:length])
        assert [event.number for event in read_journal(tmp_path)] == [1]
        journal(tmp_path).append("next")
        assert [event.kind for event in read_journal(tmp_path)] == ["opened", "next"]


def test_lines_of_another_version_are_passed_over(tmp_path: Path):
    journal(tmp_path).append("known")
    with (tmp_path / "journal.jsonl").open("a") as file:
        file.write('{"version": 2, "number": 2, "what": "else"}\n')
    assert [event.kind for event in read_journal(tmp_path)] == ["known"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(limit=st.integers(0, 300), sizes=st.lists(st.integers(0, 100_000), max_size=8))
def test_the_output_file_holds_the_beginning_and_the_end(tmp_path: Path, limit: int, sizes: list[int]):
    path = tmp_path / "output.log"
    path.unlink(missing_ok=True)
    said: list[str] = []
    output = OutputFile(path, limit, said.append)
    printed = b"".join(bytes([65 + number % 26]) * size for number, size in enumerate(sizes))
    position = 0
    for size in sizes:
        output.write(printed[position : position + size])
        position += size
    output.close()
    kept = path.read_bytes()
    assert output.printed == len(printed)
    assert len(said) == (len(printed) > limit)
    assert kept.startswith(printed[:limit])
    assert kept.endswith(printed[limit:][-TAIL:])
    if len(printed) <= limit + TAIL:
        assert kept == printed
    else:
        assert f"[{len(printed) - limit - TAIL} bytes left out]".encode() in kept


def test_a_full_disk_costs_output_but_not_the_run():
    said: list[str] = []
    output = OutputFile(Path("/dev/full"), 1000, said.append)
    for _ in range(3):
        output.write(b"x" * 100)
    output.close()
    assert output.printed == 300
    assert len(said) == 1
    assert "No space left" in said[0]


@pytest.mark.parametrize("text", ['quote " and \\', "line\nbreak", "--dash", "🏛", "x" * 1_000_000])
def test_a_spec_comes_back_as_it_was_written(tmp_path: Path, text: str):
    spec = RunSpec(
        run="7.2",
        program=Program(argv=("agent", text), cwd=tmp_path, env={"NAME": text}, stdin=tmp_path / "briefing"),
        sandbox=Sandbox(
            home=Path("/home/ada"),
            writable=(tmp_path,),
            readable=(Path("/opt/x"),),
            network=SandboxNetwork.NONE,
            tmp_bytes=5,
        ),
        timeout=1.5,
        grace=2.5,
        max_output_bytes=7,
    )
    write_spec(tmp_path / "run", spec)
    assert read_spec(tmp_path / "run") == spec
    assert (tmp_path / "run").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "run/spec.json").stat().st_mode & 0o777 == 0o600


def test_a_spec_that_is_written_again_or_removed_is_not_read_from_memory(tmp_path: Path):
    for run in ("7.1", "7.2"):
        program = Program(argv=("agent",), cwd=tmp_path, env={}, stdin=None)
        write_spec(tmp_path / "run", RunSpec(run=run, program=program, sandbox=None, timeout=1))
        assert read_spec(tmp_path / "run").run == run
    (tmp_path / "run/spec.json").unlink()
    with pytest.raises(UnreadableSpec, match="There is no"):
        read_spec(tmp_path / "run")


def test_a_result_comes_back_as_it_was_written(tmp_path: Path):
    assert read_result(tmp_path) is None
    result = RunResult(
        run="7.2",
        outcome=EndKind.TIMED_OUT,
        exit_code=130,
        started_at=1.5,
        ended_at=2.5,
        output_bytes=9,
        message="It was too slow.",
    )
    write_result(tmp_path, result)
    assert read_result(tmp_path) == result
    written = json.loads(RunFolder(tmp_path).result.read_text())
    odd = parse_result({**written, "message": "half \ud83d \x1b[2J", "denied": ["\ud83d"]})
    assert (odd.message, odd.denied) == ("half \ufffd <U+001B>[2J", ("\ufffd",)), (
        "an older runner or a machine wrote it"
    )
